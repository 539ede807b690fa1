"""A gateway and its engines on real sockets, in one event loop, for one test."""

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, TypeVar

import httpx
import openai
import uvicorn
from starlette.types import ASGIApp

from justitia.gateway.app import Gateway
from justitia.gateway.serve import server
from justitia.gateway.settings import GatewaySettings
from tests.gateway.fault_server import Faults

T = TypeVar("T")


@contextlib.asynccontextmanager
async def listening(
    one: uvicorn.Server, port: int = 0, *, force: bool = False
) -> AsyncIterator[int]:
    """Let a server serve on a port, a free one if it is 0, until the block ends."""
    # Of a socket that is not said to be TCP asyncio takes no Nagle's algorithm away.
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", port))
    task = asyncio.create_task(one._serve([sock]))
    try:
        while not one.started:
            assert not task.done()
            await asyncio.sleep(0.005)
        yield sock.getsockname()[1]
    finally:
        one.should_exit = True
        # A gateway ends as it should; an engine like a machine that is switched off.
        one.force_exit = force
        with contextlib.suppress(asyncio.CancelledError):
            await task
        sock.close()


def plain(app: ASGIApp) -> uvicorn.Server:
    return uvicorn.Server(
        uvicorn.Config(app, log_config=None, log_level="critical", lifespan="off")
    )


class Live:
    """A gateway that serves; `http` is a client of it."""

    served: uvicorn.Server

    @property
    def connections(self) -> int:
        """Of clients."""
        return len(self.served.server_state.connections)

    def __init__(self, gateway: Gateway, port: int, http: httpx.AsyncClient) -> None:
        self.gateway = gateway
        self.port = port
        self.url = f"http://127.0.0.1:{port}"
        self.http = http

    @property
    def dispatcher(self) -> Any:
        return self.gateway.dispatcher

    def client(self, key: str = "none") -> openai.AsyncOpenAI:
        return openai.AsyncOpenAI(
            base_url=f"{self.url}/v1", api_key=key, max_retries=0, timeout=60
        )

    async def until(self, enough: Callable[[], bool]) -> None:
        """Wait until something is so; a broken gateway takes all of the time."""
        for _ in range(6000):
            if enough():
                return
            await asyncio.sleep(0.005)
        raise AssertionError("it never came to be")

    async def rests(self) -> None:
        """Wait until nothing is left of any call, then check the books."""
        await self.until(lambda: len(self.dispatcher) == 0)
        self.dispatcher._check()
        for engine in self.dispatcher.fleet:
            assert (engine.used, engine.running) == (0, 0)

    async def post(self, chat: bool = False, **body: Any) -> httpx.Response:
        path = "/v1/chat/completions" if chat else "/v1/completions"
        return await self.http.post(path, json=request(chat, **body))


def request(chat: bool = False, **body: Any) -> dict[str, Any]:
    asked: dict[str, Any] = {"model": "m"}
    if chat:
        asked["messages"] = [{"role": "user", "content": "hello"}]
    else:
        asked["prompt"] = "hello"
    return {**asked, **body}


def settings(urls: list[str], **more: Any) -> GatewaySettings:
    engine = {"capacity": 10_000, **more.pop("engine", {})}
    more["limits"] = {"stop_seconds": 1.0, **more.get("limits", {})}
    return GatewaySettings.model_validate(
        {"engines": [{"url": url, **engine} for url in urls], **more}
    )


@contextlib.asynccontextmanager
async def gateway(
    *faults: Faults, ready: bool = True, **more: Any
) -> AsyncIterator[Live]:
    """Let a gateway serve in front of some fault servers."""
    async with contextlib.AsyncExitStack() as stack:
        urls = []
        for one in faults:
            server_ = listening(plain(one.app), force=True)
            port = await stack.enter_async_context(server_)
            urls.append(f"http://127.0.0.1:{port}")
        made = Gateway(settings(urls, **more))
        served = server(made)
        port = await stack.enter_async_context(listening(served))
        http = await stack.enter_async_context(
            httpx.AsyncClient(
                base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=60
            )
        )
        live = Live(made, port, http)
        live.served = served
        if ready:
            await live.until(lambda: any(e.up for e in made.dispatcher.fleet))
        yield live


def run(doing: Awaitable[T], seconds: float = 120) -> T:
    async def all_of_it() -> T:
        async with asyncio.timeout(seconds):
            return await doing

    return asyncio.run(all_of_it())


async def reset(writer: asyncio.StreamWriter) -> None:
    """Close a connection with RST."""
    sock = writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()
    await asyncio.sleep(0)
