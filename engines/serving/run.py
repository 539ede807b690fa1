"""A workload on a real engine, in this process: agents come, the engine runs, time flies.

Time is the engine's: it passes while the engine works, and is skipped while nothing is
there to run. So a run takes as long as it must, and no longer.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop
from time import perf_counter_ns

from justitia.engines.base import EngineError
from justitia.engines.lag import LagMeter, Lump
from justitia.engines.records import Outcome, RunRecord
from justitia.engines.results import Results, picoseconds
from justitia.engines.roster import Member, Roster, Task
from justitia.engines.serving.agents import Agents
from justitia.engines.serving.claims import Claim
from justitia.policy import Agent, CostModel, Inference, KVTokenTime, Policy, Step
from justitia.policy.exact import Number, shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec, InferenceSpec

_WORK = KVTokenTime()
_STUCK = 1_000
"""Steps without a token after which a run is given up."""


class Backend(ABC):
    """A real engine in this process, one step at a time."""

    agents: Agents
    capacity: int
    """KV tokens."""
    context: int
    """Tokens of prompt and output that a request may have."""

    @abstractmethod
    def add(
        self, name: str, prompt_tokens: int, decode_tokens: int, longest: int, claim: Mapping[str, object]
    ) -> None:
        """Send a request that will produce `decode_tokens`, and might `longest`."""

    @abstractmethod
    def abort(self, names: Collection[str]) -> None:
        """Abort requests."""

    @abstractmethod
    def step(self) -> list[str]:
        """Run a step; return the names of the requests that ended in it."""

    @abstractmethod
    def name(self, request_id: str) -> str:
        """Return the name that a request of the engine's was added by."""

    @abstractmethod
    def usage(self) -> float:
        """Return the part of the KV cache that is in use."""


@dataclass(slots=True)
class _Running:
    """An inference in the engine; see `justitia.engines.results.Ran`."""

    task: Task
    start_step: int | None = None
    start: int | None = None
    preempted: int = 0
    produced: int = 0
    inside: bool = False

    @property
    def id(self) -> str:
        return self.task.told.id

    @property
    def cost(self) -> int:
        return _WORK(self.task.spec.prompt_tokens, self.task.spec.decode_tokens)

    @property
    def delivered(self) -> int:
        if not self.produced:
            return 0
        return _WORK(self.task.spec.prompt_tokens, self.produced)


