"""Kinds of flags that several commands have, and what their exit codes mean."""

import sys
from contextlib import suppress
from typing import Annotated

from cyclopts import Parameter

DONE = 0
RUN_FAILED = 1
BROKEN = 1
USAGE = 2
INTERRUPTED = 130

# Values are taken as they are typed, and checked with the settings: so a flag, a
# variable and a key of a file are read alike.
Name = Annotated[str | None, Parameter(metavar="NAME")]
Names = Annotated[list[str] | None, Parameter(metavar="NAME", negative=())]
Number = Annotated[str | None, Parameter(metavar="N")]


def _no_flag(_: object, value: str | None) -> None:
    """Refuse what starts with a dash but is not the one that stands for a stream."""
    if value is not None and value.startswith("-") and value != "-":
        raise ValueError(f"It must be a file, or -; ./{value} is a file of that name.")


FileOrDash = Annotated[
    str | None,
    Parameter(metavar="FILE|-", allow_leading_hyphen=True, validator=_no_flag),
]


def fail(reason: object, code: int) -> int:
    """Say why a command failed, and return its exit code."""
    if sys.stderr is not None:
        with suppress(BrokenPipeError):
            print(f"justitia: {reason}", file=sys.stderr)
    return code
