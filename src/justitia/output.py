"""Places for results: whole or not at all, and known to be writable beforehand."""

import os
import secrets
import sys
from contextlib import AbstractContextManager, suppress
from pathlib import Path
from types import TracebackType
from typing import BinaryIO

from justitia.policy import PolicyError

STANDARD = "-"
"""Stands for standard output."""


class OutputError(PolicyError):
    """A place that results could not be written to; says which, and why."""


class Output(AbstractContextManager["Output"]):
    """A file for results, opened before there are any.

    Until `save` is through, what was at `file` is still there. What is no regular file
    (a device, a pipe) is written to directly; of a symbolic link, what it points to is
    replaced.

    Parameters
    ----------
    file
        A path, or `STANDARD`.

    Raises
    ------
    OutputError
        If it could not be written.
    """

    def __init__(self, file: str) -> None:
        self._file = file
        self._stream: BinaryIO | None = None
        self._draft: Path | None = None
        if file == STANDARD:
            if sys.stdout is None:
                raise OutputError("standard output is closed")
            return
        try:
            path = Path(file)
            if path.exists() and not path.is_file():
                self._stream = path.open("wb")
            else:
                self._target = path.resolve()
                name = f".{self._target.name}.{secrets.token_hex(4)}.part"
                self._draft = self._target.with_name(name)
                self._stream = self._draft.open("xb")
        except (OSError, ValueError, RuntimeError) as error:  # a NUL, links in a circle
            reason = getattr(error, "strerror", None) or error
            raise OutputError(f"{file}: cannot be written: {reason}") from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._stream is not None:
            with suppress(OSError):  # `save` has told it
                self._stream.close()
        if self._draft is not None:
            self._draft.unlink(missing_ok=True)

    def save(self, content: bytes) -> None:
        """Write all that there will be.

        Raises
        ------
        OSError
            If it cannot be written; its `filename` is None for standard output.
        """
        if self._stream is None:
            sys.stdout.write(content.decode())
            sys.stdout.flush()
            return
        try:
            self._stream.write(content)
            self._stream.flush()
            if self._draft is not None:
                os.fsync(self._stream.fileno())
                self._draft.replace(self._target)
        except OSError as error:
            raise OSError(error.errno, error.strerror, self._file) from None
