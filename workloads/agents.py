"""What a workload says of an agent: the truth, which a policy never sees.

`justitia.policy.Agent` and `Inference` are what a policy is told, with predictions;
the records here hold what really happens.
"""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, replace

from justitia.policy import CostModel, KVTokenTime, PolicyError
from justitia.policy.agents import check_id
from justitia.policy.exact import (
    MOST_TOKENS,
    Number,
    not_negative,
    positive,
    shown,
    tokens,
)
from justitia.workloads.graph import Graph

LONGEST_ID = 1024
"""Characters of an id or a kind; a longer one is a fault of the file."""

_KV = KVTokenTime()


class WorkloadError(PolicyError):
    """A workload, or a file of one, that cannot be used; says where and why."""


@dataclass(frozen=True, slots=True)
class InferenceSpec:
    """One inference as it will really run.

    Parameters
    ----------
    prompt_tokens, decode_tokens
        Real lengths. ``decode_tokens`` 0 computes the prompt only.
    stage
        It waits for all inferences of the agent's stages before this one. The numbers
        need not follow on each other.
    after
        Ids (see `id`) of the inferences of the same agent that it waits for instead;
        None where the stage says it.
    max_tokens
        The most tokens that its client lets it produce, not less than `decode_tokens`;
        None for no limit.
    id
        Unique in its agent; filled in by the agent with its position (``"0"``, ``"1"``,
        …) when empty.

    Raises
    ------
    WorkloadError
        Naming the field, the value, and what is allowed.
    """

    prompt_tokens: int
    decode_tokens: int
    stage: int = 0
    after: tuple[str, ...] | None = None
    max_tokens: int | None = None
    id: str = ""

    def __post_init__(self) -> None:
        try:
            if self.id != "":
                check_name(self.id, "inference id")
            self._validate()
        except PolicyError as error:
            raise WorkloadError(str(error)) from None

    def _validate(self) -> None:
        name = f"of inference {shown(self.id)}" if self.id else "of an inference"
        put = object.__setattr__
        for field in ("prompt_tokens", "decode_tokens", "stage"):
            value = getattr(self, field)
            if type(value) is not int or not 0 <= value <= MOST_TOKENS:
                put(self, field, tokens(value, f"{field} {name}"))
        if self.max_tokens is not None:
            most = tokens(self.max_tokens, f"max_tokens {name}")
            if self.decode_tokens > most:
                raise WorkloadError(
                    f"decode_tokens {name} must be at most its max_tokens, {most}, "
                    f"not {self.decode_tokens}"
                )
            put(self, "max_tokens", most)
        if self.after is not None:
            if not isinstance(self.after, tuple | list):
                raise WorkloadError(
                    f"after {name} must be a tuple of ids or None, "
                    f"not {shown(self.after)}"
                )
            for other in self.after:
                check_id(other, f"an id in after {name}")
            put(self, "after", tuple(self.after))


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """One agent as it will really run.

    Parameters
    ----------
    id
        Unique in the workload.
    inferences
        Its inferences; may be empty, such an agent is done when it arrives.
    kind
        Its class (``"MRS"``, …).
    arrival
        Seconds since the start of the run; None where the workload gives no times.
    text
        What is known of it when it arrives: what a predictor sees.
    weight
        Its share of the machine relative to the others'.
    cancel_after
        Seconds after its arrival at which its user gives up; None for never.

    Raises
    ------
    WorkloadError
        Naming the agent, the field, the value, and what is allowed. Inferences that
        wait for each other in a circle are refused.
    """

    id: str
    inferences: tuple[InferenceSpec, ...]
    kind: str = ""
    arrival: float | None = None
    text: str = ""
    weight: Number = 1
    cancel_after: float | None = None

    def __post_init__(self) -> None:
        try:
            check_name(self.id, "agent id")
            self._validate(f"of agent {shown(self.id)}")
        except PolicyError as error:
            raise WorkloadError(str(error)) from None

    def _validate(self, name: str) -> None:
        put = object.__setattr__
        check_text(self.kind, f"kind {name}")
        if self.kind:
            check_name(self.kind, f"kind {name}")
        check_text(self.text, f"text {name}")
        put(self, "weight", positive(self.weight, f"weight {name}"))
        for field in ("arrival", "cancel_after"):
            value = getattr(self, field)
            if value is not None:
                put(self, field, float(not_negative(value, f"{field} {name}")))
        put(self, "inferences", _with_ids(self.inferences, name))
        if any(i.after is not None for i in self.inferences):
            circle = Graph(*self._stages_and_after(name)).circle()
            if circle:
                ids = ", ".join(self.inferences[k].id for k in circle[:8])
                raise WorkloadError(
                    f"after {name}: inferences wait for each other in a circle: "
                    f"{shown(ids)}"
                )

    def cost(self, model: CostModel = _KV) -> Number:
        """Return the total real work of its inferences under `model`."""
        return sum(model(i.prompt_tokens, i.decode_tokens) for i in self.inferences)

    def graph(self) -> Graph:
        """Return who waits for whom, by position. O(inferences + ids in after)."""
        return Graph(*self._stages_and_after(f"of agent {shown(self.id)}"))

    def depths(self) -> tuple[int, ...]:
        """Return the stage of each inference as a policy is to see it.

        The most inferences that have to be done one after the other before it may run;
        where no inference has ``after`` this is the rank of its stage. O(inferences +
        ids in after).
        """
        return self.graph().depths()

    def waits(self) -> tuple[tuple[int, ...], ...]:
        """Return for each inference the positions that it waits for.

        Left out are some that the others given wait for in turn. Inferences of one
        stage share one tuple, so this is O(inferences + ids in after) memory.
        """
        return self.graph().waits()

    def stage_costs(self, model: CostModel = _KV) -> tuple[Number, ...]:
        """Return the real work by stage, as `depths` counts them, under `model`."""
        depths = self.depths()
        costs: list[Number] = [0] * (max(depths, default=-1) + 1)
        for depth, one in zip(depths, self.inferences, strict=True):
            costs[depth] += model(one.prompt_tokens, one.decode_tokens)
        return tuple(costs)

    def _stages_and_after(
        self, name: str
    ) -> tuple[list[int], list[tuple[int, ...] | None]]:
        place = {one.id: position for position, one in enumerate(self.inferences)}
        after: list[tuple[int, ...] | None] = []
        for one in self.inferences:
            if one.after is None:
                after.append(None)
                continue
            for other in one.after:
                if other == one.id or other not in place:
                    which = "itself" if other == one.id else "no inference of it"
                    raise WorkloadError(
                        f"after of inference {shown(one.id)} {name} names "
                        f"{shown(other)}, which is {which}"
                    )
            after.append(tuple(place[other] for other in one.after))
        return [one.stage for one in self.inferences], after


