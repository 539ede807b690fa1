"""An answer of a server: its tokens as they come, and what it says at its end."""

import json
from collections.abc import Callable
from typing import Any

from justitia.gateway import connections
from justitia.gateway.events import Splitter, Tally

LARGEST = 64 * 1024 * 1024
"""Bytes of an answer."""
_COMPLAINT = 300
"""Characters of a server's complaint that are passed on."""

Produced = Callable[[int], None]
"""Told of so many tokens that came."""


class Answer:
    """The answer to one request, part by part.

    Attributes
    ----------
    complaint
        What the server complained of within a stream that began well.
    """

    def __init__(self) -> None:
        self._splitter = Splitter()
        self._tally = Tally()
        self._parts = 0
        self._told = 0  # tokens: a server may say that it is fewer again
        self._bytes = 0
        self.complaint: str | None = None

    async def read(self, response: connections.Answer, produced: Produced) -> None:
        """Read all of a response, and tell of tokens as they come.

        Raises
        ------
        ValueError
            If it is larger than any answer.
        """
        whole = b""
        kind = response.headers.get(b"content-type", b"")
        streamed = kind.startswith(b"text/event-stream")
        async for part in response.parts:
            self._bytes += len(part)
            if self._bytes > LARGEST:
                raise ValueError(f"its answer has more than {LARGEST:,} bytes")
            if not streamed:
                whole += part
                continue
            for event in self._splitter.feed(part):
                self._take(event, produced)
        if streamed:
            self._take(self._splitter.rest(), produced)
        else:
            self._tally.whole(whole)

    @property
    def began(self) -> bool:
        """Whether any of it has come."""
        return self._bytes > 0

    @property
    def counted(self) -> bool:
        """Whether the server said how many tokens there were."""
        return self._tally.count("completion_tokens") is not None

    @property
    def tokens(self) -> int:
        """The tokens so far: as the server says, else the parts that came."""
        said = self._tally.count("completion_tokens")
        return self._parts if said is None else said

    @property
    def prompt_tokens(self) -> int | None:
        """The tokens of the prompt, None where the server does not say."""
        return self._tally.count("prompt_tokens")

    @property
    def cached_tokens(self) -> int | None:
        """Those of the prompt that were in its cache, None where it does not say."""
        details = (self._tally.usage or {}).get("prompt_tokens_details")
        found = details.get("cached_tokens") if isinstance(details, dict) else None
        return found if type(found) is int and found >= 0 else None

    def _take(self, event: bytes, produced: Produced) -> None:
        counts, _ = self._tally.event(event)
        self._parts += len(counts)
        if b'"error"' in event and self.complaint is None:
            self.complaint = _error_in(event)
        if self.tokens > self._told:
            more, self._told = self.tokens - self._told, self.tokens
            produced(more)


def complaint(body: bytes) -> str:
    """Return what a server complains of, in one line.

    >>> complaint(b'{"error": {"message": "no such model"}}')
    'no such model'
    >>> complaint(b'{"detail": "Not Found"}'), complaint(b"<html>")
    ('Not Found', '<html>')
    """
    try:
        told: Any = json.loads(body)
    except (ValueError, RecursionError):
        told = body.decode(errors="replace")
    for field in ("error", "message", "detail"):
        if isinstance(told, dict) and told.get(field):
            told = told[field]
    text = told if isinstance(told, str) else json.dumps(told)
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if len(line) <= _COMPLAINT else line[:_COMPLAINT] + "…"


def _error_in(event: bytes) -> str | None:
    """Return what an event complains of; None if it is one of text."""
    start = event.find(b"{")
    try:
        told = json.loads(event[start:])
    except (ValueError, RecursionError):
        return None
    return complaint(event[start:]) if told.get("error") else None
