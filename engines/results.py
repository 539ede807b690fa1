"""What has ended in a run, and the records of it."""

from collections.abc import Sequence as Many
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from justitia.engines.lag import LagMeter
from justitia.engines.records import AgentRecord, InferenceRecord, Outcome, total
from justitia.engines.roster import Member, Task, inference_id
from justitia.policy import KVTokenTime
from justitia.policy.exact import Number
from justitia.workloads import AgentSpec

PICOSECONDS = 10**12
"""Picoseconds in a second."""
_WORK = KVTokenTime()


class Ran(Protocol):
    """What an engine knows of an inference that was in line.

    Attributes
    ----------
    start_step, start
        The step in which it first ran and the time in picoseconds at which that began.
    preempted
        How often it was taken out.
    """

    task: Task
    start_step: int | None
    start: int | None
    preempted: int

    @property
    def id(self) -> str:
        """The inference's id in the run."""


@dataclass(frozen=True, slots=True)
class _End:
    """How and when an agent ended; `delivered` if it was cancelled."""

    outcome: Outcome
    time: int
    member: Member | None
    delivered: int | None
    reason: str


class Results:
    """Told of every end; writes the records in the workload's order.

    Times are in picoseconds.
    """

    def __init__(self, agents: Many[AgentSpec]) -> None:
        self._agents = agents
        self._ends: dict[str, _End] = {}
        self._inferences: dict[str, InferenceRecord] = {}

    def inference(
        self,
        sequence: Ran,
        outcome: Outcome,
        step: int,
        time: int,
        *,
        cached: int | None,
        counted: tuple[int, int],
    ) -> None:
        """Take note that a sequence ended; `step` and `time` if it finished.

        `cached` tokens of its prompt were not computed, if the engine says so.
        `counted` are the tokens of prompt and output that it really had.
        """
        finished = outcome == "finished"
        prompt, decode = counted if finished else (None, None)
        self._inferences[sequence.id] = InferenceRecord(
            sequence.id,
            sequence.task.member.spec.id,
            sequence.task.told.stage,
            outcome,
            sequence.start_step,
            step if finished else None,
            None if sequence.start is None else sequence.start / PICOSECONDS,
            time / PICOSECONDS if finished else None,
            sequence.preempted,
            cached,
            prompt,
            decode,
        )

    def agent(
        self,
        spec: AgentSpec,
        outcome: Outcome,
        time: int,
        member: Member | None = None,
        *,
        delivered: int | None = None,
        reason: str = "",
    ) -> None:
        """Take note that an agent ended; `member` if the policy had heard of it."""
        self._ends[spec.id] = _End(outcome, time, member, delivered, reason)

    def delivered(self, spec: AgentSpec) -> int:
        """Return the work of the inferences of an agent that have finished."""
        return sum(
            _WORK(record.prompt_tokens, record.decode_tokens)
            for inference in spec.inferences
            if (record := self._inferences.get(inference_id(spec, inference)))
            and record.prompt_tokens is not None
            and record.decode_tokens is not None
        )

    def inferences(self) -> tuple[InferenceRecord, ...]:
        """Return a record for every inference; one never in line ends as its agent."""
        found = []
        for spec in self._agents:
            outcome = self._ends[spec.id].outcome
            for inference, stage in zip(spec.inferences, spec.depths(), strict=True):
                name = inference_id(spec, inference)
                record = self._inferences.get(name)
                if record is None and outcome != "finished":
                    record = InferenceRecord(
                        name, spec.id, stage, outcome, None, None, None, None, 0
                    )
                if record is not None:  # else it was lost, as `conserved` will find
                    found.append(record)
        return tuple(found)

    def agents(self, meter: LagMeter) -> tuple[AgentRecord, ...]:
        """Return a record for every agent."""
        return tuple(self._agent(spec, meter) for spec in self._agents)

    def _agent(self, spec: AgentSpec, meter: LagMeter) -> AgentRecord:
        end = self._ends[spec.id]
        member = end.member
        reached = None if member is None else meter.reached(member.seq)
        cost: Number = spec.cost(_WORK)  # what it was to be
        if end.delivered is not None:
            cost = end.delivered
        elif end.outcome == "finished":
            cost = self.delivered(spec)
        return AgentRecord(
            id=spec.id,
            kind=spec.kind,
            arrival=picoseconds(spec.arrival or 0) / PICOSECONDS,
            finish=end.time / PICOSECONDS if end.outcome == "finished" else None,
            cost=cost,
            predicted_cost=None if member is None else member.predicted.cost,
            tag=None if member is None else member.tag,
            reference_finish=None if reached is None else float(reached / PICOSECONDS),
            outcome=end.outcome,
            reason=end.reason,
            cached_tokens=total(
                record.cached_tokens
                for one in spec.inferences
                if (record := self._inferences.get(inference_id(spec, one)))
            ),
        )


def picoseconds(*seconds: float) -> int:
    """Return the sum of some seconds in whole picoseconds, the nearest.

    Exact before it is rounded: products and sums of floats would be off by more.
    """
    return round(sum(map(Fraction, seconds)) * PICOSECONDS)
