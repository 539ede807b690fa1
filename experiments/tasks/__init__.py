"""What cells do. Each task is given what JSON can hold and returns the same."""

from collections.abc import Callable
from importlib import import_module

from justitia.experiments.cells import Cell, Outcome

_MODULES = {
    "simulate": "simulate",
    "starve": "starve",
    "learn": "learn",
    "decide": "decide",
    "grow": "grow",
}
"""The module of each task, which has a function of the task's name."""

ALONE = frozenset({"decide"})
"""Tasks that nothing else should run beside, since they measure time."""


def perform(cell: Cell) -> Outcome:
    """Run a cell in this process."""
    module = import_module(f"{__name__}.{_MODULES[cell.task]}")
    task: Callable[..., Outcome] = getattr(module, cell.task)
    return task(**cell.given)
