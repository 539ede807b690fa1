"""The log of finished inferences in the store of a gateway, as JSON lines."""

import json
import os
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

_FIELDS = (
    "agent", "kind", "stage", "prompt_tokens", "decode_tokens", "max_tokens", "text"
)  # fmt: skip


def stored(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield the log, an inference a line, with numbers from 1.

    The gateway may write meanwhile: what is seen is the log as it was at the beginning.

    Raises
    ------
    sqlite3.Error
        If there is no such log.
    """
    address = f"{Path(path).absolute().as_uri()}?mode=ro"
    with closing(sqlite3.connect(address, uri=True)) as base:
        rows = base.execute(
            f"SELECT {', '.join(_FIELDS)} FROM finished ORDER BY number"
        )
        for number, row in enumerate(rows, 1):
            told = {
                f: v for f, v in zip(_FIELDS, row, strict=True) if v not in (None, "")
            }
            yield number, json.dumps({**told, "justitia_inference": 1})
