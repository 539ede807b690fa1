"""Experiments as text: what they say, and their tables."""

from collections.abc import Sequence
from textwrap import fill

from rich.console import Console
from rich.table import Table as Grid

from justitia.experiments import Section, Table
from justitia.experiments.report import tied

_WIDE = 1000
"""Columns of the page that is laid out: nothing is cut off."""
_TEXT = 88
"""Columns of running text."""


def show(sections: Sequence[Section], heading: str, notes: Sequence[str]) -> None:
    """Print a heading, and of each experiment its tables and what came of it."""
    console = Console(width=_WIDE, soft_wrap=True, highlight=False, markup=False)
    console.print(_safe(heading))
    for note in notes:
        console.print(_safe(_filled(note)))
    for section in sections:
        console.print(f"\n{section.title}", style="bold")
        noted = ""
        for table in section.tables:
            console.print(f"\n{table.title}")
            console.print(_grid(table))
            if table.note and table.note != noted:
                console.print(_filled(table.note), style="dim")
                noted = table.note
        for finding in section.findings:
            console.print(_filled(finding, "- "))


def _grid(table: Table) -> Grid:
    grid = Grid(box=None, pad_edge=False)
    for column in table.columns:
        grid.add_column(
            column.heading, justify="left" if column.form == "text" else "right"
        )
    for row in table.written():
        grid.add_row(*row)
    return grid


def _filled(text: str, bullet: str = "") -> str:
    """Return text in lines, none of which ends between a figure and its unit."""
    further = " " * len(bullet)
    lines = fill(tied(text), _TEXT, initial_indent=bullet, subsequent_indent=further)
    return lines.replace("\u00a0", " ")


def _safe(text: str) -> str:
    """Return text that can be printed: names of files are bytes."""
    return text.encode(errors="backslashreplace").decode()
