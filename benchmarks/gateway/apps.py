"""What the gateway is measured with: an engine that answers at once, a bare proxy."""

import asyncio
import os
from collections.abc import AsyncIterator

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

_EVENT = b'data: {"choices": [{"index": 0, "text": "word"}]}\n\n'
_USAGE = (
    b'data: {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 5}}\n\n'
)


async def _models(request: Request) -> Response:
    return JSONResponse({"data": [{"id": "m", "max_model_len": 4096}]})


async def _complete(request: Request) -> Response:
    body = await request.json()
    if not body.get("stream"):
        await asyncio.sleep(0.02)
        choice = {"index": 0, "text": body["prompt"], "finish_reason": "stop"}
        counted = {"prompt_tokens": 7, "completion_tokens": 5}
        return JSONResponse({"choices": [choice], "usage": counted})
    usage = (body.get("stream_options") or {}).get("include_usage")

    async def parts() -> AsyncIterator[bytes]:
        for _ in range(5):
            yield _EVENT
        if usage:
            yield _USAGE
        yield b"data: [DONE]\n\n"

    return StreamingResponse(parts(), media_type="text/event-stream")


engine = Starlette(
    routes=[
        Route("/v1/models", _models),
        Route("/v1/completions", _complete, methods=["POST"]),
    ]
)

_client = httpx.AsyncClient(
    base_url=os.environ.get("ENGINE_URL", ""), trust_env=False, timeout=60
)


async def _pass_on(request: Request) -> Response:
    asked = _client.build_request(
        "POST", request.url.path, content=await request.body()
    )
    answer = await _client.send(asked, stream=True)

    async def parts() -> AsyncIterator[bytes]:
        async for part in answer.aiter_raw():
            yield part
        await answer.aclose()

    kind = answer.headers["content-type"]
    return StreamingResponse(parts(), answer.status_code, media_type=kind)


proxy = Starlette(
    routes=[
        Route("/v1/models", _models),
        Route("/{path:path}", _pass_on, methods=["POST"]),
    ]
)
