"""Runs the cells that have not been run, on all cores."""

import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence

from justitia.engines.base import EngineError
from justitia.engines.interrupts import held
from justitia.experiments.cells import Cell, Outcome
from justitia.experiments.store import Store
from justitia.experiments.tasks import ALONE, perform
from justitia.policy import PolicyError

Tell = Callable[[Cell], None]


def run(
    cells: Iterable[Cell],
    store: Store,
    *,
    jobs: int = 1,
    progress: Tell | None = None,
) -> dict[Cell, Outcome]:
    """Return what all cells come to; those in `store` are not run again.

    Results do not depend on `jobs`, and an interrupt loses only what was being run.

    Parameters
    ----------
    jobs
        Processes. Tasks that measure time run after the others, one by one.
    progress
        Told of each cell that is there, at once of those that were.

    Raises
    ------
    EngineError
        Naming the cell, if it fails or its process dies.
    ExperimentError
        If the store cannot be written to.
    """
    tell = progress or (lambda cell: None)
    found: dict[Cell, Outcome] = {}
    todo = []
    for cell in dict.fromkeys(cells):
        known = store.load(cell)
        if known is None:
            todo.append(cell)
        else:
            found[cell] = known
            tell(cell)
    todo.sort(key=lambda cell: -cell.size)

    def keep(cell: Cell, outcome: Outcome) -> None:
        store.save(cell, outcome)
        found[cell] = outcome
        tell(cell)

    together = [cell for cell in todo if cell.task not in ALONE]
    if jobs > 1 and len(together) > 1:
        _in_processes(together, min(jobs, len(together)), keep)
    else:
        for cell in together:
            keep(cell, _perform(cell))
    for cell in todo:
        if cell.task in ALONE:
            keep(cell, _perform(cell))
    return found


def _in_processes(
    cells: Sequence[Cell], jobs: int, keep: Callable[[Cell, Outcome], None]
) -> None:
    from multiprocessing.resource_tracker import ensure_running  # noqa: PLC0415

    from joblib import Parallel, delayed, parallel_config  # noqa: PLC0415 - an extra
    from joblib.externals.loky import get_reusable_executor  # noqa: PLC0415
    from joblib.externals.loky.process_executor import (  # noqa: PLC0415
        TerminatedWorkerError,
    )

    # A library that computes with several threads may round otherwise than with one.
    with parallel_config(
        "loky", n_jobs=jobs, inner_max_num_threads=1,
        initializer=_belong_to, initargs=(os.getpid(),),
    ):  # fmt: skip
        # No more is handed out than fits into its queue: loky, interrupted, stumbles
        # over the rest and says so.
        parallel = Parallel(
            return_as="generator_unordered", batch_size=1, pre_dispatch=2 * jobs
        )
        ensure_running()  # or that would let Ctrl-C through when the first is started
        try:
            with held():  # the processes start here, and must not hear of it
                outcomes = parallel(
                    delayed(_numbered)(place, cell) for place, cell in enumerate(cells)
                )
            for place, outcome in outcomes:
                keep(cells[place], outcome)
        except TerminatedWorkerError as error:
            raise EngineError(
                f"a process of the experiment ended before its run did: {error}"
            ) from None
        finally:
            with held():  # or a second Ctrl-C would leave the processes behind
                get_reusable_executor().shutdown(kill_workers=True)


def _belong_to(parent: int) -> None:
    """Let this process end soon after its parent, whatever that was ended by.

    It would wait for more to do, and keep the parent's standard output open.
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def _numbered(place: int, cell: Cell) -> tuple[int, Outcome]:
    """Run a cell, and say which it was."""
    return place, _perform(cell)


def _perform(cell: Cell) -> Outcome:
    try:
        return perform(cell)
    except EngineError as error:
        raise EngineError(f"{cell}: {error}") from error
    except PolicyError:
        raise  # of something that the user named
    except Exception as error:
        raise EngineError(f"{cell} failed: {type(error).__name__}: {error}") from error
