"""What a gateway must do in front of any real engine, with the official client."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx

from justitia.gateway.app import Gateway
from justitia.gateway.serve import server
from tests.engines.servers import KEY, MODEL
from tests.gateway.live import Live, listening, settings
from tests.gateway.same import check_client, check_same, check_tools

WHOLE = {"ignore_eos": True}


@asynccontextmanager
async def in_front_of(url: str, **more: Any) -> AsyncIterator[Live]:
    """A gateway that is told the address of an engine and its key, and nothing else."""
    engine = {"capacity": "auto", "key": KEY, **more.pop("engine", {})}
    made = Gateway(settings([url], engine=engine, **more))
    async with (
        listening(server(made)) as port,
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{port}", trust_env=False, timeout=300
        ) as http,
    ):
        live = Live(made, port, http)
        await live.until(lambda: made.dispatcher.fleet.engines[0].up)
        yield live


async def check_all(url: str, capacity: int) -> None:
    """Check order, admission, streaming, choices and cancelling."""
    async with in_front_of(url) as live:
        (engine,) = live.dispatcher.fleet
        assert engine.capacity == capacity
        assert MODEL in engine.models
        await check_order(live)
        await check_streaming(live)
        await check_choices(live)
        await check_cancelling(live)
        await live.rests()


async def check_order(live: Live) -> None:
    """A small agent that comes late goes before what waits of a large one."""
    ended: list[str] = []
    (engine,) = live.dispatcher.fleet
    async with live.client() as client:

        async def one(agent: str, tokens: int, cost: int) -> None:
            answer = await client.completions.create(
                model=MODEL,
                prompt="a token of the agent",
                max_tokens=tokens,
                extra_body=WHOLE,
                extra_headers={
                    "X-Justitia-Agent-Id": agent,
                    "X-Justitia-Cost": str(cost),
                },
            )
            assert answer.usage is not None
            assert answer.usage.completion_tokens == tokens
            ended.append(agent)

        long = [asyncio.create_task(one("long", 150, 10**7)) for _ in range(40)]
        await live.until(lambda: live.dispatcher.waiting > 20)
        assert engine.used <= (engine.capacity or 0)
        short = [asyncio.create_task(one("short", 5, 100)) for _ in range(2)]
        await live.until(lambda: "short" in ended or live.dispatcher.waiting > 22)
        await asyncio.gather(*long, *short)
    assert set(ended[-20:]) == {"long"}
    await live.rests()


async def check_streaming(live: Live) -> None:
    """A stream has all its tokens, and its usage only if that was asked for."""
    async with live.client() as client:
        before = live.dispatcher.delivered
        for asked in (True, False):
            more: dict[str, Any] = {}
            if asked:
                more["stream_options"] = {"include_usage": True}
            stream = await client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": "Why?"}],
                max_tokens=20,
                stream=True,
                extra_body=WHOLE,
                **more,
            )
            parts = [part async for part in stream]
            usage = [part.usage for part in parts if part.usage is not None]
            assert len(usage) == asked
            if asked:
                assert usage[0].completion_tokens == 20
        prompt = usage[0].prompt_tokens if usage else 1
        assert live.dispatcher.delivered - before >= 2 * (20 * prompt + 210)
    await live.rests()


async def check_choices(live: Live) -> None:
    """Four choices are four inferences that start together."""
    async with live.client() as client:
        answer = await client.completions.create(
            model=MODEL, prompt="x", n=4, max_tokens=10, temperature=1, extra_body=WHOLE
        )
        assert [choice.index for choice in answer.choices] == [0, 1, 2, 3]
        assert answer.usage is not None
        assert answer.usage.completion_tokens == 40
    await live.rests()


async def check_cancelling(live: Live) -> None:
    """An agent that is ended has no request left, and a client that goes neither."""
    async with live.client() as client:
        streams = []
        for _ in range(3):
            stream = await client.completions.create(
                model=MODEL,
                prompt="x",
                max_tokens=300,
                stream=True,
                extra_body={**WHOLE, "justitia": {"agent": "gone"}},
            )
            await anext(aiter(stream))
            streams.append(stream)
        await streams[0].close()
        await live.until(lambda: len(live.dispatcher) <= 2)
        await live.http.delete("/v1/agents/gone")
        await live.rests()
        for stream in streams[1:]:
            await stream.close()


async def check_answers(url: str, *, grammar: bool) -> None:
    """Check that what clients get is what the engine says, tools and errors too."""
    async with in_front_of(url) as live:
        await check_same(live, url, grammar=grammar)
        if grammar:
            await check_tools(live)
        await check_client(live)
