"""Heads of requests, bounded, and trailers that stay out of them.

uvicorn has two parsers. h11 bounds a head; httptools, which is used where it is
installed, bounds nothing, and takes what stands behind a chunked body for headers.
"""

import asyncio
from contextlib import suppress
from importlib.util import find_spec
from typing import Any

from justitia.gateway.idlers import Watched

LARGEST_HEAD = 64 * 1024
"""Bytes, of trailers too; no more than one read of a socket is kept above that."""
MOST_PIPELINED = 64
"""Requests on one connection that wait for the answer to one before; uvicorn's h11
reads none of them, and for httptools there is no end of them."""


def protocol() -> type[asyncio.Protocol]:
    """Return what uvicorn is to read requests with."""
    from uvicorn.protocols.http.h11_impl import H11Protocol  # noqa: PLC0415

    class Plain(Watched, H11Protocol):
        """As uvicorn has it."""

    if find_spec("httptools") is None:
        return Plain
    import httptools  # noqa: PLC0415
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # noqa: PLC0415

    class Parser(httptools.HttpRequestParser):  # type: ignore[misc]
        """Keeps what stands behind a head that asks for another protocol."""

        rest = b""

        def feed_data(self, data: Any) -> None:  # noqa: ANN401 - whatever has bytes
            try:
                super().feed_data(data)
            except httptools.HttpParserUpgrade as error:
                self.rest = bytes(data[error.args[0] :])
                raise

    class Bounded(Watched, HttpToolsProtocol):
        """See the module."""

        _in_head = True
        _gave = False
        """Whether the last bytes ended a head, or were of a body."""
        _held = 0
        """Bytes since any did: the parser keeps them."""

        def __init__(self, *arguments: Any, **more: Any) -> None:  # noqa: ANN401
            super().__init__(*arguments, **more)
            self.parser = Parser(self)
            with suppress(AttributeError):  # as uvicorn has it; before httptools 0.6.3
                self.parser.set_dangerous_leniencies(lenient_data_after_close=True)
            self._told = arguments, more

        def _should_upgrade(self) -> bool:
            """Return True: no other protocol is spoken, but h11 reads the request.

            httptools reads no body behind such a head, and Java's client sends one.
            """
            return True

        def handle_websocket_upgrade(self) -> None:
            """Go on with h11, as if nothing had been asked for but the answer."""
            if self.cycle is not None and not self.cycle.response_complete:
                self.transport.abort()  # two would answer at once
                return
            self.connections.discard(self)
            self.stop_looking()
            arguments, more = self._told
            other = Plain(*arguments, **more)
            method, version = self.parser.get_method(), self.parser.get_http_version()
            head = [b"%s %s HTTP/%s\r\n" % (method, self.url, version.encode())]
            head += [
                b"%s: %s\r\n" % (name, value)
                for name, value in self.headers
                if name not in (b"upgrade", b"http2-settings")
            ]
            assert isinstance(self.parser, Parser)
            other.connection_made(self.transport)
            self.transport.set_protocol(other)
            other.data_received(b"".join([*head, b"\r\n", self.parser.rest]))

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._in_head = True

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._in_head:  # others are trailers
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._in_head, self._gave = False, True
            super().on_headers_complete()
            if len(self.pipeline) > MOST_PIPELINED:
                self.transport.abort()

        def on_body(self, body: bytes) -> None:
            self._gave = True
            super().on_body(body)

        def on_message_complete(self) -> None:
            self._gave = True
            super().on_message_complete()

        def data_received(self, data: bytes) -> None:
            self._gave = False
            super().data_received(data)
            self._held = 0 if self._gave else self._held + len(data)
            if self._held > LARGEST_HEAD and not self.transport.is_closing():
                if self._in_head:
                    self.send_400_response("The head of the request is too large.")
                else:  # something may have been answered already
                    self.transport.abort()

    return Bounded
