"""An OpenAI-compatible engine that does what it is told, faults above all.

What it does with a request is in the request's ``user``, words with blanks between:

``hold``      nothing until `release` is set
``pause``     after the first event nothing until `release` is set
``die:3``     it breaks off after so many events
``cut:2``     it sends so many bytes at a time
``crlf``      its lines end with CRLF
``endless``   the last event is not ended
``nousage``   it tells no usage
``nulls``     every event has a usage that is null
``status:503``, ``tools``, ``big:5`` (events of a megabyte)
"""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

TOOLS: list[dict[str, Any]] = [
    {"tool_calls": [{"index": 0, "id": "a", "function": {"name": "f"}, "x": None}]},
    {"tool_calls": [{"id": "b", "function": {"name": "g", "arguments": ""}}]},
    {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}, "more": [1]}]},
    {"content": None, "strange": {"field": 1.5}},
]
WORDS = ("né ", "中文 ", "🙂", "\\n", " data: ")


@dataclass
class Faults:
    """A server's state; `app` is the server.

    Attributes
    ----------
    headers, bodies
        Of all requests that came.
    running
        Requests that have no end yet.
    sent
        The bytes of each stream, by request.
    longest
        Tokens that it ever produces.
    """

    models: tuple[str, ...] = ("m",)
    well: bool = True
    headers: list[dict[str, str]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    raw: list[bytes] = field(default_factory=list)
    running: int = 0
    most_running: int = 0
    sent: list[bytes] = field(default_factory=list)
    owner: str = "somebody"
    metrics: str = ""
    longest: int = 10**7

    def __post_init__(self) -> None:
        self.release = asyncio.Event()
        self.app = Starlette(
            routes=[
                Route("/v1/models", self._models),
                Route("/health", self._health),
                Route("/metrics", lambda request: PlainTextResponse(self.metrics)),
                Route("/v1/chat/completions", _Endpoint(self, chat=True)),
                Route("/v1/completions", _Endpoint(self, chat=False)),
            ]
        )

    async def _health(self, request: Request) -> Response:
        return Response(status_code=200 if self.well else 503)

    async def _models(self, request: Request) -> Response:
        if not self.well:
            return Response(status_code=503)
        return JSONResponse(
            {
                "data": [
                    {"id": model, "max_model_len": 4096, "owned_by": self.owner}
                    for model in self.models
                ]
            }
        )


class _Endpoint:
    def __init__(self, faults: Faults, *, chat: bool) -> None:
        self._faults = faults
        self._chat = chat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        faults = self._faults
        request = Request(scope, receive)
        raw = await request.body()
        body = json.loads(raw)
        faults.raw.append(raw)
        faults.bodies.append(body)
        faults.headers.append({k.decode(): v.decode() for k, v in scope["headers"]})
        faults.running += 1
        faults.most_running = max(faults.most_running, faults.running)
        gone = asyncio.create_task(_gone(receive))
        work = asyncio.create_task(self._answer(body, send))
        try:
            await asyncio.wait([gone, work], return_when="FIRST_COMPLETED")
        finally:
            faults.running -= 1
            gone.cancel()
            work.cancel()
            await asyncio.gather(gone, work, return_exceptions=True)

    async def _answer(self, body: dict[str, Any], send: Send) -> None:
        words = dict(
            word.partition(":")[::2] for word in str(body.get("user", "")).split()
        )
        if "hold" in words:
            await self._faults.release.wait()
        if "status" in words:
            error = {"error": {"message": "told to", "code": int(words["status"])}}
            await _whole(send, int(words["status"]), error)
            return
        count = body.get("max_tokens") or body.get("max_completion_tokens") or 5
        count = min(int(count), self._faults.longest)
        usage = {
            "prompt_tokens": 7,
            "completion_tokens": count * int(body.get("n") or 1),
            "total_tokens": 7 + count,
        }
        if not body.get("stream"):
            choices = [
                self._choice(index, "word " * count)
                for index in range(int(body.get("n") or 1))
            ]
            told: dict[str, Any] = {"id": "x", "object": "o", "choices": choices}
            if "nousage" not in words:
                told["usage"] = usage
            await _whole(send, 200, told)
            return
        await _begin(send, 200, "text/event-stream; charset=utf-8")
        number = len(self._faults.sent)
        self._faults.sent.append(b"")
        events = 0
        async for event in self._events(body, count, usage, words):
            if words.get("die") == str(events):
                return  # in the middle of an answer: the server closes the connection
            events += 1
            size = int(words.get("cut", 0)) or len(event)
            for start in range(0, len(event), size):
                part = event[start : start + size]
                self._faults.sent[number] += part
                await send(
                    {"type": "http.response.body", "body": part, "more_body": True}
                )
            await asyncio.sleep(0)  # who is gone is to be heard of
            if "pause" in words and events == 1:
                await self._faults.release.wait()
        await send({"type": "http.response.body", "body": b""})

    async def _events(
        self,
        body: dict[str, Any],
        count: int,
        usage: dict[str, int],
        words: dict[str, str],
    ) -> AsyncIterator[bytes]:
        end = b"\r\n" if "crlf" in words else b"\n"

        def event(told: object, last: bool = False) -> bytes:
            data = (
                told if isinstance(told, str) else json.dumps(told, ensure_ascii=False)
            )
            ends = b"" if last and "endless" in words else end * 2
            return b"data: " + data.encode() + ends

        more = {"usage": None} if "nulls" in words else {}
        if self._chat:
            yield event({"choices": [], "prompt_filter_results": [], **more})
            yield event(
                {
                    "choices": [
                        {"index": 0, "delta": {"role": "assistant", "content": ""}}
                    ]
                }
            )
        yield b": a comment" + end + end
        deltas = TOOLS if "tools" in words else None
        for number in range(len(deltas) if deltas else count):
            for index in range(int(body.get("n") or 1)):
                if deltas:
                    choice: dict[str, Any] = {"index": index, "delta": deltas[number]}
                else:
                    text = WORDS[number % len(WORDS)]
                    if "big" in words:
                        text = "x" * 2**20
                    choice = self._part(index, text)
                yield event({"choices": [choice], "x": 0.10, **more})
            if "slow" in words:
                await asyncio.sleep(0.02)
        if (body.get("stream_options") or {}).get("include_usage") and (
            "nousage" not in words
        ):
            yield event({"choices": [], "usage": usage})
        yield event("[DONE]", last=True)

    def _part(self, index: int, text: str) -> dict[str, Any]:
        if self._chat:
            return {"index": index, "delta": {"content": text}}
        return {"index": index, "text": text}

    def _choice(self, index: int, text: str) -> dict[str, Any]:
        more: dict[str, Any] = {"index": index, "finish_reason": "length"}
        if self._chat:
            return {"message": {"role": "assistant", "content": text}, **more}
        return {"text": text, **more}


async def _whole(send: Send, status: int, told: object) -> None:
    await _begin(send, status, "application/json")
    await send({"type": "http.response.body", "body": json.dumps(told).encode()})


async def _begin(send: Send, status: int, kind: str) -> None:
    headers = [(b"content-type", kind.encode()), (b"set-cookie", b"a=b")]
    await send({"type": "http.response.start", "status": status, "headers": headers})


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
