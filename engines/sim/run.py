"""One run of the simulated engine: its clock, its loop, and who is in it."""

from bisect import bisect_left
from collections.abc import Callable
from collections.abc import Sequence as Many
from fractions import Fraction
from typing import NoReturn

from justitia.engines.base import EngineError
from justitia.engines.course import Course
from justitia.engines.lag import Lump
from justitia.engines.records import RunRecord
from justitia.engines.results import PICOSECONDS
from justitia.engines.roster import Task
from justitia.engines.scaling import most_tokens
from justitia.engines.sim.batch import Batch
from justitia.engines.sim.sequence import Sequence
from justitia.policy import Policy, Step
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec


class Run(Course[Sequence]):
    """The state of one run, with a `go_on` that takes it further.

    `justitia.engines.sim.SimEngine` says what the parameters mean.
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
        super().__init__(
            agents, policy, predictor, by_stage=by_stage, progress=progress
        )
        self._policy = policy
        self._batch = batch
        self._preset = batch.preset
        self._skip = skip and policy.additive
        self._now = 0
        self._held = 0  # KV tokens, summed over steps
        self._fruitless = 0  # steps since the last token or event

    # One turn of the loop -------------------------------------------------------------

    def go_on(self) -> bool:
        """Run the next step, or equal steps; return False when all has ended."""
        if self._happen():
            self._fruitless = 0
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
            self._started(sequence, self._now)
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
        self._end(ended)

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
        self._end([s for s in batch.running if s.produced == s.decode])
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

    # An inference on this engine ------------------------------------------------------

    def _time(self) -> int:
        return self._now

    def _room(self) -> int:
        return self._batch.room

    def _enter(self, task: Task) -> Sequence:
        spec = task.spec
        sequence = Sequence(
            task,
            spec.prompt_tokens,
            spec.decode_tokens,
            task.told.decode_tokens,
            most_tokens(spec),
        )
        self._batch.add(sequence)
        return sequence

    def _gone(self, one: Sequence) -> None:
        self._batch.remove(one)

    def _end(self, ended: list[Sequence]) -> None:
        """Let sequences end that have all their tokens."""
        for sequence in ended:
            self._finish(sequence)
        if ended:
            self._progress(len(ended))

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
            limits=self._batch.limits,
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
        assert sum(len(m.live) for m in self._roster) == len(self._live)


def _first(holds: Callable[[int], bool], most: int) -> int:
    """Return the least n from 1 to `most` for which `holds`, as from there on it does.

    Complexity: O(log most) calls.
    """
    return bisect_left(range(1, most), True, key=holds) + 1
