"""An engine's connections: one for each request that runs, and those at rest.

They are httpcore's, which httpx stands on as well, without the pool and the client that
those put above: a pool looks through all its connections for each request and each end
of one, and a client makes objects of URLs, headers and cookies that nobody here reads.
"""

import ssl
from collections import deque
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import httpcore
import httpx

from justitia.gateway.settings import Limits
from justitia.gateway.wires import Wires

REST_SECONDS = 4.0
"""After which a connection at rest is not used again: servers close them after 5."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What an engine answers.

    Attributes
    ----------
    headers
        By name, in small letters; the last of those that are there twice.
    parts
        Of its body, as they come.
    """

    status: int
    headers: dict[bytes, bytes]
    parts: AsyncIterable[bytes]


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
        base = httpx.URL(url)
        self._base = base.raw_path.rstrip(b"/")
        self._origin = httpcore.URL(url).origin
        self._trust = trust
        self._wires = Wires()
        self._resting: deque[httpcore.AsyncHTTPConnection] = deque()  # the oldest first
        self._busy: set[httpcore.AsyncHTTPConnection] = set()
        self._timeouts = {
            "connect": limits.connect_seconds,
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

    @asynccontextmanager
    async def post(self, path: str, content: bytes) -> AsyncIterator[Answer]:
        """Send a request; give its answer, not read yet, and close it at the end.

        Raises
        ------
        httpcore.TimeoutException, httpcore.NetworkError, httpcore.ProtocolError
            Here, and where the answer is read.
        """
        request = httpcore.Request(
            b"POST",
            httpcore.URL(
                scheme=self._origin.scheme,
                host=self._origin.host,
                port=self._origin.port,
                target=self._base + path.encode("ascii"),
            ),
            headers=[*self._headers, (b"content-length", b"%d" % len(content))],
            content=content,
            extensions={"timeout": self._timeouts},
        )
        connection = await self._one()
        self._busy.add(connection)
        try:
            answer = await connection.handle_async_request(request)
            try:
                headers = {name.lower(): value for name, value in answer.headers}
                parts = answer.stream
                assert isinstance(parts, AsyncIterable)
                yield Answer(answer.status, headers, parts)
            finally:
                await answer.aclose()
        finally:
            self._busy.discard(connection)
            if connection.is_idle() and not connection.has_expired():
                self._resting.append(connection)

    async def _one(self) -> httpcore.AsyncHTTPConnection:
        """Return a connection that can be used; the last used, if there is one."""
        while self._resting:
            connection = self._resting.pop()
            if not connection.has_expired():
                return connection
            await connection.aclose()
        return httpcore.AsyncHTTPConnection(
            self._origin,
            ssl_context=self._trust,
            keepalive_expiry=REST_SECONDS,
            network_backend=self._wires,
        )

    async def tidy(self) -> None:
        """Close those that have rested for too long."""
        while self._resting and self._resting[0].has_expired():
            await self._resting.popleft().aclose()

    async def close(self) -> None:
        """Close all of them, those that are used as well."""
        for connection in (*self._resting, *self._busy):
            await connection.aclose()
        self._resting.clear()
