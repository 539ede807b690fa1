"""Lines of a text file, with a complaint that says where when there is none to read."""

import gzip
import io
import json
import os
import sqlite3
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from justitia.policy.exact import shown
from justitia.workloads.agents import WorkloadError
from justitia.workloads.files.stored import stored

LONGEST_LINE = 1 << 27
"""Bytes of a line, so that a file without line ends does not fill the memory."""

_GZIP = b"\x1f\x8b"
_SQLITE = b"SQLite format 3\0"
_BOM = b"\xef\xbb\xbf"


def lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file that are not blank, with their numbers from 1.

    Compressed with gzip or not, which its first bytes say; they also tell the store of
    a gateway, whose lines are those of its log of finished inferences. A byte order
    mark and the carriage returns of CRLF are taken off. One line at a time is in
    memory.

    Raises
    ------
    WorkloadError
        Naming the file, and the line where there is one: no such file, damaged or cut
        off gzip, bytes that are not UTF-8, a line longer than `LONGEST_LINE`.
    """
    number = 0
    try:
        with Path(path).open("rb") as raw:
            if raw.read(len(_SQLITE)) == _SQLITE:
                yield from stored(path)
                return
    except OSError:
        pass  # which is told below
    except sqlite3.Error as error:
        raise fault(path, 0, f"no store of a gateway ({error})") from None
    try:
        with Path(path).open("rb") as raw, _unpacked(raw) as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise fault(path, number, f"longer than {LONGEST_LINE:,} bytes")
                if number == 1:
                    line = line.removeprefix(_BOM)
                text = line.decode().rstrip("\r\n")
                if text and not text.isspace():
                    yield number, text
    except UnicodeDecodeError as error:
        raise fault(
            path,
            number,
            f"byte {error.start + 1} of the line, {error.object[error.start]:#04x}, "
            f"is not UTF-8",
        ) from None
    except EOFError:
        raise fault(path, number + 1, "the gzip file is cut off here") from None
    except (gzip.BadGzipFile, zlib.error) as error:
        raise fault(
            path, number + 1, f"the gzip file is damaged here ({error})"
        ) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise WorkloadError(f"{path}: cannot be read: {reason}") from None


def fault(path: object, line: int, message: str) -> WorkloadError:
    """Return the error that says where something is wrong."""
    return WorkloadError(f"{path}, line {line}: {message}")


def parsed(path: object, line: int, text: str) -> dict[str, Any]:
    """Return the JSON object that a line holds.

    A key given twice and all that is not an object are refused. NaN and infinities,
    which JSON does not have, are left to be refused with the name of their field.

    Raises
    ------
    WorkloadError
        Naming the file and the line.
    """
    try:
        value = json.loads(text, parse_constant=float, object_pairs_hook=_no_key_twice)
    except WorkloadError as error:
        raise fault(path, line, str(error)) from None
    except json.JSONDecodeError as error:
        raise fault(
            path,
            line,
            f"not JSON: {error.msg} at column {error.colno}: {shown(text)}",
        ) from None
    except (ValueError, RecursionError) as error:  # huge ints, deep nesting
        raise fault(
            path, line, f"JSON that cannot be read ({type(error).__name__}): "
            f"{shown(text)}",
        ) from None  # fmt: skip
    if not isinstance(value, dict):
        raise fault(path, line, f"must be a JSON object, not {shown(value)}")
    return value


def _unpacked(raw: io.BufferedReader) -> IO[bytes]:
    if raw.peek(2)[:2] == _GZIP:
        return io.BufferedReader(gzip.GzipFile(fileobj=raw, mode="rb"))
    return raw


def _no_key_twice(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    values, key = keyed(pairs)
    if key is not None:
        raise WorkloadError(f"the key {shown(key)} is given twice")
    return values


def keyed(pairs: list[tuple[str, Any]]) -> tuple[dict[str, Any], str | None]:
    """Return the pairs of an object by key, and the first key that is there twice.

    >>> keyed([("a", 1), ("b", 2), ("a", 3)])
    ({'a': 3, 'b': 2}, 'a')
    """
    values = dict(pairs)
    if len(values) < len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                return values, key
            seen.add(key)
    return values, None
