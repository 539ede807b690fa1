"""The simulated engine: agents and a policy in, records out, to the last step."""

from bisect import bisect_left
from collections.abc import Callable
from collections.abc import Sequence as Many
from dataclasses import dataclass
from fractions import Fraction
from heapq import heapify, heappop

from justitia.engines.base import Engine, EngineError, conserved
from justitia.engines.lag import LagMeter, Lump
from justitia.engines.records import AgentRecord, InferenceRecord, Outcome, RunRecord
from justitia.engines.roster import Member, Roster, Task, inference_id
from justitia.engines.sim.admission import Admission
from justitia.engines.sim.batch import Batch
from justitia.engines.sim.preset import PICOSECONDS, Preset
from justitia.engines.sim.sequence import Sequence
from justitia.policy import KVTokenTime, Policy, Step
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec, InferenceSpec

PREEMPTIONS = ("recompute", "swap")

_WORK = KVTokenTime()


class SimEngine(Engine):
    """Simulates an engine that works as vLLM does, step by step.

    The cache is in blocks; prompts are computed in chunks under a budget of tokens a
    step; the head of the line is admitted or nobody; when decode outgrows the cache the
    policy's victim is taken out. A step's time is linear in what it does. Time is
    counted in whole picoseconds, so a run repeats to the last bit.

    Runs of equal steps are skipped in closed form where that changes nothing: where
    nothing waits, or service cannot reorder the line.

    Parameters
    ----------
    preset
        Memory, limits and step times.
    admission
        One of `justitia.engines.sim.RULES`.
    preemption
        ``"recompute"``, or ``"swap"``: its KV waits in host memory.
    skip
        False runs every step on its own; the result is the same.
    check
        Whether to assert all invariants after every step: for tests, slow.
    """

    name = "sim"

    def __init__(
        self,
        preset: Preset,
        *,
        admission: str = "none",
        preemption: str = "recompute",
        skip: bool = True,
        check: bool = False,
    ) -> None:
        if preemption not in PREEMPTIONS:
            raise EngineError(
                f"preemption must be one of {', '.join(PREEMPTIONS)}, "
                f"not {shown(preemption)}"
            )
        self.preset = preset
        self.admission = Admission(
            admission, preset.capacity_tokens // preset.block_size, preset.block_size
        )
        self.preemption = preemption
        self._skip = skip
        self._check = check

    def run(
        self,
        agents: Many[AgentSpec],
        policy: Policy,
        predictor: Predictor,
        *,
        tags: str = "agent",
        progress: Callable[[int], None] | None = None,
    ) -> RunRecord:
        """Run all agents to their end; see `Engine.run`.

        Complexity: O(r) for each step that is not skipped, with r running, plus the
        policy's own.
        """
        run = _Run(self, agents, policy, predictor, tags=tags, progress=progress)
        while run.go_on():
            if self._check:
                run.check()
        injected = sum(len(spec.inferences) for spec in agents)
        return conserved(run.record(), injected)


