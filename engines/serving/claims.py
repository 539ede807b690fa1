"""What a request says of itself: whose it is, and what it will cost.

It comes from a client and is not to be trusted. What cannot be used is left out and
named in `Claim.faults`, which an engine counts and logs: a bad value must never stop a
request, let alone a scheduler. An endpoint that can still refuse raises instead
(`strict`).

Where values do not go together: a cost that is missing, or cannot be used, is the sum
of the stage costs; if both are there and differ, the cost holds, since it alone decides
the order of agents, and the stage costs are left out.
"""

import dataclasses
from collections.abc import Callable, Mapping
from typing import Any

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
LEAST_WEIGHT, MOST_WEIGHT = 0.01, 100
"""A client's weight lies between these. With a weight far above all others one agent
would have the fair reference to itself, and nobody else would ever be finished there;
with one far below, it would never be finished itself, nor forgotten."""
SAME_COST = 1e-6
"""Part of the cost by which the sum of the stage costs may miss it: floats round."""
UNKNOWN = "unknown"
"""The fault of a field that there is not."""


class ClaimError(PolicyError):
    """A value that a client may not send; says which, and what is allowed.

    Attributes
    ----------
    field
        Of the value; `UNKNOWN` for one that there is not.
    """

    def __init__(self, reason: str, field: str) -> None:
        super().__init__(reason)
        self.field = field


@dataclasses.dataclass(frozen=True, slots=True)
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
        Its weight, `LEAST_WEIGHT` to `MOST_WEIGHT`.
    stage
        The stage that the request belongs to.
    inferences
        How many requests the agent will have in all. It ends with the last.
    tokens
        How many tokens the request is predicted to produce.
    faults
        The names of the fields that could not be used, `UNKNOWN` for all that there are
        not.
    reasons
        What was wrong with each of those, for a log.
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
    reasons: tuple[str, ...] = dataclasses.field(default=(), compare=False)


def read_claim(
    values: Mapping[str, object], *, session: str | None = None, strict: bool = False
) -> Claim:
    """Return what a request says of itself.

    Parameters
    ----------
    values
        By field, all of them ours; None is nothing said.
    session
        The session that the engine knows the request by: its agent where `values` names
        none that can be used.
    strict
        Raise for the first field that cannot be used, instead of leaving it out.

    Raises
    ------
    ClaimError
        With `strict`, naming the field, the value and what is allowed.

    Examples
    --------
    >>> read_claim({"agent": 7, "cost": float("nan")}, session="s")
    ... # doctest: +ELLIPSIS
    Claim(agent='7', cost=None, ..., faults=('cost',), reasons=('cost must be ...',))
    >>> read_claim({"stage_costs": [5, 10]}).cost
    15
    """
    read: dict[str, Any] = {}
    faults: dict[str, str] = {}

    def use(field: str, value: object, reader: Callable[[object, str], Any]) -> None:
        try:
            read[field] = reader(value, field)
        except PolicyError as error:
            if strict:
                raise ClaimError(str(error), field) from None
            faults.setdefault(field, str(error))

    for field, reader in _READERS.items():
        if (value := values.get(field)) is not None:
            use(field, value, reader)
    if session and "agent" not in read:
        use("agent", session, _agent)
    if "stage_costs" in read:
        use("stage_costs", read.pop("stage_costs"), _agreeing(read))
    for field, value in values.items():
        if value is not None and field not in _READERS:
            use(UNKNOWN, field, _refuse)
    return Claim(faults=tuple(faults), reasons=tuple(faults.values()), **read)


def _agreeing(read: dict[str, Any]) -> Callable[[Any, str], tuple[Number, ...]]:
    """Return a reader of stage costs that go with the cost, or become it."""

    def agree(costs: tuple[Number, ...], field: str) -> tuple[Number, ...]:
        total = positive(sum(costs), f"the sum of {field}")
        cost = read.setdefault("cost", total)
        if abs(total - cost) > SAME_COST * cost:
            raise PolicyError(
                f"{field} must add up to the cost, {shown(cost)}, not to {shown(total)}"
            )
        return costs

    return agree


def _refuse(name: object, field: str) -> None:
    raise PolicyError(f"no field {shown(name)}; there are: {', '.join(FIELDS)}")


def _agent(value: object, field: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        if abs(value) >= 10**LONGEST_NAME:  # too long for Python to print, it may be
            raise PolicyError(
                f"{field} must have at most {LONGEST_NAME} digits, not {shown(value)}"
            )
        value = str(value)
    return _name(value, field)


def _name(value: object, field: str) -> str:
    if not isinstance(value, str) or not 1 <= len(value) <= LONGEST_NAME:
        raise PolicyError(
            f"{field} must be a str of 1 to {LONGEST_NAME} characters, "
            f"not {shown(value)}"
        )
    if not value.isprintable():
        raise PolicyError(f"{field} must be printable, not {shown(value)}")
    return value


def _costs(value: object, field: str) -> tuple[Number, ...]:
    if not isinstance(value, list | tuple) or not 1 <= len(value) <= MOST_STAGES:
        raise PolicyError(
            f"{field} must be a list of 1 to {MOST_STAGES} numbers, not {shown(value)}"
        )
    return tuple(positive(cost, "a stage cost") for cost in value)


def _weight(value: object, field: str) -> Number:
    try:
        weight = positive(value, field)
    except PolicyError:
        weight = 0
    if not LEAST_WEIGHT <= weight <= MOST_WEIGHT:
        raise PolicyError(
            f"{field} must be a number from {LEAST_WEIGHT} to {MOST_WEIGHT}, "
            f"not {shown(value)}"
        )
    return weight


def _count(least: int, most: int) -> Callable[[object, str], int]:
    def read(value: object, field: str) -> int:
        whole = isinstance(value, float) and value.is_integer()
        try:  # JSON of some clients knows no integers
            count = tokens(int(value) if whole else value, field)  # type: ignore[call-overload]
        except PolicyError:
            count = -1
        if not least <= count <= most:
            raise PolicyError(
                f"{field} must be a whole number from {least} to {most}, "
                f"not {shown(value)}"
            )
        return count

    return read


_READERS: dict[str, Callable[[object, str], object]] = {
    "agent": _agent,
    "cost": positive,
    "stage_costs": _costs,
    "kind": _name,
    "weight": _weight,
    "stage": _count(0, MOST_STAGES - 1),
    "inferences": _count(1, MOST_INFERENCES),
    "tokens": _count(0, MOST_TOKENS),
}
FIELDS = tuple(_READERS)
"""The keys of a claim."""
