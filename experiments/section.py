"""What an experiment comes to: tables, figures, and what they say."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from justitia.experiments.cells import Cell, Outcome
from justitia.experiments.scope import Scope
from justitia.experiments.table import Table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

Outcomes = Mapping[Cell, Outcome]


@dataclass(frozen=True, slots=True)
class Figure:
    """A figure, and who draws it.

    Parameters
    ----------
    name
        Of its files.
    caption
        What it shows.
    draw
        Fills an empty figure of matplotlib.
    timed
        Whether it shows times of the clock on the wall.
    """

    name: str
    caption: str
    draw: Callable[["Drawing"], None]
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Section:
    """An experiment's part of a report.

    Parameters
    ----------
    about
        What was run, and what the paper says of it.
    findings
        What came, and where it differs from the paper and why, a paragraph each.
    highlights
        Figures to put at the top of a report: what it is, ours, the paper's.
    """

    name: str
    title: str
    about: str
    findings: Sequence[str] = ()
    tables: Sequence[Table] = ()
    figures: Sequence[Figure] = ()
    highlights: Sequence[tuple[str, str, str]] = ()

    @property
    def timed(self) -> bool:
        """Whether something in it was timed."""
        tables = any(table.timed for table in self.tables)
        return tables or any(figure.timed for figure in self.figures)


@dataclass(frozen=True, slots=True)
class Experiment:
    """What an experiment needs, and what it makes of it.

    Parameters
    ----------
    title
        What it is about, for people.
    cells
        The runs that it needs.
    section
        What they come to.
    missing
        Says what is not installed that it needs; empty where nothing is missing.
    """

    name: str
    title: str
    cells: Callable[[Scope], list[Cell]]
    section: Callable[[Scope, Outcomes], Section]
    missing: Callable[[], str] = lambda: ""