class _Run:
    """The state of one run. Times are in picoseconds."""

    def __init__(
        self,
        engine: SimEngine,
        agents: Many[AgentSpec],
        policy: Policy,
        predictor: Predictor,
        *,
        tags: str,
        progress: Callable[[int], None] | None,
    ) -> None:
        if tags not in ("agent", "stage"):
            raise EngineError(f"tags must be agent or stage, not {shown(tags)}")
        ids = [spec.id for spec in agents]
        if len(set(ids)) != len(ids):
            twice = next(i for i in ids if ids.count(i) > 1)
            raise EngineError(f"agent {shown(twice)} is in the workload twice")
        self._agents = agents
        self._policy = policy
        self._preset = engine.preset
        self._skip = engine._skip and policy.additive
        self._by_stage = tags == "stage"
        self._progress = progress or (lambda ended: None)
        self._roster = Roster(policy, predictor)
        self._batch = Batch(
            engine.preset,
            engine.admission,
            policy,
            swap=engine.preemption == "swap",
        )
        self._meter = LagMeter()
        self._now = 0
        self._steps = 0
        self._held = 0  # KV tokens, summed over steps
        self._fruitless = 0  # steps since the last token
        self._sequences: dict[str, Sequence] = {}  # in line or running
        self._ends: dict[str, _End] = {}  # of agents
        self._records: dict[str, InferenceRecord] = {}
        # (time, 0 for an arrival and 1 for a cancellation, place in the workload)
        self._events = [
            (_picoseconds(spec.arrival or 0), 0, place)
            for place, spec in enumerate(agents)
        ] + [
            (_picoseconds((spec.arrival or 0) + spec.cancel_after), 1, place)
            for place, spec in enumerate(agents)
            if spec.cancel_after is not None
        ]
        heapify(self._events)

    # One turn of the loop -------------------------------------------------------------

    def go_on(self) -> bool:
        """Run the next step, or equal steps; return False when all has ended."""
        self._happen()
        batch = self._batch
        if not batch.running and not batch.waiting:
            if not self._events:
                return False
            self._idle()
        elif not (self._skip and batch.steady() and self._run_equal_steps()):
            self._run_step()
        return True

    def _happen(self) -> None:
        """Let all arrive and be cancelled whose time has come."""
        while self._events and self._events[0][0] <= self._now:
            _, is_cancellation, place = heappop(self._events)
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
        schedule = batch.schedule()
        if not schedule.chunks:
            if not self._events:
                self._stalled("nothing runs and nothing may start")
            self._idle()
            return
        for sequence in schedule.started:
            self._start(sequence)
        prefill: dict[str, int] = {}
        decode: dict[str, int] = {}
        ended = []
        service = 0
        for sequence, chunk in schedule.chunks.items():
            if sequence.prefilling:
                prefill[sequence.id] = chunk
            sequence.computed += chunk
            if sequence.computed < sequence.known:
                continue
            sequence.prefilling = False
            token = min(1, sequence.decode)  # none where only the prompt was asked for
            before = sequence.delivered if sequence.produced else 0
            sequence.produced += token
            service += sequence.delivered - before
            decode[sequence.id] = token
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
            self._meter.in_flight(s.cost - s.delivered for s in self._batch.running)
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
            longest = _longest(inference)
            if inference.prompt_tokens + longest > capacity:
                reason = (
                    f"inference {inference.id} may need {inference.prompt_tokens} + "
                    f"{longest} KV tokens, the engine has {capacity}"
                )
                self._end_agent(spec, "refused", reason=reason)
                return
        if not spec.inferences:
            self._end_agent(spec, "finished")
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
                _longest(spec),
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
                self._end_agent(member.spec, "finished", member)
        self._progress(len(ended))

    def _forget(self, sequence: Sequence, outcome: Outcome) -> None:
        """Take a sequence out of the engine and record it."""
        self._batch.remove(sequence)
        del self._sequences[sequence.id]
        finished = outcome == "finished"
        self._records[sequence.id] = InferenceRecord(
            sequence.id,
            sequence.task.member.spec.id,
            sequence.task.told.stage,
            outcome,
            sequence.start_step,
            self._steps - 1 if finished else None,
            None if sequence.start is None else sequence.start / PICOSECONDS,
            self._now / PICOSECONDS if finished else None,
            sequence.preempted,
        )

    def _cancel(self, spec: AgentSpec) -> None:
        """Let an agent's user give up, if it has not ended."""
        member = self._roster.get(spec.id)
        if member is None:
            return
        delivered = 0
        for inference in spec.inferences:
            name = inference_id(spec, inference)
            if name in self._sequences:
                delivered += self._sequences[name].delivered
            elif name in self._records:
                delivered += _WORK(inference.prompt_tokens, inference.decode_tokens)
        for task in self._roster.cancel(member):
            self._forget(self._sequences[task.told.id], "cancelled")
        self._meter.cancel(member.seq, delivered)
        self._end_agent(spec, "cancelled", member, delivered=delivered)

    def _end_agent(
        self,
        spec: AgentSpec,
        outcome: Outcome,
        member: Member | None = None,
        *,
        delivered: int | None = None,
        reason: str = "",
    ) -> None:
        self._ends[spec.id] = _End(outcome, self._now, member, delivered, reason)

    # The end --------------------------------------------------------------------------

    def record(self) -> RunRecord:
        """Return the records of a run that has ended, in the workload's order."""
        lag = self._meter.result()
        inferences = []
        for spec in self._agents:
            stages = spec.depths()
            outcome = self._ends[spec.id].outcome
            for inference, stage in zip(spec.inferences, stages, strict=True):
                name = inference_id(spec, inference)
                record = self._records.get(name) or InferenceRecord(
                    name, spec.id, stage, outcome, None, None, None, None, 0
                )
                inferences.append(record)
        held = self._held / (self._steps * self._preset.capacity_tokens or 1)
        return RunRecord(
            policy=self._policy.name,
            agents=tuple(self._agent_record(spec) for spec in self._agents),
            inferences=tuple(inferences),
            steps=self._steps,
            utilisation=held if self._steps else None,
            preemptions=self._batch.preemptions,
            lag=lag,
        )

    def _agent_record(self, spec: AgentSpec) -> AgentRecord:
        end = self._ends[spec.id]
        member = end.member
        reached = None if member is None else self._meter.reached(member.seq)
        cost = spec.cost(_WORK) if end.delivered is None else end.delivered
        return AgentRecord(
            id=spec.id,
            kind=spec.kind,
            arrival=float(spec.arrival or 0),
            finish=end.time / PICOSECONDS if end.outcome == "finished" else None,
            cost=cost,
            predicted_cost=None if member is None else member.predicted.cost,
            tag=None if member is None else member.tag,
            reference_finish=None if reached is None else float(reached / PICOSECONDS),
            outcome=end.outcome,
            reason=end.reason,
        )

    def _stalled(self, why: str) -> None:
        batch = self._batch
        head = self._policy.peek()
        raise EngineError(
            f"no progress under {self._policy.name or type(self._policy).__name__} "
            f"after {self._steps} steps, {self._now / PICOSECONDS:.3f} s: {why}; "
            f"{len(batch.running)} running, {len(batch.waiting)} waiting, "
            f"{batch.free} blocks free of {self._preset.capacity_tokens} tokens, "
            f"head of the line {shown(head)}"
        )

    def check(self) -> None:
        """Assert all invariants."""
        self._batch._check()
        self._policy._check()
        live = sum(len(m.live) for m in self._roster)
        assert live == len(self._sequences)


@dataclass(frozen=True, slots=True)
class _End:
    """How and when an agent ended; `delivered` if it was cancelled."""

    outcome: Outcome
    time: int
    member: Member | None
    delivered: int | None
    reason: str


def _longest(inference: InferenceSpec) -> int:
    if inference.max_tokens is None:
        return inference.decode_tokens
    return inference.max_tokens


def _picoseconds(seconds: float) -> int:
    return round(seconds * PICOSECONDS)


def _first(holds: Callable[[int], bool], most: int) -> int:
    """Return the least n from 1 to `most` for which `holds`, as from there on it does.

    Complexity: O(log most) calls.
    """
    return bisect_left(range(1, most), True, key=holds) + 1
