"""What a run leaves behind: a record an inference, a record an agent, the totals.

Times are seconds since the start of the run.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from justitia.policy.exact import Number

Outcome = Literal["finished", "cancelled", "refused"]


@dataclass(frozen=True, slots=True)
class InferenceRecord:
    """How one inference fared.

    Parameters
    ----------
    id
        ``"<agent>/<inference>"``, unique in the run.
    start_step, finish_step
        The engine steps in which it first ran and ended, counted from 0; None if it
        never did.
    start, finish
        The times at which those steps began and ended.
    preempted
        How often it was taken out of the running batch.
    cached_tokens
        Tokens of its prompt that the engine found in its cache and did not compute;
        None where it does not say.
    prompt_tokens, decode_tokens
        That it really had; None of one that did not finish.
    """

    id: str
    agent: str
    stage: int
    outcome: Outcome
    start_step: int | None
    finish_step: int | None
    start: float | None
    finish: float | None
    preempted: int
    cached_tokens: int | None = None
    prompt_tokens: int | None = None
    decode_tokens: int | None = None


@dataclass(frozen=True, slots=True)
class AgentRecord:
    """How one agent fared.

    Parameters
    ----------
    finish
        When its last inference ended; None if it did not finish.
    cost
        Its real work in KV token-time: of a cancelled agent, what it was delivered.
    predicted_cost
        What the policy was told, in the unit of the policy's cost model; None for an
        agent that was never announced.
    tag
        Its last virtual finish tag, for policies that give tags.
    reference_finish
        When the engine had delivered as much work as the fair reference needed to
        finish the agent (see `justitia.engines.lag`).
    reason
        Why it was refused, else empty.
    cached_tokens
        Of all its inferences that ended; None where the engine does not say.
    """

    id: str
    kind: str
    arrival: float
    finish: float | None
    cost: Number
    predicted_cost: Number | None
    tag: Number | None
    reference_finish: float | None
    outcome: Outcome
    reason: str = ""
    cached_tokens: int | None = None

    @property
    def jct(self) -> float | None:
        """Job completion time, finish - arrival, in seconds."""
        return None if self.finish is None else self.finish - self.arrival


@dataclass(frozen=True, slots=True)
class Lag:
    """The largest lag of a run behind the fair reference, in token-steps.

    Over the first starts of all inferences: S(s) is the service delivered before the
    start, G the service at which the reference finishes its agent (or stage), and
    I - c what Theorem B allows S(s) - G to be.

    Parameters
    ----------
    worst
        The largest S(s) - G; `allowed` is I - c at that start.
    excess
        The largest S(s) - G - (I - c): above 0 where the theorem does not hold.
    largest_cost
        Of a single inference, the scale of the two.
    """

    worst: Number
    allowed: Number
    excess: Number
    largest_cost: Number

    @property
    def ratio(self) -> float:
        """`excess` in units of the largest single cost."""
        return float(self.excess / self.largest_cost)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """All that a run of one policy on one engine gave.

    Parameters
    ----------
    steps
        Steps in which the engine ran something.
    utilisation
        KV tokens held / capacity, mean over those steps; None without any.
    preemptions
        Times that a running inference was taken out.
    lag
        None where no inference started.
    limits
        What of the policy the engine could not honour, ``"non-preemptive"`` say.
    notes
        What the predictor has to say of its answers.
    remarks
        What the engine has to say of the run, in sentences.
    """

    policy: str
    agents: tuple[AgentRecord, ...]
    inferences: tuple[InferenceRecord, ...]
    steps: int
    utilisation: float | None
    preemptions: int
    lag: Lag | None
    limits: str = ""
    notes: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def cached_tokens(self) -> int | None:
        """Tokens of all prompts that were found in the engine's cache."""
        return total(one.cached_tokens for one in self.inferences)


def total(counts: Iterable[int | None]) -> int | None:
    """Return the sum of those that are known; None where none is."""
    known = [count for count in counts if count is not None]
    return sum(known) if known else None
