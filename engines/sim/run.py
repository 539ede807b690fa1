"""One run of the simulated engine: its clock, its loop, and who is in it."""

from bisect import bisect_left
from collections.abc import Callable
from collections.abc import Sequence as Many
from fractions import Fraction
from heapq import heapify, heappop
from typing import NoReturn

from justitia.engines.base import EngineError
from justitia.engines.lag import LagMeter, Lump
from justitia.engines.records import Outcome, RunRecord
from justitia.engines.results import PICOSECONDS, Results, picoseconds
from justitia.engines.roster import Roster, Task
from justitia.engines.scaling import most_tokens
from justitia.engines.sim.batch import Batch
from justitia.engines.sim.sequence import Sequence
from justitia.policy import KVTokenTime, Policy, Step
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

_WORK = KVTokenTime()


class Run:
    """The state of one run, with a `go_on` that takes it further.

    Times are in picoseconds. `justitia.engines.sim.SimEngine` says what the parameters
    mean.
    """

    def __init__(
        self,
        agents: Many[AgentSpec],
        policy: Policy,
        predictor: Predictor,
        batch: Batch,
        *,
        by_stage: bool,
        skip: bool,
        progress: Callable[[int], None] | None,
    ) -> None:
        self._agents = agents
        self._policy = policy
        self._batch = batch
        self._preset = batch.preset
        self._skip = skip and policy.additive
        self._by_stage = by_stage
        self._progress = progress or (lambda ended: None)
        self._roster = Roster(policy, predictor)
        self._results = Results(agents)
        self._meter = LagMeter()
        self._now = 0
        self._steps = 0
        self._held = 0  # KV tokens, summed over steps
        self._fruitless = 0  # steps since the last token or event
        self._sequences: dict[str, Sequence] = {}  # in line or running
        # (time, 0 for an arrival and 1 for a cancellation, place in the workload)
        self._events: list[tuple[int, int, int]] = []
        for place, spec in enumerate(agents):
            arrival = spec.arrival or 0
            self._events.append((picoseconds(arrival), 0, place))
            if spec.cancel_after is not None:
                gone = picoseconds(arrival, spec.cancel_after)
                self._events.append((gone, 1, place))
        heapify(self._events)

    # One turn of the loop -------------------------------------------------------------

    def go_on(self) -> bool:
        """Run the next step, or equal steps; return False when all has ended."""
        self._happen()
        batch = self._batch
        if not batch.running and not batch.waiting:
            if not self._events:
                if self._roster:
                    self._stalled("agents are left that have nothing to run")
                return False
            self._idle()
        elif not (self._skip and batch.steady() and self._run_equal_steps()):
            self._run_step()
        return True

    def _happen(self) -> None:
        """Let all arrive and be cancelled whose time has come."""
        while self._events and self._events[0][0] <= self._now:
            _, is_cancellation, place = heappop(self._events)
            self._fruitless = 0
            if is_cancellation:
                self._cancel(self._agents[place])
            else:
                self._arrive(self._agents[place])

    def _idle(self) -> None:
        """Wait for the next event."""
        until = self._events[0][0]
        self._policy.advance(Fraction(until - self._now, PICOSECONDS))
        self._now = until

    def _run_step(self) -> None:
        """Run one step, whatever it does."""
        batch, preset = self._batch, self._preset
        before = batch.preemptions
        schedule = batch.schedule()
        if not schedule.chunks:
            if batch.preemptions > before:
                return  # the first gave way: the next schedule is another, at once
            if not self._events:
                self._stalled("nothing runs and nothing may start")
            self._idle()
            return
        for sequence in schedule.started:
            self._start(sequence)
        batch.compute(schedule)
        prefill: dict[str, int] = {}
        decode: dict[str, int] = {}
        ended = []
        service = 0
        for sequence, chunk in schedule.chunks.items():
            if sequence.prefilling:
                prefill[sequence.id] = chunk
                if sequence.computed < sequence.known:
                    continue
                sequence.prefilling = False
            service += sequence.produce()
            decode[sequence.id] = 1 if sequence.decode else 0
            if sequence.produced == sequence.decode:
                ended.append(sequence)
        held = batch.kv_tokens
        duration = preset.duration_ps(
            sum(prefill.values()), len(schedule.chunks), held, schedule.swapped
        )
        self._account(
            Step(prefill, decode), Lump(1, service, 0, self._now, duration, 0)
        )
        self._held += held
        self._finish(ended)

    def _run_equal_steps(self) -> bool:
        """Run steps in which all running decode and nothing else happens, at once.

        Return False when there is not even one.
        """
        batch, preset = self._batch, self._preset
        steps = batch.decodable()
        count = len(batch.running)
        held = batch.kv_tokens
        duration = preset.duration_ps(0, count, held + count)
        lengthening = preset.duration_ps(0, count, held + 2 * count) - duration
        service = sum(s.known + 1 for s in batch.running)
        lump = Lump(steps, service, count, self._now, duration, lengthening)
        if steps and self._events:
            wait = self._events[0][0] - self._now
            if lump.passed(steps) > wait:
                steps = _first(lambda n: lump.passed(n) >= wait, steps)
                lump = Lump(steps, service, count, self._now, duration, lengthening)
        if not steps:
            return False
        batch.decode(steps)
        decode = dict.fromkeys((s.id for s in batch.running), steps)
        self._account(Step({}, decode), lump)
        self._held += steps * held + count * steps * (steps + 1) // 2
        self._finish([s for s in batch.running if s.produced == s.decode])
        return True

    def _account(self, step: Step, lump: Lump) -> None:
        """Tell the policy and the meter of steps, and let their time pass."""
        self._policy.serve(step)
        self._meter.serve(lump)
        if self._meter.starting:
            self._meter.in_flight(s.owed for s in self._batch.running)
        self._fruitless = 0 if step.decode else self._fruitless + 1
        if self._fruitless > self._preset.capacity_tokens:
            self._stalled(f"no token in {self._fruitless} steps")
        passed = lump.passed(lump.steps)
        self._policy.advance(Fraction(passed, PICOSECONDS))
        self._now += passed
        self._steps += lump.steps

    # Agents and inferences ------------------------------------------------------------

    def _arrive(self, spec: AgentSpec) -> None:
        """Announce an agent, unless it is done already or can never be."""
        capacity = self._preset.capacity_tokens
        for inference in spec.inferences:
            longest = most_tokens(inference)
            if inference.prompt_tokens + longest > capacity:
                reason = (
                    f"inference {inference.id} may need {inference.prompt_tokens} + "
                    f"{longest} KV tokens, the engine has {capacity}"
                )
                self._results.agent(spec, "refused", self._now, reason=reason)
                self._progress(len(spec.inferences))
                return
        if not spec.inferences:
            arrival = picoseconds(spec.arrival or 0)
            self._results.agent(spec, "finished", arrival)
            return
        member = self._roster.arrive(spec)
        if not self._by_stage:
            self._meter.ready(member.seq, 0, spec.cost(_WORK), spec.weight)
        self._enqueue(self._roster.release(member))

    def _enqueue(self, tasks: list[Task]) -> None:
        """Take note of inferences that are in the policy's line now."""
        for task in tasks:
            member, spec = task.member, task.spec
            sequence = Sequence(
                task,
                spec.prompt_tokens,
                spec.decode_tokens,
                task.told.decode_tokens,
                most_tokens(spec),
            )
            self._sequences[sequence.id] = sequence
            self._batch.add(sequence)
            stage = task.told.stage
            if self._by_stage and not self._meter.knows(member.seq, stage):
                cost = member.spec.stage_costs(_WORK)[stage]
                self._meter.ready(member.seq, stage, cost, member.spec.weight)

    def _start(self, sequence: Sequence) -> None:
        """Take note of a sequence that the step to come starts."""
        again = sequence.start_step is not None
        if not again:
            sequence.start_step = self._steps
            sequence.start = self._now
        stage = sequence.task.told.stage if self._by_stage else 0
        seq = sequence.task.member.seq
        self._meter.start(seq, stage, sequence.cost, again=again)

    def _finish(self, ended: list[Sequence]) -> None:
        """Let sequences end that have all their tokens."""
        for sequence in ended:
            member = sequence.task.member
            self._forget(sequence, "finished")
            self._enqueue(self._roster.end(sequence.task))
            if not member.left:
                self._results.agent(member.spec, "finished", self._now, member)
        if ended:
            self._progress(len(ended))

    def _forget(self, sequence: Sequence, outcome: Outcome) -> None:
        """Take a sequence out of the engine and record it."""
        self._batch.remove(sequence)
        del self._sequences[sequence.id]
        self._results.inference(sequence, outcome, self._steps - 1, self._now)

    def _cancel(self, spec: AgentSpec) -> None:
        """Let an agent's user give up, if it has not ended."""
        member = self._roster.get(spec.id)
        if member is None:
            return
        delivered = self._results.delivered(spec)
        for task in self._roster.cancel(member):
            sequence = self._sequences[task.told.id]
            delivered += sequence.delivered
            self._forget(sequence, "cancelled")
        self._meter.cancel(member.seq, delivered)
        self._results.agent(spec, "cancelled", self._now, member, delivered=delivered)
        self._progress(member.left)

    # The end --------------------------------------------------------------------------

    def record(self) -> RunRecord:
        """Return the records of a run that has ended, in the workload's order."""
        lag = self._meter.result()
        room = self._steps * self._preset.capacity_tokens
        return RunRecord(
            policy=self._policy.name,
            agents=self._results.agents(self._meter),
            inferences=self._results.inferences(),
            steps=self._steps,
            utilisation=self._held / room if room else None,
            preemptions=self._batch.preemptions,
            lag=lag,
        )

    def _stalled(self, why: str) -> NoReturn:
        batch = self._batch
        raise EngineError(
            f"no progress under {self._policy.name or type(self._policy).__name__} "
            f"after {self._steps} steps, {self._now / PICOSECONDS:.3f} s: {why}; "
            f"{len(batch.running)} running, {len(batch.waiting)} waiting, "
            f"{batch.free} blocks free of {self._preset.capacity_tokens} tokens, "
            f"head of the line {shown(self._policy.peek())}"
        )

    def _check(self) -> None:
        """Assert all invariants."""
        self._batch._check()
        self._policy._check()
        assert sum(len(m.live) for m in self._roster) == len(self._sequences)


def _first(holds: Callable[[int], bool], most: int) -> int:
    """Return the least n from 1 to `most` for which `holds`, as from there on it does.

    Complexity: O(log most) calls.
    """
    return bisect_left(range(1, most), True, key=holds) + 1
