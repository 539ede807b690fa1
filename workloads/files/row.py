"""One row of a file, asked for its fields by name and type."""

from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from justitia.policy import PolicyError
from justitia.policy.exact import Number, not_negative, shown, tokens
from justitia.workloads.agents import WorkloadError, check_text
from justitia.workloads.files.lines import fault

_MISSING = object()


@dataclass(frozen=True, slots=True)
class Row:
    """The fields of a row or of an object inside it, and where they stand.

    A field that is missing, or is not of the type that it is asked for as, raises a
    `WorkloadError` that names the file, the line, the field and the value.

    Parameters
    ----------
    path, line
        Where the row is.
    values
        Its fields.
    inside
        What it is part of (``"inferences[3]."``); empty for the row itself.
    """

    path: object
    line: int
    values: Mapping[str, Any]
    inside: str = ""

    def fault(self, field: str, message: str) -> WorkloadError:
        """Return the error that names a field of this row."""
        return fault(self.path, self.line, f"{self.inside}{field}: {message}")

    def has(self, field: str) -> bool:
        """Return whether a field is given and is not null."""
        return self.values.get(field) is not None

    def only(self, known: Collection[str]) -> None:
        """Refuse fields other than these: one that is misspelt would be lost."""
        for field in self.values:
            if field not in known:
                raise self.fault(
                    field if len(field) <= 80 else shown(field),
                    f"no such field; there are: {', '.join(known)}",
                )

    def value(self, field: str) -> Any:  # noqa: ANN401 - whatever the file holds
        """Return a field that must be given."""
        value = self.values.get(field, _MISSING)
        if value is _MISSING:
            raise self.fault(field, "is missing")
        return value

    def text(self, field: str) -> str:
        """Return a field that must be a string, not empty."""
        value = self.value(field)
        if not isinstance(value, str) or not value:
            raise self.fault(
                field, f"must be a string that is not empty, not {shown(value)}"
            )
        with self.at(field):
            check_text(value, "it")
        return value

    def count(self, field: str) -> int:
        """Return a field that must be a count: an int from 0 to 2**63-1."""
        value = self.value(field)
        with self.at(field):
            return tokens(value, "it")

    def number(self, field: str) -> Number:
        """Return a field that must be a finite number, not negative."""
        value = self.value(field)
        with self.at(field):
            return not_negative(value, "it")

    def items(self, field: str) -> list[Any]:
        """Return a field that must be a list."""
        value = self.value(field)
        if not isinstance(value, list):
            raise self.fault(field, f"must be a list, not {shown(value)}")
        return value

    def objects(self, field: str) -> "list[Row]":
        """Return a field that must be a list of objects, as rows of their own."""
        return [
            self.inner(f"{field}[{place}]", item)
            for place, item in enumerate(self.items(field))
        ]

    def strings(self, field: str) -> list[str]:
        """Return a field that must be a list of strings that are not empty."""
        items = self.items(field)
        for place, item in enumerate(items):
            if not isinstance(item, str) or not item:
                raise self.fault(
                    f"{field}[{place}]",
                    f"must be a string that is not empty, not {shown(item)}",
                )
        return items

    def inner(self, field: str, value: object) -> "Row":
        """Return an object inside this row as a row of its own."""
        if not isinstance(value, dict):
            raise self.fault(field, f"must be an object, not {shown(value)}")
        return Row(self.path, self.line, value, f"{self.inside}{field}.")

    @contextmanager
    def at(self, field: str) -> Iterator[None]:
        """Give the place of a field to a `PolicyError` that does not know it."""
        try:
            yield
        except PolicyError as error:
            raise self.fault(field, str(error)) from None

    @contextmanager
    def here(self) -> Iterator[None]:
        """Give the place of this row to a `PolicyError` that does not know it."""
        try:
            yield
        except PolicyError as error:
            where = f"{self.inside.rstrip('.')}: " if self.inside else ""
            raise fault(self.path, self.line, f"{where}{error}") from None
