"""An engine's connections: one for each request that runs, and those at rest.

They are httpcore's, which httpx stands on as well, without the pool and the client that
those put above: a pool looks through all its connections for each request and each end
of one, and a client makes objects of URLs, headers and cookies that nobody here reads.
"""

import ssl
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from time import monotonic
from typing import NamedTuple

import httpcore
import httpx

from justitia.gateway.settings import Limits
from justitia.gateway.wires import Wire, connect

REST_SECONDS = 4.0
"""After which a connection at rest is not used again: servers close them after 5."""
_STALE_SECONDS = 1.0
"""In which a connection that the engine had closed before shows that it had."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine answers.

    Attributes
    ----------
    headers
        By name, in small letters; the last of those that are there twice.
    parts
        Of its body, as they come.
    wire
        That they come by.
    """

    status: int
    headers: dict[bytes, bytes]
    parts: AsyncIterable[bytes]
    wire: Wire


class _Connection(NamedTuple):
    wire: Wire
    http: httpcore.AsyncHTTP11Connection


class Connections:
    """All connections to one engine.

    Parameters
    ----------
    url
        Of the engine, without ``/v1``.
    key
        Its own, None where it asks for none.
    trust
        Which servers are believed.

    Notes
    -----
    Complexity: O(1) a request. Memory: as many connections as requests ran at once in
    the last `REST_SECONDS`.
    """

    def __init__(
        self, url: str, key: str | None, limits: Limits, trust: ssl.SSLContext
    ) -> None:
        base = self._base = httpx.URL(url)
        self._origin = self._url("/").origin
        self._trust = trust
        self._resting: deque[_Connection] = deque()  # the oldest first
        self._busy: set[_Connection] = set()
        self._connect_seconds = limits.connect_seconds
        self._timeouts = {
            "read": limits.idle_seconds,
            "write": limits.idle_seconds,
        }
        self._headers = [
            (b"host", base.netloc),
            (b"accept", b"*/*"),
            (b"accept-encoding", b"identity"),
            (b"connection", b"keep-alive"),
            (b"user-agent", b"justitia"),
            (b"content-type", b"application/json"),
        ]
        if key is not None:
            self._headers.append((b"authorization", b"Bearer " + key.encode()))

    def __len__(self) -> int:
        """Return how many there are."""
        return len(self._resting) + len(self._busy)

    def _url(self, path: str) -> httpcore.URL:
        base = self._base
        return httpcore.URL(
            scheme=base.raw_scheme,
            host=base.raw_host,
            port=base.port,
            target=base.raw_path.rstrip(b"/") + path.encode("ascii"),
        )

    @asynccontextmanager
    async def post(
        self, path: str, content: bytes, more: Mapping[str, str] | None = None
    ) -> AsyncIterator[Answer]:
        """Send a request; give its answer, not read yet, and close it at the end.

        Parameters
        ----------
        more
            Headers beside those of every request.

        Raises
        ------
        httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError
            Here, and where the answer is read.
        """
        others = [(name.encode(), text.encode()) for name, text in (more or {}).items()]
        length = (b"content-length", b"%d" % len(content))
        request = httpcore.Request(
            b"POST",
            self._url(path),
            headers=[*self._headers, length, *others],
            content=content,
            extensions={"timeout": self._timeouts},
        )
        one, answer = await self._asked(request)
        wire = one.wire
        try:
            try:
                headers = {name.lower(): value for name, value in answer.headers}
                parts = answer.stream
                assert isinstance(parts, AsyncIterable)
                yield Answer(answer.status, headers, parts, wire)
            finally:
                wire.before_waiting = None
                await answer.aclose()
        finally:
            self._busy.discard(one)
            if _is_good(one.http):
                self._resting.append(one)
            else:
                wire.end()

    async def _asked(
        self, request: httpcore.Request
    ) -> tuple[_Connection, httpcore.Response]:
        """Send a request, on a second connection if the first was closed before.

        An engine may close one that rests in the moment in which it is used again. It
        is no worse for that, and has nothing of the request.
        """
        one = self._rested()
        if one is not None:
            before, began = one.wire.heard, monotonic()
            try:
                return one, await self._sent(request, one)
            except (httpcore.NetworkError, httpcore.RemoteProtocolError):
                late = monotonic() - began > _STALE_SECONDS
                if one.wire.heard > before or late:
                    raise
        one = await self._new()
        return one, await self._sent(request, one)

    async def _sent(
        self, request: httpcore.Request, one: _Connection
    ) -> httpcore.Response:
        """Send a request, and read the head of the answer."""
        self._busy.add(one)
        try:
            return await one.http.handle_async_request(request)
        except BaseException:
            self._busy.discard(one)
            one.wire.end()
            raise

    def _rested(self) -> _Connection | None:
        """Return the connection that was used last, None if all are busy."""
        while self._resting:
            one = self._resting.pop()
            if not one.http.has_expired():
                return one
            one.wire.end()
        return None

    async def _new(self) -> _Connection:
        wire = await connect(self._origin, self._trust, self._connect_seconds)
        http = httpcore.AsyncHTTP11Connection(self._origin, wire, REST_SECONDS)
        return _Connection(wire, http)

    def tidy(self) -> None:
        """Close those that have rested for too long."""
        while self._resting and self._resting[0].http.has_expired():
            self._resting.popleft().wire.end()

    def close(self) -> None:
        """Close all of them, those that are used as well."""
        for one in (*self._resting, *self._busy):
            one.wire.end()
        self._resting.clear()


def _is_good(http: httpcore.AsyncHTTP11Connection) -> bool:
    """Return whether a connection may be used again.

    Bytes behind the answer would be taken for the answer to the next request, which is
    somebody else's.
    """
    return (
        http.is_idle()
        and not http.has_expired()
        and not http._h11_state.trailing_data[0]
    )
