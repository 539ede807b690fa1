"""The bytes between the gateway and an engine: what httpcore speaks HTTP over.

httpcore's own backend, anyio's, stops and goes with the socket's reading for each read,
passes through the event loop after each write, and makes a scope of cancelling of each
limit of time: more than half of what a request to an engine cost. A wire reads ahead,
up to `_AHEAD`, and waits only where there is something to wait for.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Any, cast

import httpcore

_AHEAD = 64 * 1024
"""Bytes that are read before anybody wants them; then the engine has to wait."""


class Wire(asyncio.Protocol, httpcore.AsyncNetworkStream):
    """One connection, read and written by one task at a time.

    Attributes
    ----------
    before_waiting
        Awaited whenever all that has come was read, and the reader wants more.
    heard
        Bytes that ever came.

    Notes
    -----
    Complexity: O(bytes). Memory: `_AHEAD` at most, and what one read of a socket gives.
    """

    def __init__(self) -> None:
        self.before_waiting: Callable[[], Awaitable[None]] | None = None
        self.heard = 0
        self._held = bytearray()
        self._ended = False
        self._broken: Exception | None = None
        self._reading = True
        self._writing = True  # what is written goes out
        self._waiter: asyncio.Future[bool] | None = None  # for either

    # What the event loop calls ------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or go on with TLS."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none

    def data_received(self, data: bytes) -> None:
        """Keep what came."""
        self.heard += len(data)
        self._held += data
        if len(self._held) > _AHEAD and self._reading:
            self._reading = False
            self._transport.pause_reading()
        self._wake()

    def eof_received(self) -> None:
        """Take note that nothing more comes; the transport closes itself."""
        self._ended = True
        self._wake()

    def connection_lost(self, error: Exception | None) -> None:
        """Take note of the end."""
        self._ended = True
        self._broken = error
        self._wake()

    def pause_writing(self) -> None:
        """Let writers wait."""
        self._writing = False

    def resume_writing(self) -> None:
        """Let them go on."""
        self._writing = True
        self._wake()

    def _wake(self, late: bool = False) -> None:
        waiter, self._waiter = self._waiter, None
        if waiter is not None and not waiter.done():
            waiter.set_result(late)

    async def _wait(self, timeout: float | None, error: type[Exception]) -> None:
        """Wait until something has happened."""
        loop = asyncio.get_running_loop()
        self._waiter = waiter = loop.create_future()
        timer = None if timeout is None else loop.call_later(timeout, self._wake, True)
        try:
            if await waiter:
                raise error(f"nothing in {timeout:g} seconds")
        finally:
            self._waiter = None
            if timer is not None:
                timer.cancel()

    # What httpcore calls --------------------------------------------------------------

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """Return what has come, as soon as there is anything; nothing at the end."""
        held = self._held
        if not held and self.before_waiting is not None:
            await self.before_waiting()
        while not held and not self._ended:
            await self._wait(timeout, httpcore.ReadTimeout)
        if not held and self._broken is not None:
            raise httpcore.ReadError(str(self._broken))
        data = bytes(held[:max_bytes])
        del held[:max_bytes]
        if not self._reading and len(held) <= _AHEAD and not self._ended:
            self._reading = True
            self._transport.resume_reading()
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """Write; return when not much of it is still here.

        Who answers before all has gone out may never read the rest. That is raised as
        if it could not be written: httpcore reads the answer then, the rest goes out as
        long as somebody reads it, and the connection is not used again.
        """
        if self._ended or self._transport.is_closing():
            raise httpcore.WriteError("the connection is closed")
        self._transport.write(buffer)
        while not self._writing:
            if self._held:
                raise httpcore.WriteError("it is answered already")
            await self._wait(timeout, httpcore.WriteTimeout)
            if self._ended:
                raise httpcore.WriteError("the connection is closed")

    async def aclose(self) -> None:
        """Close it."""
        self.end()

    def end(self) -> None:
        """Close it at once; what is not written yet is not."""
        self._ended = True
        self._transport.abort()
        self._wake()

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 - as httpcore has it
        """Tell httpcore whether an idle connection has ended."""
        if info == "is_readable":
            return bool(self._held) or self._ended
        return self._transport.get_extra_info(info)


async def connect(
    origin: httpcore.Origin, trust: ssl.SSLContext, seconds: float
) -> Wire:
    """Return a wire to a server, with TLS if its address says so.

    Raises
    ------
    httpcore.ConnectError, httpcore.ConnectTimeout
        If there is none to be had.
    """
    host = origin.host.decode("ascii")
    tls = trust if origin.scheme == b"https" else None
    port = origin.port or (443 if tls else 80)
    loop = asyncio.get_running_loop()
    try:
        async with asyncio.timeout(seconds):
            _, wire = await loop.create_connection(Wire, host, port, ssl=tls)
    except TimeoutError:
        raise httpcore.ConnectTimeout(f"no connection in {seconds:g} seconds") from None
    except OSError as error:
        raise httpcore.ConnectError(str(error)) from None
    return wire
