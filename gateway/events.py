"""Server-sent events of a stream, cut wherever the network likes, byte for byte.

What is forwarded are the engine's own bytes. They are looked at on the way, for the
tokens in them, and the one event that the gateway asked for and the client did not (the
usage at the end) is left out.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

LARGEST_EVENT = 4 * 1024 * 1024
"""Bytes. What is longer is forwarded, and not looked at."""
_decode = json.JSONDecoder().decode
_END = re.compile(rb"(?:\r\n|\n|\r(?!\n))(?:\r\n|\n|\r)")


class Splitter:
    """Cuts a stream of bytes into events; all bytes come out again, in order.

    An event is what stands before a blank line, with it; lines end with LF, CRLF or CR.

    Notes
    -----
    Complexity: O(bytes). Memory: one event, `LARGEST_EVENT` at most.
    """

    def __init__(self) -> None:
        self._held = b""
        self._scanned = 0

    def feed(self, part: bytes) -> Iterator[bytes]:
        """Yield the events that are complete now."""
        self._held += part
        start = 0
        for end in _END.finditer(self._held, max(0, self._scanned - 3)):
            yield self._held[start : end.end()]
            start = end.end()
        self._held = self._held[start:]
        self._scanned = len(self._held)
        if self._scanned > LARGEST_EVENT:
            yield self.rest()

    def rest(self) -> bytes:
        """Return what was never ended."""
        held, self._held, self._scanned = self._held, b"", 0
        return held


class Tally:
    """What an answer says of its tokens, event by event or all at once.

    Attributes
    ----------
    usage
        As the engine last told it, None before.
    ended
        Whether the stream said that it was done.
    """

    def __init__(self) -> None:
        self.usage: dict[str, Any] | None = None
        self.ended = False

    def event(self, event: bytes) -> tuple[list[int], bool]:
        """Look at an event; return the choice of each token, and if it is usage alone.

        A part of an answer that has something in it is taken for one token, until the
        engine says how many there were.
        """
        data = _data(event)
        if data == b"[DONE]":
            self.ended = True
        if not data.startswith(b"{"):
            return [], False
        try:
            told = _decode(data.decode())
        except (ValueError, RecursionError):
            return [], False
        choices = told.get("choices")
        self._use(told.get("usage"))
        if not isinstance(choices, list):
            return [], False
        tokens = []
        for choice in choices:
            if isinstance(choice, dict) and _says(choice):
                index = choice.get("index", 0)
                tokens.append(index if isinstance(index, int) else 0)
        return tokens, not choices and isinstance(told.get("usage"), dict)

    def whole(self, body: bytes) -> int:
        """Look at a whole answer; return the characters in it."""
        try:
            told = json.loads(body)
        except (ValueError, RecursionError):
            return 0
        if not isinstance(told, dict):
            return 0
        self._use(told.get("usage"))
        choices = told.get("choices")
        if not isinstance(choices, list):
            return 0
        return sum(_characters(c) for c in choices if isinstance(c, dict))

    def count(self, field: str) -> int | None:
        """Return a count of the usage, None where it has none that can be used."""
        value = None if self.usage is None else self.usage.get(field)
        if isinstance(value, bool) or not isinstance(value, int):
            return None
        return value if 0 <= value <= 10**9 else None

    def _use(self, usage: object) -> None:
        if isinstance(usage, dict):
            self.usage = usage


def _data(event: bytes) -> bytes:
    """Return the data of an event: its lines that are some, joined."""
    data = event.strip(b"\n")
    if data.startswith(b"data:") and b"\n" not in data and b"\r" not in data:
        return data[5:].strip()  # as nearly all are
    lines = []
    for line in re.split(rb"\r\n|\n|\r", event):
        if line.startswith(b"data:"):
            lines.append(line[5:].removeprefix(b" "))
    return b"\n".join(lines).strip()


def _says(choice: dict[str, Any]) -> bool:
    """Return whether a choice of a part of an answer has anything in it."""
    if choice.get("text"):
        return True
    delta = choice.get("delta")
    if not isinstance(delta, dict):
        return False
    return any(value for field, value in delta.items() if field != "role")


def _characters(choice: dict[str, Any]) -> int:
    text = choice.get("text")
    if isinstance(text, str):
        return len(text)
    message = choice.get("message")
    return len(json.dumps(message)) if isinstance(message, dict) else 0
