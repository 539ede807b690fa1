"""Rows of a CSV file whose first line names the columns."""

import csv
import re
from collections.abc import Iterable, Iterator

from justitia.policy.exact import LARGEST, MOST_TOKENS, shown
from justitia.workloads.files.lines import fault
from justitia.workloads.files.row import Row

_DIGITS = re.compile(r"[0-9]{1,19}")
_NUMBER = re.compile(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?")


def table(path: object, lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """Yield the rows, all cells as strings.

    Raises
    ------
    WorkloadError
        Naming the file and the line, when a row has too few or too many cells.
    """
    columns: list[str] = []
    for number, text in lines:
        cells = cells_of(path, number, text)
        if not columns:
            columns = cells
            continue
        if len(cells) != len(columns):
            raise fault(
                path, number, f"has {len(cells)} cells, not {len(columns)}: "
                f"{shown(text)}",
            )  # fmt: skip
        yield Row(path, number, dict(zip(columns, cells, strict=True)))


def cells_of(path: object, number: int, text: str) -> list[str]:
    """Return the cells of a line, without the blanks around them."""
    try:
        return [cell.strip() for cell in next(csv.reader([text], strict=True))]
    except csv.Error as error:
        raise fault(path, number, f"not CSV ({error}): {shown(text)}") from None


def count(row: Row, column: str) -> int:
    """Return a cell that must be a count."""
    cell = row.value(column)
    if not _DIGITS.fullmatch(cell) or int(cell) > MOST_TOKENS:
        raise row.fault(
            column, f"must be a count from 0 to {MOST_TOKENS}, not {shown(cell)}"
        )
    return int(cell)


def number(row: Row, column: str) -> float:
    """Return a cell that must be a finite number, not negative."""
    cell = row.value(column)
    if _NUMBER.fullmatch(cell):
        value = float(cell)
        if value <= LARGEST:
            return value
    raise row.fault(
        column, f"must be a finite number that is not negative, not {shown(cell)}"
    )
