"""A workload on a real engine, in this process: agents come, the engine works.

Time is the engine's: it passes while the engine works, and is skipped while there is
nothing to run. So a run takes as long as it must, and no longer.
"""

from collections.abc import Callable, Sequence
from time import perf_counter_ns
from typing import NoReturn

from justitia.engines.base import EngineError
from justitia.engines.course import Course
from justitia.engines.lag import Lump
from justitia.engines.limits import without_displacing
from justitia.engines.records import RunRecord
from justitia.engines.results import PICOSECONDS
from justitia.engines.roster import Task
from justitia.engines.scaling import most_tokens
from justitia.engines.serving.announced import Announced
from justitia.engines.serving.backend import Backend
from justitia.engines.serving.running import Running
from justitia.policy import Policy, Step
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

_LEAST = 1
"""Tokens of a prompt and of an output: no real engine does with less."""
MOST_FRUITLESS = 1_000
"""Steps without a token after which a run is given up."""


class LiveRun(Course[Running]):
    """One run of a workload on a backend; the witness of its agents.

    Parameters
    ----------
    policy
        The one that the backend's `agents` have; to name it in messages and records.
    by_stage
        What the fair reference of the lag finishes.
    progress
        Called with how many inferences ended since its last call.

    Attributes
    ----------
    _clock
        The time in nanoseconds; of the class, so that another may count another time.
    """

    _clock: Callable[[], int] = staticmethod(perf_counter_ns)

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
        super().__init__(
            agents,
            Announced(backend),
            predictor,
            by_stage=by_stage,
            progress=progress,
            least=_LEAST,
        )
        self._policy = policy
        self._backend = backend
        self._used = 0.0
        self._preemptions = 0
        self._fruitless = 0
        self._produced = 0
        self._skipped = 0  # time in which nothing was there to run
        self._began = self._clock()
        self._step_began = 0
        backend.agents.witness = self

    def run(self) -> RunRecord:
        """Run to the end.

        Raises
        ------
        EngineError
            If the engine stalls, or ends a request before it has its tokens.
        """
        while self._events or self._live:
            self._happen()
            if self._live:
                self._run_step()
            elif self._events:
                self._skipped += max(0, self._events[0][0] - self._time())
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
                one.inside = True
                self._started(one, self._step_began)
        service = 0
        for request_id, count in step.decode.items():
            one = self._of(request_id)
            if one is not None:
                service += one.produce(count)
                self._produced += count
        took = self._time() - self._step_began
        self._meter.serve(Lump(1, service, 0, self._step_began, took, 0))
        if self._meter.starting:
            self._meter.in_flight(one.owed for one in self._live.values() if one.inside)
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
        self._step_began = self._time()
        ended = self._backend.step()
        for name in ended:
            one = self._live.get(name)
            if one is None:
                continue  # it was cancelled, or has ended before
            if one.missing:
                self._fail(
                    f"ended {shown(name)} after {one.produced} tokens, "
                    f"{one.missing} too early"
                )
            self._end(one)
        self._end_satisfied()
        self._fruitless = 0 if self._produced > produced else self._fruitless + 1
        if self._fruitless > MOST_FRUITLESS:
            self._fail(f"produced no token in {self._fruitless} steps")

    def _end_satisfied(self) -> None:
        """End those that have their tokens and could go on, as a stop string would."""
        done = [one for one in self._live.values() if one.may_go_on_too_long]
        if done:
            self._backend.abort([one.id for one in done])
        for one in done:
            self._end(one)

    # A request of this engine -----------------------------------------------------

    def _time(self) -> int:
        return (self._clock() - self._began) * 1_000 + self._skipped

    def _room(self) -> int:
        return self._backend.room

    def _enter(self, task: Task) -> Running:
        spec, told = task.spec, task.told
        self._backend.add(
            told.id,
            max(_LEAST, spec.prompt_tokens),
            max(_LEAST, most_tokens(spec)),
            {
                "agent": task.member.spec.id,
                "stage": told.stage,
                "tokens": told.decode_tokens,
            },
        )
        return Running(task)

    def _cached(self, one: Running) -> int | None:
        return self._backend.cached(one.id)

    def _end(self, one: Running) -> None:
        self._finish(one)
        self._progress(1)

    # What all of them need --------------------------------------------------------

    def _of(self, request_id: str) -> Running | None:
        return self._live.get(self._backend.name(request_id))

    def _fail(self, what: str) -> NoReturn:
        waiting = sum(not one.inside for one in self._live.values())
        raise EngineError(
            f"the engine {what}, under {self._policy.name or type(self._policy)} "
            f"after {self._steps} steps, {self._time() / PICOSECONDS:.3f} s; "
            f"{len(self._live) - waiting} running, {waiting} waiting, "
            f"head of the line {shown(self._policy.peek())}"
        )
