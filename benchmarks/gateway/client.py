"""A client that costs little beside what it measures: one connection, raw bytes."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from time import perf_counter
from typing import cast
from urllib.parse import urlsplit

import httptools


@dataclass(slots=True)
class Answer:
    """What came of a request.

    Attributes
    ----------
    first, last
        Seconds from the request to the first byte of the body, and to its last.
    """

    status: int
    body: bytes
    first: float
    last: float


class Connection(asyncio.Protocol):
    """One connection to a server, for one request at a time."""

    def __init__(self) -> None:
        self._parser = httptools.HttpResponseParser(self)
        self._parts: list[bytes] = []
        self._began = self._first = 0.0
        self._answer: asyncio.Future[Answer] | None = None
        self.open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none
        self.open = True

    def connection_lost(self, error: Exception | None) -> None:
        """Let the request fail, if there is one."""
        self.open = False
        if self._answer is not None and not self._answer.done():
            self._answer.set_exception(ConnectionError(f"broken off: {error}"))

    def data_received(self, data: bytes) -> None:
        """Cut what came."""
        self._parser.feed_data(data)

    def on_body(self, part: bytes) -> None:
        """Take a part of the answer."""
        if not self._parts:
            self._first = perf_counter() - self._began
        self._parts.append(part)

    def on_message_complete(self) -> None:
        """Give the answer."""
        status = self._parser.get_status_code()
        if status < 200 or self._answer is None or self._answer.done():
            return
        last = perf_counter() - self._began
        told = Answer(status, b"".join(self._parts), self._first, last)
        self._answer.set_result(told)

    async def ask(self, request: bytes) -> Answer:
        """Send a request; give its answer when all of it is there."""
        self._parts = []
        self._answer = asyncio.get_running_loop().create_future()
        self._began = perf_counter()
        self._transport.write(request)
        return await self._answer

    def close(self) -> None:
        """End it."""
        self._transport.close()


async def connected(url: str) -> Connection:
    """Return a connection to a server."""
    place = urlsplit(url)
    loop = asyncio.get_running_loop()
    _, made = await loop.create_connection(
        Connection, place.hostname or "", place.port or 80
    )
    return made


def request(
    path: str, body: bytes = b"", headers: Mapping[str, str] | None = None
) -> bytes:
    """Return the bytes of a request: a GET without a body, otherwise a POST."""
    said = "".join(f"{name}: {value}\r\n" for name, value in (headers or {}).items())
    head = f"{'POST' if body else 'GET'} {path} HTTP/1.1\r\nhost: x\r\n{said}"
    if body:
        head += f"content-type: application/json\r\ncontent-length: {len(body)}\r\n"
    return head.encode() + b"\r\n" + body
