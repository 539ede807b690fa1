"""Connections of clients that are held for nothing are cut off.

uvicorn closes a connection on which nothing comes after an answer. One on which nothing
ever comes, or a head or the rest of a refused body that comes byte by byte for ever, or
whose client does not read the end of its answer, it would keep.
"""

import asyncio
from typing import Any

IDLE_SECONDS = 30.0
"""From look to look. A connection is cut off if from one to the next no request began
on it, none is under way and nothing of an answer was read."""
_UNREAD_LOOKS = 4
"""For who has not read all, since it is not seen here that somebody reads slowly until
a third of what the system holds has gone: a megabyte, easily."""


class Watched(asyncio.Protocol):
    """Looks now and then whether anything happens; put before a protocol of uvicorn's.

    Notes
    -----
    Complexity: O(1) a look.
    """

    loop: asyncio.AbstractEventLoop
    transport: asyncio.Transport
    cycle: Any
    """The last request, None before one."""
    _seen: Any = None
    _unread = 0
    _idle = 0  # looks in a row that found nothing
    _look: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to look."""
        super().connection_made(transport)
        self._look_later()

    def connection_lost(self, error: Exception | None) -> None:
        """Look no more."""
        self.stop_looking()
        super().connection_lost(error)

    def stop_looking(self) -> None:
        """Leave the connection to itself."""
        if self._look is not None:
            self._look.cancel()

    def _look_later(self) -> None:
        self._look = self.loop.call_later(IDLE_SECONDS, self._look_now)

    def _look_now(self) -> None:
        last, seen, closing = self.cycle, self._seen, self.transport.is_closing()
        served = last is not None and not last.response_complete and not closing
        unread, before = self.transport.get_write_buffer_size(), self._unread
        happens = served or last is not seen or unread < before
        self._seen, self._unread = last, unread
        self._idle = 0 if happens else self._idle + 1
        if self._idle < (_UNREAD_LOOKS if unread else 1):
            self._look_later()
        else:
            self.transport.abort()
