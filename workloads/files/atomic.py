"""Files that are there whole or not at all."""

import gzip
import io
import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from justitia.workloads.agents import WorkloadError


@contextmanager
def replacing(path: str | os.PathLike[str]) -> Iterator[IO[str]]:
    """Open a text file that takes the place of `path` when it is complete.

    UTF-8 with line feeds; compressed when the name ends in ``.gz``, without a time
    stamp, so that the same text gives the same bytes. When the block raises, what was
    at `path` is still there and nothing else is.

    Raises
    ------
    WorkloadError
        If the file cannot be written.
    """
    target = Path(path)
    try:
        with replacing_bytes(target) as raw, _packed(raw, target) as packed:
            file = io.TextIOWrapper(packed, encoding="utf-8", newline="\n")
            try:
                yield file
            finally:
                file.detach()  # writes what it holds, and leaves `packed` open
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise WorkloadError(f"{path}: cannot be written: {reason}") from None


@contextmanager
def replacing_bytes(target: Path) -> Iterator[IO[bytes]]:
    """Open a file that takes the place of `target` when it is complete.

    When the block raises, what was at `target` is still there and nothing else is.

    Raises
    ------
    OSError
        If the file cannot be written.
    """
    draft = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
    try:
        with draft.open("xb") as raw:
            yield raw
            raw.flush()
            os.fsync(raw.fileno())
        draft.replace(target)
    finally:
        draft.unlink(missing_ok=True)


@contextmanager
def _packed(raw: IO[bytes], target: Path) -> Iterator[IO[bytes]]:
    if target.suffix != ".gz":
        yield raw
        return
    with gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as packed:
        yield packed  # type: ignore[misc]
