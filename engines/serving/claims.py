"""What a request says of itself: whose it is, and what it will cost.

It comes from a client and is not to be trusted. What cannot be used is left out and
named in `Claim.faults`, which an engine counts: a bad value must never stop a request,
let alone a scheduler. An endpoint that can still refuse raises instead (`strict`).
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from justitia.policy import PolicyError
from justitia.policy.exact import Number, positive, shown, tokens

LONGEST_NAME = 256
"""Characters of an agent's id or kind."""
MOST_STAGES = 1_000
"""Stages of an agent."""
MOST_INFERENCES = 1_000_000
"""Requests that may be declared for an agent."""
MOST_TOKENS = 2**31 - 1
"""Tokens that a request may be predicted to produce."""


class ClaimError(PolicyError):
    """A value that a client may not send; says which, and what is allowed."""


@dataclass(frozen=True, slots=True)
class Claim:
    """Whose a request is, as far as it says.

    Attributes
    ----------
    agent
        The id of its agent; None for a request that is an agent of its own.
    cost
        The predicted work of the whole agent, in the unit of the policy's cost model.
    stage_costs
        The same by stage.
    kind
        The agent's type.
    weight
        Its weight.
    stage
        The stage that the request belongs to.
    inferences
        How many requests the agent will have in all. It ends with the last.
    tokens
        How many tokens the request is predicted to produce.
    faults
        The names of the fields that could not be used.
    """

    agent: str | None = None
    cost: Number | None = None
    stage_costs: tuple[Number, ...] = ()
    kind: str = ""
    weight: Number = 1
    stage: int = 0
    inferences: int | None = None
    tokens: int | None = None
    faults: tuple[str, ...] = ()


def read_claim(
    values: Mapping[str, object], *, session: str | None = None, strict: bool = False
) -> Claim:
    """Return what a request says of itself.

    Parameters
    ----------
    values
        By field; None is nothing said, and others than `FIELDS` are passed over.
    session
        The session that the engine knows the request by: its agent where `values` names
        none.
    strict
        Raise for the first field that cannot be used, instead of leaving it out.

    Raises
    ------
    ClaimError
        With `strict`, naming the field, the value and what is allowed.

    Examples
    --------
    >>> read_claim({"agent": "a", "cost": float("nan")}, session="s")
    ... # doctest: +ELLIPSIS
    Claim(agent='a', cost=None, ..., faults=('cost',))
    """
    read: dict[str, object] = {}
    faults = []
    for field, reader in _READERS.items():
        value = values.get(field)
        if value is None and field == "agent":
            value = session or None
        if value is None:
            continue
        try:
            read[field] = reader(value, field)
        except PolicyError as error:
            if strict:
                raise ClaimError(str(error)) from None
            faults.append(field)
    return Claim(faults=tuple(faults), **read)  # type: ignore[arg-type]


def _name(value: object, field: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_NAME:
        raise ClaimError(
            f"{field} must be a str of 1 to {LONGEST_NAME} characters, "
            f"not {shown(value)}"
        )
    if not value.isprintable():
        raise ClaimError(f"{field} must be printable, not {shown(value)}")
    return value


def _costs(value: object, field: str) -> tuple[Number, ...]:
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MOST_STAGES:
        raise ClaimError(
            f"{field} must be a list of 1 to {MOST_STAGES} numbers, not {shown(value)}"
        )
    return tuple(positive(cost, "a stage cost") for cost in value)


def _count(least: int, most: int) -> Callable[[object, str], int]:
    def read(value: object, field: str) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)  # JSON of some clients knows no integers
        count = tokens(value, field)
        if not least <= count <= most:
            raise ClaimError(
                f"{field} must be from {least} to {most}, not {shown(value)}"
            )
        return count

    return read


_READERS: dict[str, Callable[[object, str], object]] = {
    "agent": _name,
    "cost": positive,
    "stage_costs": _costs,
    "kind": _name,
    "weight": positive,
    "stage": _count(0, MOST_STAGES - 1),
    "inferences": _count(1, MOST_INFERENCES),
    "tokens": _count(0, MOST_TOKENS),
}
FIELDS = tuple(_READERS)
"""The keys of a claim."""
