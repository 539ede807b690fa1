"""A workload on a real engine, in this process: agents come, the engine works.

Time is the engine's: it passes while the engine works, and is skipped while there is
nothing to run. So a run takes as long as it must, and no longer.
"""

from collections.abc import Callable, Sequence
from heapq import heapify, heappop
from time import perf_counter_ns
from typing import NoReturn

from justitia.engines.base import EngineError
from justitia.engines.lag import LagMeter, Lump
from justitia.engines.limits import without_displacing
from justitia.engines.records import Outcome, RunRecord
from justitia.engines.results import PICOSECONDS, Results, picoseconds
from justitia.engines.roster import Roster, Task
from justitia.engines.scaling import most_tokens
from justitia.engines.serving.announced import Announced
from justitia.engines.serving.backend import Backend
from justitia.engines.serving.running import Running
from justitia.policy import KVTokenTime, Policy, Step
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

_WORK = KVTokenTime()
MOST_FRUITLESS = 1_000
"""Steps without a token after which a run is given up."""


class LiveRun:
    """One run of a workload on a backend; the witness of its agents.

    Times are in picoseconds since the run began.

    Parameters
    ----------
    policy
        The one that the backend's `agents` have; to name it in messages and records.
    by_stage
        What the fair reference of the lag finishes.
    progress
        Called with how many inferences ended since its last call.
    """

    def __init__(
        self,
        agents: Sequence[AgentSpec],
        policy: Policy,
        predictor: Predictor,
        backend: Backend,
        *,
        by_stage: bool,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._agents = agents
        self._policy = policy
        self._backend = backend
        self._by_stage = by_stage
        self._progress = progress or (lambda ended: None)
        self._roster = Roster(Announced(backend), predictor)
        self._results = Results(agents)
        self._meter = LagMeter()
        self._running: dict[str, Running] = {}  # by name, in line or in a batch
        self._steps = 0
        self._used = 0.0
        self._preemptions = 0
        self._fruitless = 0
        self._produced = 0
        self._skipped = 0  # time in which nothing was there to run
        self._began = perf_counter_ns()
        self._step_began = 0
        # (time, 0 for an arrival and 1 for a cancellation, place in the workload)
        self._events: list[tuple[int, int, int]] = []
        for place, spec in enumerate(agents):
            arrival = spec.arrival or 0
            self._events.append((picoseconds(arrival), 0, place))
            if spec.cancel_after is not None:
                gone = picoseconds(arrival, spec.cancel_after)
                self._events.append((gone, 1, place))
        heapify(self._events)
        backend.agents.witness = self

    def run(self) -> RunRecord:
        """Run to the end.

        Raises
        ------
        EngineError
            If the engine stalls, or ends a request before it has its tokens.
        """
        while self._events or self._running:
            self._happen()
            if self._running:
                self._run_step()
            elif self._events:
                self._skipped += max(0, self._events[0][0] - self._now())
        return RunRecord(
            policy=self._policy.name,
            agents=self._results.agents(self._meter),
            inferences=self._results.inferences(),
            steps=self._steps,
            utilisation=self._used / self._steps if self._steps else None,
            preemptions=self._preemptions,
            lag=self._meter.result(),
            limits=without_displacing(self._policy),
        )

    # A witness of the agents ------------------------------------------------------

    def served(self, step: Step) -> None:
        """Take note of a step whose batch is fixed."""
        for request_id in (*step.prefill, *step.decode):
            one = self._of(request_id)
            if one is not None and not one.inside:
                self._enter(one)
        service = 0
        for request_id, count in step.decode.items():
            one = self._of(request_id)
            if one is not None:
                service += one.produce(count)
                self._produced += count
        took = self._now() - self._step_began
        self._meter.serve(Lump(1, service, 0, self._step_began, took, 0))
        if self._meter.starting:
            self._meter.in_flight(
                one.owed for one in self._running.values() if one.inside
            )
        self._steps += 1
        self._used += self._backend.usage()

    def requeued(self, request_id: str) -> None:
        """Take note that a request is back in line."""
        one = self._of(request_id)
        if one is not None and one.inside:
            one.inside = False
            one.preempted += 1
            self._preemptions += 1

    # Steps ------------------------------------------------------------------------

    def _run_step(self) -> None:
        produced = self._produced
        self._step_began = self._now()
        ended = self._backend.step()
        for name in ended:
            one = self._running.get(name)
            if one is None:
                continue  # it was cancelled, or has ended before
            if one.missing:
                self._fail(
                    f"ended {shown(name)} after {one.produced} tokens, "
                    f"{one.missing} too early"
                )
            self._finish(one)
        self._end_satisfied()
        self._fruitless = 0 if self._produced > produced else self._fruitless + 1
        if self._fruitless > MOST_FRUITLESS:
            self._fail(f"produced no token in {self._fruitless} steps")

    def _end_satisfied(self) -> None:
        """End those that have their tokens and could go on, as a stop string would."""
        done = [one for one in self._running.values() if one.may_go_on_too_long]
        if done:
            self._backend.abort([one.id for one in done])
        for one in done:
            self._finish(one)

    def _enter(self, one: Running) -> None:
        """Take note of a request that the step fixed just now starts."""
        again = one.start_step is not None
        if not again:
            one.start_step, one.start = self._steps, self._step_began
        one.inside = True
        member = one.task.member
        stage = one.task.told.stage if self._by_stage else 0
        self._meter.start(member.seq, stage, one.cost, again=again)

    # Agents -----------------------------------------------------------------------

    def _happen(self) -> None:
        """Let all arrive and be cancelled whose time has come."""
        while self._events and self._events[0][0] <= self._now():
            _, is_cancellation, place = heappop(self._events)
            if is_cancellation:
                self._cancel(self._agents[place])
            else:
                self._arrive(self._agents[place])

    def _arrive(self, spec: AgentSpec) -> None:
        """Announce an agent, unless it is done already or can never be."""
        room = self._backend.room
        for one in spec.inferences:
            prompt, most = max(1, one.prompt_tokens), max(1, most_tokens(one))
            if prompt + most > room:
                reason = (
                    f"inference {one.id} may need {prompt} + {most} tokens, "
                    f"the engine has room for {room}"
                )
                self._results.agent(spec, "refused", self._now(), reason=reason)
                self._progress(len(spec.inferences))
                return
        if not spec.inferences:
            self._results.agent(spec, "finished", picoseconds(spec.arrival or 0))
            return
        member = self._roster.arrive(spec)
        if not self._by_stage:
            self._meter.ready(member.seq, 0, spec.cost(_WORK), spec.weight)
        self._send(self._roster.release(member))

    def _send(self, tasks: list[Task]) -> None:
        """Send inferences that have become ready to the engine."""
        for task in tasks:
            member, spec, told = task.member, task.spec, task.told
            self._running[told.id] = Running(task)
            if self._by_stage and not self._meter.knows(member.seq, told.stage):
                cost = member.spec.stage_costs(_WORK)[told.stage]
                self._meter.ready(member.seq, told.stage, cost, member.spec.weight)
            self._backend.add(
                told.id,
                max(1, spec.prompt_tokens),
                max(1, most_tokens(spec)),
                {
                    "agent": member.spec.id,
                    "stage": told.stage,
                    "tokens": told.decode_tokens,
                },
            )

    def _finish(self, one: Running) -> None:
        member = one.task.member
        self._forget(one, "finished")
        self._send(self._roster.end(one.task))
        if not member.left:
            self._results.agent(member.spec, "finished", self._now(), member)
        self._progress(1)

    def _cancel(self, spec: AgentSpec) -> None:
        """Let an agent's user give up, if it has not ended."""
        member = self._roster.get(spec.id)
        if member is None:
            return
        delivered = self._results.delivered(spec)
        for task in self._roster.cancel(member):
            one = self._running[task.told.id]
            delivered += one.delivered
            self._forget(one, "cancelled")
        self._meter.cancel(member.seq, delivered)
        self._results.agent(spec, "cancelled", self._now(), member, delivered=delivered)
        self._progress(member.left)

    def _forget(self, one: Running, outcome: Outcome) -> None:
        del self._running[one.id]
        self._results.inference(
            one, outcome, self._steps - 1, self._now(), self._backend.cached(one.id)
        )

    # What all of them need --------------------------------------------------------

    def _of(self, request_id: str) -> Running | None:
        return self._running.get(self._backend.name(request_id))

    def _now(self) -> int:
        return (perf_counter_ns() - self._began) * 1_000 + self._skipped

    def _fail(self, what: str) -> NoReturn:
        waiting = sum(not one.inside for one in self._running.values())
        raise EngineError(
            f"the engine {what}, under {self._policy.name or type(self._policy)} "
            f"after {self._steps} steps, {self._now() / PICOSECONDS:.3f} s; "
            f"{len(self._running) - waiting} running, {waiting} waiting, "
            f"head of the line {shown(self._policy.peek())}"
        )
