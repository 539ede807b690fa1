"""What a request says of itself: whose it is, and what it will cost.

It comes from a client and is not to be trusted. What cannot be used is left out and
named in `Claim.faults`, which an engine counts: a bad value must never stop a request,
let alone a scheduler. An endpoint that can still refuse raises instead (`strict`).
"""

from collections.abc import Mapping
from dataclasses import dataclass

from justitia.policy import PolicyError
from justitia.policy.exact import Number, positive, shown, tokens

LONGEST_NAME = 256
"""Characters of an agent's id or kind."""
MOST_STAGES = 1_000
"""Stages, and inferences of one agent that may be declared, times a thousand."""

FIELDS = (
    "agent",
    "cost",
    "stage_costs",
    "kind",
    "weight",
    "stage",
    "inferences",
    "tokens",
)
"""The keys of a claim."""


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
        By field; others are passed over.
    session
        The session that the engine knows the request by: its agent where `values` names
        none.
    strict
        Raise for the first field that cannot be used, instead of leaving it out.

    Raises
    ------
    ClaimError
        With `strict`, naming the field, the value and what is allowed.
    """
    read: dict[str, object] = {}
    faults = []
    given = dict(values)
    if given.get("agent") is None and session:
        given["agent"] = session
    for field in FIELDS:
        value = given.get(field)
        if value is None:
            continue
        try:
            read[field] = _READERS[field](value)
        except PolicyError as error:
            if strict:
                raise ClaimError(str(error)) from None
            faults.append(field)
    return Claim(faults=tuple(faults), **read)  # type: ignore[arg-type]


def _name(value: object, what: str) -> str:
    if not isinstance(value, str) or not value or len(value) > LONGEST_NAME:
        raise ClaimError(
            f"{what} must be a str of 1 to {LONGEST_NAME} characters, "
            f"not {_cut(value)}"
        )
    if not value.isprintable():
        raise ClaimError(f"{what} must be printable, not {_cut(value)}")
    return value


def _cut(value: object) -> str:
    told = shown(value)
    return told if len(told) <= 80 else f"{told[:76]} …"


def _count(value: object, what: str, most: int) -> int:
    if isinstance(value, float) and value.is_integer():
        value = int(value)  # JSON of some clients knows no integers
    count = tokens(value, what)
    if count > most:
        raise ClaimError(f"{what} must be at most {most}, not {_cut(value)}")
    return count


def _costs(value: object) -> tuple[Number, ...]:
    if not isinstance(value, list | tuple) or len(value) > MOST_STAGES:
        raise ClaimError(
            f"stage_costs must be a list of at most {MOST_STAGES} numbers, "
            f"not {_cut(value)}"
        )
    return tuple(positive(cost, "a stage cost") for cost in value)


_READERS = {
    "agent": lambda value: _name(value, "agent"),
    "kind": lambda value: _name(value, "kind"),
    "cost": lambda value: positive(value, "cost"),
    "weight": lambda value: positive(value, "weight"),
    "stage_costs": _costs,
    "stage": lambda value: _count(value, "stage", MOST_STAGES),
    "inferences": lambda value: _count(value, "inferences", MOST_STAGES * 1_000),
    "tokens": lambda value: _count(value, "tokens", 2**31 - 1),
}
