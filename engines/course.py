"""The course of a run: who comes, is refused, goes on, ends and is cancelled.

That is the same on every engine. What an engine does in a step is its own.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from heapq import heapify, heappop
from typing import Generic, Protocol, TypeVar

from justitia.engines.lag import LagMeter
from justitia.engines.records import Outcome
from justitia.engines.results import Ran, Results, picoseconds
from justitia.engines.roster import Roster, Task, Told
from justitia.engines.scaling import most_tokens
from justitia.policy import KVTokenTime
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

_WORK = KVTokenTime()


class Live(Ran, Protocol):
    """What a run must know of an inference that is in line or running."""

    @property
    def delivered(self) -> int:
        """The work that it was delivered so far, in token-steps."""

    @property
    def cost(self) -> int:
        """The work of all of it."""


L = TypeVar("L", bound=Live)


class Course(ABC, Generic[L]):
    """The agents of a run, from their arrival to their records.

    An engine's run derives from it, says how an inference enters the engine (`_enter`)
    and leaves it (`_gone`), what time it is and how much room there is, and calls
    `_happen` between steps, `_started` and `_finish` for what a step did.

    Times are in picoseconds since the run began.

    Parameters
    ----------
    agents
        The workload, each arrival set.
    told
        Told of the agents: the policy, or what stands before it.
    predictor
        Says what an agent will cost, when it arrives.
    by_stage
        Whether the fair reference of the lag finishes stages; else whole agents.
    progress
        Called with how many inferences ended since its last call.
    least
        Tokens that a prompt and an output have at least on this engine.

    Notes
    -----
    Complexity: O(log agents) an arrival or cancellation, O(1) an inference, each plus
    the policy's own and the meter's.
    """

    def __init__(
        self,
        agents: Sequence[AgentSpec],
        told: Told,
        predictor: Predictor,
        *,
        by_stage: bool,
        progress: Callable[[int], None] | None,
        least: int = 0,
    ) -> None:
        self._agents = agents
        self._by_stage = by_stage
        self._progress = progress or (lambda ended: None)
        self._least = least
        self._roster = Roster(told, predictor)
        self._results = Results(agents)
        self._meter = LagMeter()
        self._steps = 0
        self._live: dict[str, L] = {}  # by id in the run: in line or running
        # (time, 0 for an arrival and 1 for a cancellation, place in the workload)
        self._events: list[tuple[int, int, int]] = []
        for place, spec in enumerate(agents):
            arrival = spec.arrival or 0
            self._events.append((picoseconds(arrival), 0, place))
            if spec.cancel_after is not None:
                gone = picoseconds(arrival, spec.cancel_after)
                self._events.append((gone, 1, place))
        heapify(self._events)

    # What an engine has of its own ----------------------------------------------------

    @abstractmethod
    def _time(self) -> int:
        """Return the time."""

    @abstractmethod
    def _room(self) -> int:
        """Return how many tokens an inference may have in all."""

    @abstractmethod
    def _enter(self, task: Task) -> L:
        """Let an inference, which is in the policy's line, into the engine's."""

    def _gone(self, one: L) -> None:
        """Take an inference that ended out of the engine."""

    def _cached(self, one: L) -> int | None:
        """Return how many tokens of its prompt were not computed, if that is known."""
        return None

    def _counted(self, one: L) -> tuple[int, int]:
        """Return the tokens of prompt and output that one really had, at its end."""
        return one.task.spec.prompt_tokens, one.task.spec.decode_tokens

    # Arrivals and cancellations -------------------------------------------------------

    def _happen(self) -> bool:
        """Let all arrive and be cancelled whose time has come; return whether any."""
        events = len(self._events)
        while self._events and self._events[0][0] <= self._time():
            _, is_cancellation, place = heappop(self._events)
            if is_cancellation:
                self._cancel(self._agents[place])
            else:
                self._arrive(self._agents[place])
        return len(self._events) < events

    def _arrive(self, spec: AgentSpec) -> None:
        """Announce an agent, unless it is done already or can never be."""
        room = self._room()
        for one in spec.inferences:
            prompt = max(self._least, one.prompt_tokens)
            most = max(self._least, most_tokens(one))
            if prompt + most > room:
                reason = (
                    f"inference {one.id} may need {prompt} + {most} tokens, "
                    f"the engine has room for {room}"
                )
                self._results.agent(spec, "refused", self._time(), reason=reason)
                self._progress(len(spec.inferences))
                return
        if not spec.inferences:
            self._results.agent(spec, "finished", picoseconds(spec.arrival or 0))
            return
        member = self._roster.arrive(spec)
        if not self._by_stage:
            self._meter.ready(member.seq, 0, spec.cost(_WORK), spec.weight)
        self._enqueue(self._roster.release(member))

    def _cancel(self, spec: AgentSpec) -> None:
        """Let an agent's user give up, if it has not ended."""
        member = self._roster.get(spec.id)
        if member is None:
            return
        delivered = self._results.delivered(spec)
        for task in self._roster.cancel(member):
            one = self._live[task.told.id]
            delivered += one.delivered
            self._forget(one, "cancelled")
        self._meter.cancel(member.seq, delivered)
        self._results.agent(
            spec, "cancelled", self._time(), member, delivered=delivered
        )
        self._progress(member.left)

    # Inferences -----------------------------------------------------------------------

    def _enqueue(self, tasks: list[Task]) -> None:
        """Let inferences into the engine that are in the policy's line now."""
        for task in tasks:
            member, stage = task.member, task.told.stage
            if self._by_stage and not self._meter.knows(member.seq, stage):
                cost = member.spec.stage_costs(_WORK)[stage]
                self._meter.ready(member.seq, stage, cost, member.spec.weight)
            self._live[task.told.id] = self._enter(task)

    def _started(self, one: L, time: int) -> None:
        """Take note that an inference is in the step that begins at a time."""
        again = one.start_step is not None
        if not again:
            one.start_step, one.start = self._steps, time
        stage = one.task.told.stage if self._by_stage else 0
        self._meter.start(one.task.member.seq, stage, one.cost, again=again)

    def _finish(self, one: L) -> None:
        """Let an inference end that has all its tokens."""
        member = one.task.member
        self._forget(one, "finished")
        self._enqueue(self._roster.end(one.task))
        if not member.left:
            self._results.agent(member.spec, "finished", self._time(), member)

    def _forget(self, one: L, outcome: Outcome) -> None:
        """Take an inference out of the engine and record it."""
        self._gone(one)
        del self._live[one.id]
        self._results.inference(
            one,
            outcome,
            self._steps - 1,
            self._time(),
            cached=self._cached(one),
            counted=self._counted(one),
        )
