"""A server of completions that counts tokens as an engine does, and fails as told."""

import asyncio
import json
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

METRICS = 'vllm:cache_config_info{{block_size="16",num_gpu_blocks="{blocks}"}} 1.0\n'


@dataclass
class Model:
    """A server's state; `app` is the server.

    Attributes
    ----------
    kind
        ``vllm``, or anything else.
    key
        Without which nobody is let in, but to the list of models if that `is_listed`.
    ends
        Tokens after which a text is over, unless that is ignored.
    bundle
        Tokens in one part of a stream.
    counts
        Whether usage is told.
    gathers
        Requests that must be there before the first is answered.
    hangs
        The length of a prompt whose answer never goes on.
    fails
        By number of the request (those that try the server out are not counted), what
        becomes of it: a status, or after a part of its answer ``die``, ``error`` in
        the stream, ``hang``.
    """

    kind: str = "vllm"
    key: str | None = None
    is_listed: bool = False
    models: tuple[str, ...] = ("m",)
    context: int | None = 512
    blocks: int = 65
    ends: int = 10**6
    bundle: int = 1
    counts: bool = True
    gathers: int = 1
    hangs: int | None = None
    fails: dict[int, str] = field(default_factory=dict)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    well: bool = True
    running: int = 0
    most_running: int = 0

    def __post_init__(self) -> None:
        self.app = Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/health", lambda request: Response()),
                Route("/version", lambda request: JSONResponse({"version": "9.9"})),
                Route("/metrics", self._metrics),
                Route("/v1/completions", _Completions(self)),
            ]
        )

    def _metrics(self, request: Request) -> Response:
        return PlainTextResponse(METRICS.format(blocks=self.blocks))

    def _models(self, request: Request) -> Response:
        if not self.well or not (self.is_listed or self.lets_in(request)):
            return JSONResponse({}, 401 if self.well else 503)
        told = [
            {"id": model, "max_model_len": self.context, "owned_by": self.kind}
            for model in self.models
        ]
        return JSONResponse({"data": told})

    def lets_in(self, request: Request) -> bool:
        return self.key is None or (
            request.headers.get("authorization") == f"Bearer {self.key}"
        )

    def rests(self) -> bool:
        """Wait until no request is left, and return whether that came to be."""
        for _ in range(3000):
            if not self.running:
                return True
            time.sleep(0.01)
        return False

    @property
    def lengths(self) -> list[int]:
        """Of the prompts that came, without those that try the server out."""
        return [length(body) for body in self.bodies if body["max_tokens"] > 1]


def length(body: dict[str, Any]) -> int:
    """Return the tokens of a prompt: of a text three for two words, and one."""
    prompt = body["prompt"]
    return len(prompt) if isinstance(prompt, list) else len(prompt.split()) * 3 // 2 + 1


class _Completions:
    def __init__(self, model: Model) -> None:
        self._model = model
        self._number = -1

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        model, request = self._model, Request(scope, receive)
        body = await request.json()
        if not model.lets_in(request):
            said = f"not {request.headers.get('authorization')}"
            await _answer(send, 401, {"error": {"message": said}})
            return
        model.bodies.append(body)
        fails = ""
        if body["max_tokens"] > 1:
            self._number += 1
            fails = model.fails.get(self._number, "")
        model.running += 1
        model.most_running = max(model.most_running, model.running)
        try:
            if fails.isdecimal():
                await _answer(send, int(fails), {"error": {"message": "as told"}})
            else:
                await self._stream(body, fails, receive, send)
        finally:
            model.running -= 1

    async def _stream(
        self, body: dict[str, Any], fails: str, receive: Receive, send: Send
    ) -> None:
        model, most = self._model, body["max_tokens"]
        await _begin(send, 200, b"text/event-stream")
        while most > 1 and model.most_running < model.gathers:
            await asyncio.sleep(0.01)
        if not body.get("ignore_eos"):
            most = min(most, model.ends)
        usage = {"prompt_tokens": length(body), "completion_tokens": 0}
        options = body["stream_options"]
        for number in range(0, most, model.bundle):
            usage["completion_tokens"] = min(most, number + model.bundle)
            event: dict[str, Any] = {"choices": [{"index": 0, "text": "word "}]}
            if options.get("continuous_usage_stats") and model.counts:
                event["usage"] = usage
            await _event(send, json.dumps(event))
            if fails == "die":
                return  # in the middle of an answer: the connection is closed
            if fails == "hang" or length(body) == model.hangs:
                while (await receive())["type"] != "http.disconnect":
                    pass
                return
            if fails == "error":
                await _event(send, '{"error": {"message": "no more"}}')
                break
            await asyncio.sleep(0)
        if options.get("include_usage") and model.counts:
            await _event(send, json.dumps({"choices": [], "usage": usage}))
        await _event(send, "[DONE]")
        await send({"type": "http.response.body", "body": b""})


async def _event(send: Send, data: str) -> None:
    part = f"data: {data}\n\n".encode()
    await send({"type": "http.response.body", "body": part, "more_body": True})


async def _begin(send: Send, status: int, kind: bytes) -> None:
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(b"content-type", kind)],
        }
    )


async def _answer(send: Send, status: int, told: object) -> None:
    await _begin(send, status, b"application/json")
    await send({"type": "http.response.body", "body": json.dumps(told).encode()})


@contextmanager
def serving(model: Model) -> Iterator[str]:
    """Let a server serve in a thread of its own; give its address."""
    server = uvicorn.Server(
        uvicorn.Config(model.app, log_config=None, log_level="critical", lifespan="off")
    )
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        sock.listen(128)
        thread = threading.Thread(target=server.run, args=([sock],))
        thread.start()
        try:
            yield f"http://127.0.0.1:{sock.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            thread.join()
