"""Run several policies on one scenario, in processes of their own."""

import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context, resource_tracker
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from time import monotonic
from traceback import format_exception
from typing import Any

from justitia.engines.base import Engine, EngineError
from justitia.engines.document import Result
from justitia.engines.interrupts import held
from justitia.engines.records import RunRecord
from justitia.engines.registry import create_engine
from justitia.engines.scenario import Scenario
from justitia.engines.summary import BASELINE, summarise
from justitia.policy import PolicyError, create
from justitia.predictors import create as create_predictor

TELL_SECONDS = 0.1
"""How often a process tells how far it is."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """What to run: policies with their options, on one engine and one scenario.

    Parameters
    ----------
    engine
        What `create_engine` takes, ``name`` among it.
    policies
        Names, with the options of each.
    predictor
        What `justitia.predictors.create` makes a predictor from.
    tags
        What the fair reference finishes: ``"agent"`` or ``"stage"`` by stage. For a
        policy with an option of that name, the option says it.
    """

    scenario: Scenario
    engine: Mapping[str, Any]
    policies: Mapping[str, Mapping[str, Any]]
    predictor: str = "oracle"
    tags: str = "agent"

    def run_one(
        self,
        policy: str,
        progress: Callable[[int], None] | None = None,
        engine: Engine | None = None,
    ) -> RunRecord:
        """Run one of the policies on `engine`, or on one made for it.

        See `justitia.engines.Engine.run`.
        """
        options = self.policies[policy]
        predictor = create_predictor(self.predictor, self.scenario.seed)
        record = (engine or create_engine(**self.engine)).run(
            self.scenario.agents,
            create(policy, **options),
            predictor,
            tags=options.get("tags", self.tags),
            progress=progress,
        )
        return replace(record, notes=predictor.notes())


Tell = Callable[[str, int], None]


def run_all(
    comparison: Comparison,
    *,
    jobs: int = 1,
    progress: Tell | None = None,
    engine: Engine | None = None,
) -> list[Result]:
    """Run all policies and return their results in the order given.

    Results do not depend on `jobs`.

    Parameters
    ----------
    jobs
        Processes; 1 runs all in this one. More are spawned, which imports the main
        module again: a script that asks for them must have what it does under ``if
        __name__ == "__main__":``, and policies that it registers outside of that.
    progress
        Called with a policy's name and how many of its inferences have ended in all;
        with -1 when its run is over.
    engine
        The engine of the comparison, made already. One that is to run alone runs all
        policies in this process, one after the other, whatever `jobs` says.

    Raises
    ------
    EngineError
        Naming the policy, if its run fails or its process dies. No process is left.
    """
    tell = progress or (lambda policy, ended: None)
    jobs = min(jobs, len(comparison.policies))
    if jobs > 1 and not (engine is not None and engine.alone):
        records = dict(_in_processes(comparison, jobs, tell))
    else:
        records = dict(_in_this_process(comparison, engine, tell))
    baseline = records.get(BASELINE)
    return [
        Result(name, options, records[name], summarise(records[name], baseline))
        for name, options in comparison.policies.items()
    ]


def _run(
    comparison: Comparison,
    policy: str,
    tell: Callable[[int], None],
    engine: Engine | None = None,
) -> RunRecord:
    """Run one policy; whatever goes wrong is an EngineError that names it."""
    ended = 0

    def add(count: int) -> None:
        nonlocal ended
        ended += count
        tell(ended)

    try:
        return comparison.run_one(policy, add, engine)
    except PolicyError as error:
        raise EngineError(f"policy {policy!r}: {error}") from error
    except Exception as error:
        raise EngineError(
            f"policy {policy!r} failed: {type(error).__name__}: {error}"
        ) from error


def _in_this_process(
    comparison: Comparison, engine: Engine | None, tell: Tell
) -> Iterator[tuple[str, RunRecord]]:
    for name in comparison.policies:
        record = _run(comparison, name, partial(tell, name), engine)
        tell(name, -1)
        yield name, record


def _in_processes(
    comparison: Comparison, jobs: int, tell: Tell
) -> Iterator[tuple[str, RunRecord]]:
    todo = deque(comparison.policies)
    with _processes(comparison, jobs) as processes:
        running = {pipe: _ask(pipe, todo.popleft()) for pipe in processes}
        while running:
            for pipe in wait(list(running)):
                assert isinstance(pipe, Connection)
                name = running[pipe]
                try:
                    answer = pipe.recv()
                except (EOFError, OSError):
                    death = _death(processes[pipe])
                    raise EngineError(f"policy {name!r}: {death}") from None
                if isinstance(answer, int):
                    tell(name, answer)
                    continue
                if isinstance(answer, EngineError):
                    raise answer
                if todo:
                    running[pipe] = _ask(pipe, todo.popleft())
                else:
                    del running[pipe]
                tell(name, -1)
                yield name, answer


def _ask(pipe: Connection, name: str) -> str:
    """Let a process run a policy, and return its name."""
    with suppress(BrokenPipeError):  # found out where the answer is read
        pipe.send(name)
    return name


def _death(process: SpawnProcess) -> str:
    process.join()
    code = process.exitcode or 0
    how = f"exit code {code}" if code >= 0 else signal.Signals(-code).name
    hint = "; was memory short?" if code == -signal.SIGKILL else ""
    return f"its process ended before its run did ({how}{hint})"


@contextmanager
def _processes(
    comparison: Comparison, jobs: int
) -> Iterator[dict[Connection, SpawnProcess]]:
    """Start processes that run what is asked of them; end them all at the end."""
    context = get_context("spawn")
    processes: dict[Connection, SpawnProcess] = {}
    resource_tracker.ensure_running()  # or it is started below, and lets Ctrl-C in
    try:
        with held():  # Ctrl-C goes to all processes of a terminal
            for _ in range(jobs):
                here, there = context.Pipe()
                process = context.Process(
                    target=_work, args=(there, comparison), daemon=True
                )
                process.start()
                processes[here] = process
                there.close()  # so that the pipe ends when the process does
        yield processes
    finally:
        with held():
            for pipe, process in processes.items():
                process.kill()
                process.join()
                process.close()
                pipe.close()


def _work(pipe: Connection, comparison: Comparison) -> None:
    """Run the policies that are asked for, until nobody asks any more."""
    with suppress(EOFError, OSError):
        while True:
            name = pipe.recv()
            answer: RunRecord | EngineError
            try:
                answer = _run(comparison, name, _now_and_then(pipe.send))
            except EngineError as error:
                answer = error
                answer.add_note("".join(format_exception(error)))
            pipe.send(answer)


def _now_and_then(send: Callable[[int], None]) -> Callable[[int], None]:
    last = -TELL_SECONDS

    def tell(ended: int) -> None:
        nonlocal last
        if monotonic() - last >= TELL_SECONDS:
            last = monotonic()
            send(ended)

    return tell
