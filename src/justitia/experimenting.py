"""What `justitia experiment` does with its settings."""

import os
import shlex
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from rich.console import Console

from justitia import __version__
from justitia.engines.scenario import check_arrivals, check_workload
from justitia.experiments import (
    EXPERIMENTS,
    Cell,
    Experiment,
    ExperimentError,
    Scope,
    Store,
    check_installed,
    contents,
    names,
    run,
)
from justitia.experiments.folder import results, text
from justitia.experiments.scope import FULL_SEEDS, QUICK_SEEDS
from justitia.output import STANDARD, Output
from justitia.policy import PolicyError
from justitia.policy.exact import shown
from justitia.progress import Progresses
from justitia.sections import show
from justitia.typed import whole

ALL = "all"
OUT = "results"
LARGEST_SEED = 2**63 - 1
MOST_SEEDS = 1000
MOST_AGENTS = 10**7
MOST_JOBS = 1024
_whole = partial(whole, error=ExperimentError)


@dataclass(frozen=True, slots=True)
class ExperimentSettings:
    """What to run, where to, and on how many cores."""

    chosen: tuple[str, ...]
    scope: Scope
    out: str = OUT
    jobs: int = 1
    json_file: str | None = None


def load(
    name: str,
    *,
    quick: bool = False,
    out: str | None = None,
    seeds: str | None = None,
    seed: str | None = None,
    agents: str | None = None,
    workload: str | None = None,
    arrivals: str | None = None,
    data: str | None = None,
    jobs: str | None = None,
    json: str | None = None,
) -> ExperimentSettings:
    """Return the settings that a command line says. Arguments are as they were typed.

    Raises
    ------
    PolicyError
        For the first that cannot be used.
    """
    if name != ALL and name not in EXPERIMENTS:
        raise ExperimentError(
            f"no experiment {shown(name)}; there are: {', '.join(names())} and {ALL}"
        )
    few = QUICK_SEEDS if quick else FULL_SEEDS
    given: dict[str, str] = {}
    if workload is not None:
        _said("--workload", check_workload, workload)
        given["workload"] = workload
    if arrivals is not None:
        _said("--arrivals", check_arrivals, arrivals)
        if arrivals == "burst":
            raise ExperimentError("--arrivals: a burst has no density to compare")
        given["arrivals"] = arrivals
    if data is not None:
        if not Path(data).exists():
            raise ExperimentError(
                f"--data: must be a file or folder of agents that is there, "
                f"not {shown(data)}"
            )
        given["data"] = data
    if out == "":
        raise ExperimentError("--out: must not be empty")
    scope = Scope(
        seed=_whole("--seed", seed, 7, 0, LARGEST_SEED - MOST_SEEDS),
        seeds=_whole("--seeds", seeds, few, 1, MOST_SEEDS),
        quick=quick,
        agents=_whole("--agents", agents, 300, 10, MOST_AGENTS),
        **given,
    )
    return ExperimentSettings(
        tuple(EXPERIMENTS) if name == ALL else (name,),
        scope,
        OUT if out is None else out,
        _whole("--jobs", jobs, os.cpu_count() or 1, 1, MOST_JOBS),
        json,
    )


def experiment_settings(settings: ExperimentSettings) -> None:
    """Run what the settings say, write the folder, and show the tables.

    Raises
    ------
    EngineError
        If a run failed.
    PolicyError
        If something that is needed is not installed, or cannot be used.
    OSError
        If results cannot be written.
    """
    check_installed("justitia experiment")
    folder = Path(settings.out)
    scope = settings.scope
    chosen, notes = _possible(settings.chosen)
    if scope.workload != Scope.workload:
        notes.append(
            f"The agents are those of {shown(scope.workload)}: figures are theirs, but "
            "what is said of classes, sizes and the mix is said of the paper's."
        )
    with ExitStack() as stack:
        _make(folder)
        json = None
        if settings.json_file is not None:
            json = stack.enter_context(Output(settings.json_file))
        store = Store(folder / "cells", __version__)
        needed = {one.name: dict.fromkeys(one.cells(scope)) for one in chosen}
        found = run(
            [cell for cells in needed.values() for cell in cells],
            store,
            jobs=settings.jobs,
            progress=stack.enter_context(_Told(needed)).tell,
        )
        sections = [one.section(scope, found) for one in chosen]
        command = _command(settings)
        for name, content in contents(
            sections, scope, version=__version__, command=command, notes=notes
        ):
            with Output(str(folder / name)) as output:
                output.save(content)
        if json is not None:
            json.save(text(results(sections, scope, __version__, notes)).encode())
    if settings.json_file != STANDARD:
        show(sections, _heading(scope), notes)
        print(f"\nThe report is {folder / 'report.html'}")


def _possible(chosen: Sequence[str]) -> tuple[list[Experiment], list[str]]:
    """Return the experiments that can be run here, and what to say of the others.

    Raises
    ------
    ExperimentError
        If it is the only one that was asked for.
    """
    possible, notes = [], []
    for name in chosen:
        experiment = EXPERIMENTS[name]
        missing = experiment.missing()
        if not missing:
            possible.append(experiment)
        elif len(chosen) == 1:
            raise ExperimentError(missing)
        else:
            notes.append(f"Left out: {name}. {missing}.")
    return possible, notes


class _Told(ExitStack):
    """The progress of experiments, a bar each; a cell may be of several."""

    def __init__(self, needed: dict[str, dict[Cell, None]]) -> None:
        super().__init__()
        self._needed = needed
        self._done: Counter[str] = Counter()
        self._bars = self.enter_context(
            Progresses(
                Console(stderr=True),
                list(needed),
                {name: len(cells) for name, cells in needed.items()},
            )
        )

    def tell(self, cell: Cell) -> None:
        """Show that a cell is there."""
        for name, cells in self._needed.items():
            if cell in cells:
                self._done[name] += 1
                over = self._done[name] == len(cells)
                self._bars.tell(name, -1 if over else self._done[name])


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ExperimentError(
            f"--out: {folder}: cannot be made: {error.strerror or error}"
        ) from None


def _heading(scope: Scope) -> str:
    seeds = scope.all_seeds
    drawn = f"seeds {seeds[0]} to {seeds[-1]}" if len(seeds) > 1 else f"seed {seeds[0]}"
    return (
        f"justitia {__version__} on sim, {drawn}, {scope.agents:,} agents "
        f"({scope.workload}), arrivals {scope.arrivals or 'poisson'}"
    )


def _command(settings: ExperimentSettings) -> str:
    """Return the command that repeats this."""
    scope, plain = settings.scope, Scope()
    name = ALL if len(settings.chosen) > 1 else settings.chosen[0]
    words = ["justitia", "experiment", name]
    if scope.quick:
        words.append("--quick")
    few = QUICK_SEEDS if scope.quick else FULL_SEEDS
    for flag, value, default in (
        ("seed", scope.seed, plain.seed),
        ("seeds", scope.seeds, few),
        ("agents", scope.agents, plain.agents),
        ("workload", scope.workload, plain.workload),
        ("arrivals", scope.arrivals, plain.arrivals),
        ("data", scope.data, plain.data),
    ):
        if value != default:
            words += [f"--{flag}", str(value)]
    return shlex.join(words)


def _said(flag: str, check: Callable[[str], None], value: str) -> None:
    try:
        check(value)
    except PolicyError as error:
        raise ExperimentError(f"{flag}: {error}") from None
