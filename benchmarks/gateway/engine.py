"""An engine that says at once, or after a while, what it was asked: for nearly nothing.

It shares the machine with what is measured, so it is no framework's server: httptools
cuts the requests, and the answers are made of few pieces.
"""

import asyncio
import json
import os
import sys
from typing import cast

import httptools

from benchmarks.gateway.loop import run

SECONDS = float(os.environ.get("ENGINE_SECONDS", "0"))
"""Until the first word of an answer."""
EVENTS = 5
_EVENT = b'data: {"choices": [{"index": 0, "text": "word"}]}\n\n'
_USAGE = (
    b'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}\n\n'
)
_DONE = b"data: [DONE]\n\n"
_MODELS = b'{"data": [{"id": "m", "max_model_len": 4096}]}'
_STREAM = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)
_END = b"0\r\n\r\n"


class Connection(asyncio.Protocol):
    """One connection; a request at a time.

    Attributes
    ----------
    served
        How many requests all of them had that were to be answered.
    """

    served = 0

    def __init__(self) -> None:
        self._parser = httptools.HttpRequestParser(self)
        self._url = b""
        self._body = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is none

    def data_received(self, data: bytes) -> None:
        """Cut what came."""
        self._parser.feed_data(data)

    def on_url(self, url: bytes) -> None:
        """Take a part of the request's path."""
        self._url += url

    def on_body(self, part: bytes) -> None:
        """Take a part of the request's body."""
        self._body += part

    def on_message_complete(self) -> None:
        """Answer, now or later."""
        url, body = self._url, self._body
        self._url = self._body = b""
        if url.endswith(b"/models"):
            self._write(_whole(_MODELS))
            return
        if url.endswith(b"/served"):
            self._write(_whole(b"%d" % Connection.served))
            return
        Connection.served += 1
        if SECONDS:
            loop = asyncio.get_running_loop()
            loop.call_later(SECONDS, self._answer, json.loads(body))
        else:
            self._answer(json.loads(body))

    def _answer(self, asked: dict[str, object]) -> None:
        if not asked.get("stream"):
            prompt = str(asked["prompt"])
            choice = {"index": 0, "text": prompt, "finish_reason": "stop"}
            usage = {"prompt_tokens": len(prompt) // 4, "completion_tokens": EVENTS}
            told = {"choices": [choice], "usage": usage}
            self._write(_whole(json.dumps(told).encode()))
            return
        options = asked.get("stream_options")
        self._write(_STREAM + _chunk(_EVENT))
        for _ in range(EVENTS - 1):
            self._write(_chunk(_EVENT))
        if isinstance(options, dict) and options.get("include_usage"):
            self._write(_chunk(_USAGE))
        self._write(_chunk(_DONE) + _END)

    def _write(self, data: bytes) -> None:
        if not self._transport.is_closing():
            self._transport.write(data)


def _whole(body: bytes) -> bytes:
    return (
        b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
        b"content-length: %d\r\n\r\n%s" % (len(body), body)
    )


def _chunk(part: bytes) -> bytes:
    return b"%x\r\n%s\r\n" % (len(part), part)


async def _serve(port: int) -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Connection, "127.0.0.1", port, backlog=4096)
    await server.serve_forever()


if __name__ == "__main__":
    run(_serve(int(sys.argv[1].removeprefix("--port="))))
