"""Policies by name, so that a policy is a line in a configuration file."""

from __future__ import annotations

from collections.abc import Callable

from justitia.policy.agent_fcfs import AgentFCFS
from justitia.policy.ayo import Ayo
from justitia.policy.base import Policy
from justitia.policy.errors import PolicyError
from justitia.policy.exact import shown
from justitia.policy.fairserve import FairServe
from justitia.policy.fcfs import FCFS
from justitia.policy.justitia import SelectivePampering
from justitia.policy.justitia_c import ComputePampering
from justitia.policy.mlfq import MLFQ
from justitia.policy.sjf import SJF
from justitia.policy.srjf import SRJF
from justitia.policy.vtc import VTC

_FACTORIES: dict[str, Callable[..., Policy]] = {}

TYPE_CHECKING = False
if TYPE_CHECKING:
    from inspect import Parameter


def register(name: str, factory: Callable[..., Policy]) -> None:
    """Add a policy of your own, so that `create` can make it.

    Parameters
    ----------
    name
        Not taken yet.
    factory
        A class or function that takes the policy's options as keywords.

    Raises
    ------
    PolicyError
        If the name is empty or taken, or the factory cannot be called.
    """
    if not isinstance(name, str) or not name:  # type: ignore[redundant-expr]
        raise PolicyError(
            f"a policy's name must be a str that is not empty, not {shown(name)}"
        )
    if name in _FACTORIES:
        raise PolicyError(f"there is a policy {name!r} already")
    if not callable(factory):
        raise PolicyError(f"a policy's factory must be callable, not {shown(factory)}")
    _FACTORIES[name] = factory


def names() -> list[str]:
    """Return the names that `create` knows, the built-in ones first."""
    return list(_FACTORIES)


def options(name: str) -> list[str]:
    """Return the options that a policy takes, as far as it names them.

    Raises
    ------
    PolicyError
        If there is no such policy, naming those that there are.
    """
    return [
        p.name
        for p in _parameters(name)
        if p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)
    ]


def create(name: str, **given: object) -> Policy:
    """Make a new policy.

    >>> create("justitia", tags="stage").name
    'justitia'

    Raises
    ------
    PolicyError
        If there is no such policy or option, naming those that there are; or if the
        value of an option is not allowed.
    """
    takes = options(name)
    unknown = [option for option in given if option not in takes]
    if unknown and all(p.kind is not p.VAR_KEYWORD for p in _parameters(name)):
        raise PolicyError(
            f"policy {name!r} has no option {unknown[0]!r}; "
            f"it takes: {', '.join(takes) or 'none'}"
        )
    return _factory(name)(**given)


def _parameters(name: str) -> list[Parameter]:
    from inspect import signature  # noqa: PLC0415 - slow to import, seldom needed

    return list(signature(_factory(name)).parameters.values())


def _factory(name: str) -> Callable[..., Policy]:
    factory = _FACTORIES.get(name) if isinstance(name, str) else None  # type: ignore[redundant-expr]
    if factory is None:
        known = ", ".join(names())
        raise PolicyError(f"no policy {shown(name)}; there are: {known}")
    return factory


for _policy in (
    SelectivePampering, ComputePampering, FCFS, AgentFCFS, SJF, SRJF, VTC,
    MLFQ, FairServe, Ayo,
):  # fmt: skip
    register(_policy.name, _policy)
