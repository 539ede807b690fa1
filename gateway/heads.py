"""Heads of requests, bounded, and trailers that stay out of them.

uvicorn has two parsers. h11 bounds a head; httptools, which is used where it is
installed, bounds nothing, and takes what stands behind a chunked body for headers.
"""

from importlib.util import find_spec
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    import asyncio

LARGEST_HEAD = 64 * 1024
"""Bytes, of trailers too; no more than one read of a socket is kept above that."""


def protocol() -> "type[asyncio.Protocol] | Literal['h11']":
    """Return what uvicorn is to read requests with."""
    if find_spec("httptools") is None:
        return "h11"
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol  # noqa: PLC0415

    class Bounded(HttpToolsProtocol):
        """See the module."""

        _in_head = True
        _gave = False
        """Whether the last bytes ended a head, or were of a body."""
        _held = 0
        """Bytes since any did: the parser keeps them."""

        def on_message_begin(self) -> None:
            super().on_message_begin()
            self._in_head = True

        def on_header(self, name: bytes, value: bytes) -> None:
            if self._in_head:  # others are trailers
                super().on_header(name, value)

        def on_headers_complete(self) -> None:
            self._in_head, self._gave = False, True
            super().on_headers_complete()

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
