"""A cell: one run of an experiment, and all that decides how it comes out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Outcome = Mapping[str, Any]
"""What JSON can hold: ``result``, the same in every run, and ``timings``, which are
not."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One run; two are equal when they are the same run.

    Parameters
    ----------
    task
        A name in `justitia.experiments.tasks`.
    text
        What the task is given, as canonical JSON. Use `cell` to make it.
    size
        Roughly how long it takes, in inferences simulated: the large ones go first.
    """

    task: str
    text: str
    size: float = field(default=0.0, compare=False)

    @property
    def given(self) -> dict[str, Any]:
        """What the task is given."""
        given = json.loads(self.text)
        assert isinstance(given, dict)
        return given

    def __str__(self) -> str:
        told = ", ".join(f"{name} {value}" for name, value in self.given.items())
        return f"{self.task} ({told})"


def cell(task: str, size: float = 0.0, **given: object) -> Cell:
    """Return the cell of a task with what it is given.

    >>> cell("simulate", seed=7, policy="vtc") == cell("simulate", policy="vtc", seed=7)
    True
    """
    text = json.dumps(given, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return Cell(task, text, size)
