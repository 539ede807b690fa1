"""A table of results: what it holds, and how a cell of it is written."""

import csv
import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from justitia.experiments.estimate import Estimate

Value = Estimate | float | int | str | None


def _number(value: float, digits: int) -> str:
    """Return a number with so many significant digits after which nothing matters.

    >>> _number(1234.5, 3), _number(12.34, 3), _number(0.01234, 3), _number(0.0, 3)
    ('1,234', '12.3', '0.0123', '0.00')
    """
    size, places = abs(value), digits - 1
    while size >= 10 and places:
        size /= 10
        places -= 1
    while 0 < size < 1 and places < 6:
        size *= 10
        places += 1
    return f"{value:,.{places}f}"


def _plain(value: float) -> str:
    return _number(value, 3)


def _percent(value: float) -> str:
    return f"{100 * value:,.{_places(value)}f}"


def _signed(value: float) -> str:
    places = _places(value)
    return f"{round(100 * value, places) + 0.0:+,.{places}f}"  # no -0.0


def _places(value: float) -> int:
    """Return the places of a per cent, which do not matter from 100 on."""
    return 0 if abs(value) >= 0.9995 else 1


def _mega(value: float) -> str:
    return f"{value / 1e6 + 0.0:,.2f}"


def _ratio(value: float) -> str:
    return f"{round(value, 2) + 0.0:.2f}"  # no -0.00


def _count(value: float) -> str:
    return f"{value:,.0f}"


_WRITTEN: Mapping[str, tuple[Callable[[float], str], str]] = {
    "number": (_plain, ""),
    "count": (_count, ""),
    "percent": (_percent, " %"),
    "change": (_signed, " %"),
    "mega": (_mega, ""),
    "ratio": (_ratio, ""),
}
"""By form: how a number is written, and what stands behind it."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a table.

    Parameters
    ----------
    key
        Of its values in the rows, of its column in the CSV.
    heading
        What people read.
    form
        ``"text"``, or how its numbers are written: ``"number"``, ``"count"``,
        ``"percent"`` and ``"change"`` (with a sign) of parts of 1, ``"mega"`` in
        millions, ``"ratio"``.
    paper
        Whether its figures are the paper's.
    """

    key: str
    heading: str
    form: str = "number"
    paper: bool = False

    def written(self, value: Value) -> str:
        """Return a cell as people read it.

        >>> Column("gain", "gain", "change").written(Estimate(0.25, 0.013, 5))
        '+25.0 ± 1.3 %'
        """
        if value is None:
            return "-"
        if isinstance(value, str):
            return value
        write, unit = _WRITTEN[self.form]
        if self.paper and self.form == "number" and not isinstance(value, Estimate):
            return f"{value:,g}"  # as it was printed
        if not isinstance(value, Estimate):
            return write(value) + unit
        if value.half is None:
            return write(value.mean) + unit
        return f"{write(value.mean)} ± {self._half(value)}{unit}"

    def _half(self, value: Estimate) -> str:
        """Return the half width with as many places as the mean has."""
        assert value.half is not None
        write, _ = _WRITTEN[self.form]
        if self.form != "number":
            return write(value.half).lstrip("+")
        _, _, places = _plain(value.mean).partition(".")
        return f"{value.half:,.{len(places)}f}"


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of values under columns.

    Parameters
    ----------
    name
        Of its file, and of the table in results.json.
    title, note
        Above it, and under it, for people.
    best
        Columns in which the lowest (``"low"``) or highest (``"high"``) value is marked.
    timed
        Whether it holds times of the clock on the wall, which differ from run to run.
    """

    name: str
    title: str
    columns: Sequence[Column]
    rows: Sequence[Mapping[str, Value]]
    note: str = ""
    best: Mapping[str, str] = field(default_factory=dict)
    timed: bool = False

    def written(self) -> list[list[str]]:
        """Return all cells as people read them."""
        return [
            [column.written(row.get(column.key)) for column in self.columns]
            for row in self.rows
        ]

    def best_rows(self) -> dict[str, int]:
        """Return for each column of `best` the place of its best row."""
        found = {}
        for key, which in self.best.items():
            values = [_mean(row.get(key)) for row in self.rows]
            known = [value for value in values if value is not None]
            if known:
                pick = min(known) if which == "low" else max(known)
                found[key] = values.index(pick)
        return found

    def csv(self) -> str:
        """Return the table as CSV: an estimate in two columns, its mean and half."""
        file = io.StringIO(newline="")
        writer = csv.writer(file, lineterminator="\n")
        wide = {
            column.key
            for column in self.columns
            if any(isinstance(row.get(column.key), Estimate) for row in self.rows)
        }
        head: list[str] = []
        for column in self.columns:
            head.append(column.key)
            if column.key in wide:
                head.append(f"{column.key}_half")
        writer.writerow(head)
        for row in self.rows:
            cells: list[object] = []
            for column in self.columns:
                value = row.get(column.key)
                if isinstance(value, Estimate):
                    cells += [value.mean, value.half]
                else:
                    cells += [value] + [None] * (column.key in wide)
            writer.writerow(["" if cell is None else cell for cell in cells])
        return file.getvalue()

    def content(self) -> dict[str, Any]:
        """Return the table as what `json.dumps` takes."""
        return {
            "title": self.title,
            "rows": [
                {column.key: _json(row.get(column.key)) for column in self.columns}
                for row in self.rows
            ],
        }


def number(value: Value) -> float:
    """Return the number in a cell that has one: of an estimate its mean."""
    found = _mean(value)
    assert found is not None
    return found


def _mean(value: Value) -> float | None:
    if isinstance(value, Estimate):
        return value.mean
    return None if isinstance(value, str) else value


def _json(value: Value) -> object:
    if isinstance(value, Estimate):
        return {"mean": value.mean, "half": value.half, "runs": value.runs}
    return value