class _Announced:
    """What a roster tells a policy, told to a live engine's agents instead."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._agents = backend.agents

    @property
    def cost_model(self) -> CostModel:
        return self._agents.policy.cost_model

    def arrive(self, agent: Agent) -> None:
        self._agents.announce(
            Claim(agent.id, agent.cost, agent.stage_costs, agent.kind, agent.weight)
        )

    def submit(self, inference: Inference) -> None:
        """Wait: `LiveRun` sends it, with what it will really do."""

    def finish(self, inference_id: str) -> bool:
        return True  # the engine has told it

    def tag(self, agent_id: str) -> Number | None:
        return self._agents.tag(agent_id)

    def leave(self, agent_id: str) -> bool:
        gone = self._agents.dismiss(agent_id)
        if gone:
            self._backend.abort([self._backend.name(one) for one in gone])
        return gone is not None


class LiveRun:
    """One run of a workload on a backend; the witness of its agents.

    Parameters
    ----------
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
        self._roster = Roster(_Announced(backend), predictor)
        self._results = Results(agents)
        self._meter = LagMeter()
        self._running: dict[str, _Running] = {}
        self._steps = 0
        self._used = 0.0
        self._preemptions = 0
        self._fruitless = 0
        self._skipped = 0  # picoseconds in which nothing was there to run
        self._began = perf_counter_ns()
        self._step_began = 0
        self._pending: tuple[int, bool] | None = None
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
        """Run to the end."""
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
        )

    # A witness of the agents ------------------------------------------------------

    def served(self, step: Step) -> None:
        """A batch is fixed."""
        running = self._running
        service = 0
        for request_id in (*step.prefill, *step.decode):
            one = running.get(self._backend.name(request_id))
            if one is not None and not one.inside:
                self._enter(one)
        for request_id, count in step.decode.items():
            one = running.get(self._backend.name(request_id))
            if one is None or one.produced >= one.task.spec.decode_tokens:
                continue  # a token too many, of a step in flight
            before = one.delivered
            one.produced += count
            service += one.delivered - before
        now = self._now()
        self._meter.serve(Lump(1, service, 0, self._step_began, now - self._step_began, 0))
        if self._meter.starting:
            self._meter.in_flight(
                one.cost - one.delivered for one in running.values() if one.inside
            )
        self._fruitless = 0 if step.decode else self._fruitless + 1
        self._steps += 1

    def requeued(self, request_id: str) -> None:
        """A request is back in line."""
        one = self._running.get(self._backend.name(request_id))
        if one is not None and one.inside:
            one.inside = False
            one.preempted += 1
            self._preemptions += 1

    # Steps ------------------------------------------------------------------------

    def _now(self) -> int:
        return (perf_counter_ns() - self._began) * 1_000 + self._skipped

    def _run_step(self) -> None:
        self._step_began = self._now()
        ended = self._backend.step()
        self._used += self._backend.usage()
        if self._fruitless > _STUCK:
            raise EngineError(
                f"no token in {_STUCK} steps under {self._policy.name}: "
                f"{len(self._running)} requests in the engine, head of the line "
                f"{shown(self._policy.peek())}"
            )
        for name in ended:
            one = self._running.get(name)
            if one is not None:
                self._finish(one)

    def _enter(self, one: _Running) -> None:
        again = one.start_step is not None
        if not again:
            one.start_step, one.start = self._steps, self._step_began
        one.inside = True
        member, stage = one.task.member, one.task.told.stage
        self._meter.start(
            member.seq, stage if self._by_stage else 0, one.cost, again=again
        )

    # Agents -----------------------------------------------------------------------

    def _happen(self) -> None:
        while self._events and self._events[0][0] <= self._now():
            _, is_cancellation, place = heappop(self._events)
            if is_cancellation:
                self._cancel(self._agents[place])
            else:
                self._arrive(self._agents[place])

    def _arrive(self, spec: AgentSpec) -> None:
        backend = self._backend
        for inference in spec.inferences:
            longest = _longest(inference)
            limit = min(backend.capacity, backend.context)
            if inference.prompt_tokens + longest > limit:
                reason = (
                    f"inference {inference.id} may need {inference.prompt_tokens} + "
                    f"{longest} tokens, the engine has room for {limit}"
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
        for task in tasks:
            member, spec, told = task.member, task.spec, task.told
            self._running[told.id] = _Running(task)
            if self._by_stage and not self._meter.knows(member.seq, told.stage):
                cost = member.spec.stage_costs(_WORK)[told.stage]
                self._meter.ready(member.seq, told.stage, cost, member.spec.weight)
            self._backend.add(
                told.id,
                spec.prompt_tokens,
                spec.decode_tokens,
                _longest(spec),
                {
                    "agent": member.spec.id,
                    "stage": told.stage,
                    "tokens": told.decode_tokens,
                },
            )

    def _finish(self, one: _Running) -> None:
        member = one.task.member
        self._forget(one, "finished")
        self._send(self._roster.end(one.task))
        if not member.left:
            self._results.agent(member.spec, "finished", self._now(), member)
        self._progress(1)

    def _forget(self, one: _Running, outcome: Outcome) -> None:
        del self._running[one.id]
        self._results.inference(one, outcome, self._steps - 1, self._now())

    def _cancel(self, spec: AgentSpec) -> None:
        member: Member | None = self._roster.get(spec.id)
        if member is None:
            return
        delivered = self._results.delivered(spec)
        for task in self._roster.cancel(member):
            one = self._running[task.told.id]
            delivered += one.delivered
            self._forget(one, "cancelled")
        self._meter.cancel(member.seq, delivered)
        self._results.agent(
            spec, "cancelled", self._now(), member, delivered=delivered
        )
        self._progress(member.left)


def _longest(inference: InferenceSpec) -> int:
    if inference.max_tokens is None:
        return inference.decode_tokens
    return inference.max_tokens
