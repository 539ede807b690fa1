"""What became of every property, in a terminal of 80 columns."""

from __future__ import annotations

from collections import Counter

from rich.console import Console
from rich.table import Table

from justitia import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:  # it needs hypothesis
    from justitia.proofs.verify import Report, Result

SHOWN = 60
"""Lines of a history that are printed; the JSON has all."""
_ALL = "--json FILE has all"
_WIDE = 1000
"""Columns of the page that is laid out: a terminal wraps what is too wide for it."""
_STYLES = {"held": "green", "broken": "bold red", "not offered": "dim"}


def show(report: Report) -> None:
    """Print a table of all properties, then each that is broken, and how."""
    console = Console(width=_WIDE, soft_wrap=True, highlight=False, markup=False)
    console.print(
        f"justitia {__version__} verifies {report.policy}, profile {report.profile}, "
        f"seed {report.seed}\n"
    )
    console.print(_table(report))
    for result in report.results:
        if result.status == "broken":
            _show_broken(console, result)
    counts = Counter(result.status for result in report.results)
    said = ", ".join(f"{counts[one]} {one}" for one in _STYLES if counts[one])
    count = len(report.results)
    console.print(f"\n{count} propert{'y' if count == 1 else 'ies'}: {said}.")


def _table(report: Report) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("property")
    table.add_column("verdict")
    table.add_column("examples", justify="right")
    for result in report.results:
        table.add_row(
            result.name,
            result.status,
            f"{result.examples:,}" if result.examples else f"({result.message})",
            style=_STYLES[result.status] if result.status != "held" else None,
        )
    return table


def _show_broken(console: Console, result: Result) -> None:
    console.print(f"\n{result.name} is broken: {result.says}", style="bold")
    console.print(result.message, style="red")
    lines = result.history
    if len(lines) > SHOWN:
        more = len(lines) - SHOWN
        lines = (
            *lines[: SHOWN // 2],
            f"… {more:,} lines left out ({_ALL})",
            *lines[-SHOWN // 2 :],
        )
    for line in lines:
        console.print(f"    {line}")
