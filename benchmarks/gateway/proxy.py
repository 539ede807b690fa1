"""A bare proxy, as one writes it with Starlette and httpx: what a gateway is beside."""

import os
from collections.abc import AsyncIterator

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

_client = httpx.AsyncClient(
    base_url=os.environ.get("ENGINE_URL", ""), trust_env=False, timeout=60
)


async def _pass_on(request: Request) -> Response:
    asked = _client.build_request(
        request.method, request.url.path, content=await request.body()
    )
    answer = await _client.send(asked, stream=True)

    async def parts() -> AsyncIterator[bytes]:
        async for part in answer.aiter_raw():
            yield part
        await answer.aclose()

    kind = answer.headers["content-type"]
    return StreamingResponse(parts(), answer.status_code, media_type=kind)


app = Starlette(routes=[Route("/{path:path}", _pass_on, methods=["GET", "POST"])])