def check_name(value: object, what: str) -> None:
    """Raise `PolicyError` unless `value` can be an id or a kind.

    A string of 1 to `LONGEST_ID` characters without control characters (they would
    break log lines and tables) and without surrogates (they cannot be written).
    """
    check_id(value, what)
    assert isinstance(value, str)
    if len(value) > LONGEST_ID:
        raise WorkloadError(
            f"{what} must have at most {LONGEST_ID} characters, not {len(value):,}: "
            f"{shown(value)}"
        )
    if not value.isprintable() and any(
        unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") for c in value
    ):
        raise WorkloadError(
            f"{what} must have no control characters, not {shown(value)}"
        )


def check_text(value: object, what: str) -> None:
    """Raise `WorkloadError` unless `value` is a string that UTF-8 can write."""
    if not isinstance(value, str):
        raise WorkloadError(f"{what} must be a str, not {shown(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise WorkloadError(
                f"{what} must be text that UTF-8 can write; it has a lone surrogate "
                f"at character {error.start}"
            ) from None


def _with_ids(
    inferences: Sequence[InferenceSpec], name: str
) -> tuple[InferenceSpec, ...]:
    if not isinstance(inferences, tuple | list):
        raise WorkloadError(
            f"inferences {name} must be a tuple of InferenceSpec, "
            f"not {shown(inferences)}"
        )
    seen: set[str] = set()
    filled = []
    for position, given in enumerate(inferences):
        if not isinstance(given, InferenceSpec):
            raise WorkloadError(
                f"inferences {name} must be a tuple of InferenceSpec, "
                f"not with {shown(given)} at position {position}"
            )
        one = given if given.id else replace(given, id=str(position))
        if one.id in seen:
            raise WorkloadError(
                f"inferences {name} must have different ids, not {shown(one.id)} twice"
            )
        seen.add(one.id)
        filled.append(one)
    return tuple(filled)
