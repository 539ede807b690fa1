"""Run several policies on one scenario, in processes of their own."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.sharedctypes import Synchronized
from typing import Any

from justitia.engines.document import Result
from justitia.engines.records import RunRecord
from justitia.engines.registry import create_engine
from justitia.engines.scenario import Scenario
from justitia.engines.summary import BASELINE, summarise
from justitia.policy import create
from justitia.predictors import create as create_predictor

POLL_SECONDS = 0.1


@dataclass(frozen=True, slots=True)
class Comparison:
    """What to run: policies with their options, on one engine and one scenario.

    Parameters
    ----------
    engine
        What `create_engine` takes, ``name`` among it.
    policies
        Names, with the options of each.
    tags
        What the fair reference finishes: ``"agent"`` or ``"stage"`` by stage.
    """

    scenario: Scenario
    engine: Mapping[str, str]
    policies: Mapping[str, Mapping[str, Any]]
    predictor: str = "oracle"
    tags: str = field(default="agent")

    def run_one(
        self, policy: str, progress: Callable[[int], None] | None = None
    ) -> RunRecord:
        """Run one of the policies."""
        return create_engine(**self.engine).run(
            self.scenario.agents,
            create(policy, **self.policies[policy]),
            create_predictor(self.predictor, self.scenario.seed),
            tags=self.tags,
            progress=progress,
        )

    def check(self) -> None:
        """Raise what a wrong name or option would raise, before anything is run."""
        create_engine(**self.engine)
        create_predictor(self.predictor, self.scenario.seed)
        for name, options in self.policies.items():
            create(name, **options)


def run_all(
    comparison: Comparison,
    *,
    jobs: int = 1,
    progress: Callable[[str, int], None] | None = None,
) -> list[Result]:
    """Run all policies and return their results in the order given.

    Parameters
    ----------
    jobs
        Processes; 1 runs all in this one.
    progress
        Called with a policy's name and how many of its inferences have ended in all;
        with -1 when its run is over.
    """
    tell = progress or (lambda policy, ended: None)
    records = dict(_records(comparison, min(jobs, len(comparison.policies)), tell))
    baseline = records.get(BASELINE)
    return [
        Result(name, options, records[name], summarise(records[name], baseline))
        for name, options in comparison.policies.items()
    ]


def _records(
    comparison: Comparison, jobs: int, tell: Callable[[str, int], None]
) -> Iterator[tuple[str, RunRecord]]:
    if jobs > 1:
        yield from _in_processes(comparison, jobs, tell)
        return
    for name in comparison.policies:
        ended = 0

        def add(count: int, name: str = name) -> None:
            nonlocal ended
            ended += count
            tell(name, ended)

        yield name, comparison.run_one(name, add)
        tell(name, -1)


_comparison: Comparison
_counters: "Sequence[Synchronized[int]]"


def _begin(comparison: Comparison, counters: "Sequence[Synchronized[int]]") -> None:
    global _comparison, _counters
    _comparison, _counters = comparison, counters


def _work(place: int, name: str) -> RunRecord:
    counter = _counters[place]

    def add(count: int) -> None:
        with counter.get_lock():
            counter.value += count

    return _comparison.run_one(name, add)


def _in_processes(
    comparison: Comparison, jobs: int, tell: Callable[[str, int], None]
) -> Iterator[tuple[str, RunRecord]]:
    context = get_context("spawn")
    names = list(comparison.policies)
    counters = [context.Value("L", 0) for _ in names]
    with ProcessPoolExecutor(
        jobs, context, initializer=_begin, initargs=(comparison, counters)
    ) as pool:
        pending: dict[Future[RunRecord], int] = {
            pool.submit(_work, place, name): place for place, name in enumerate(names)
        }
        try:
            while pending:
                done, _ = wait(pending, POLL_SECONDS, FIRST_COMPLETED)
                for place in pending.values():
                    tell(names[place], counters[place].value)
                for future in done:
                    name = names[pending.pop(future)]
                    yield name, future.result()
                    tell(name, -1)
        finally:
            for future in pending:
                future.cancel()
