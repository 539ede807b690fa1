"""The bytes between the gateway and engines: all, in order, and not too many."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

import httpcore
import httpx

from justitia.gateway import connections, wires
from justitia.gateway.wires import Wire, connect
from tests.gateway.fault_server import Faults
from tests.gateway.live import gateway, reset, run

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
TRUST = httpx.create_ssl_context()


@asynccontextmanager
async def wired(serve: Serve) -> AsyncIterator[Wire]:
    """A wire to a server."""
    ended: list[asyncio.StreamWriter] = []

    async def all_of_it(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        ended.append(writer)
        await serve(reader, writer)

    server = await asyncio.start_server(all_of_it, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    wire = await connect(httpcore.Origin(b"http", b"127.0.0.1", port), TRUST, 5.0)
    try:
        yield wire
    finally:
        wire.end()
        for writer in ended:
            writer.transport.abort()
        server.close()


@pytest.mark.property
@given(
    st.lists(st.binary(min_size=1, max_size=300), max_size=10),
    st.lists(st.integers(1, 200), min_size=1, max_size=5),
)
def test_all_bytes_come_in_order(parts: list[bytes], sizes: list[int]) -> None:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for part in parts:
            writer.write(part)
            await asyncio.sleep(0)
        writer.write_eof()

    async def doing() -> None:
        async with wired(serve) as wire:
            read, number = b"", 0
            while part := await wire.read(sizes[number % len(sizes)], 5.0):
                assert len(part) <= sizes[number % len(sizes)]
                read, number = read + part, number + 1
            assert read == b"".join(parts)
            assert await wire.read(9, 5.0) == b""
            assert wire.get_extra_info("is_readable")

    run(doing())


def test_a_reader_that_waits_lets_the_other_wait() -> None:
    whole = 32 * 2**20
    sent = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal sent
        while sent < whole:
            writer.write(b"x" * 2**16)
            await writer.drain()
            sent += 2**16

    async def doing() -> None:
        async with wired(serve) as wire:
            before = -1
            while sent > before:  # until it has to wait
                before = sent
                await asyncio.sleep(0.05)
            assert 0 < sent < whole
            assert len(wire._held) <= wires._AHEAD + 2**18
            got = 0
            while got < whole:
                got += len(await wire.read(2**16, 5.0))
            assert got == whole

    run(doing())


def test_silence_and_ends_are_told_apart() -> None:
    came = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.write(b"a")
        await reader.readexactly(1)
        await reset(writer)
        came.set()

    async def doing() -> None:
        async with wired(serve) as wire:
            with pytest.raises(httpcore.ReadTimeout):
                await wire.read(9, 0.01)
            assert not wire.get_extra_info("is_readable")
            await wire.write(b"x", 5.0)
            assert await wire.read(9, 5.0) == b"a"
            await wire.write(b"x", 5.0)
            await came.wait()
            with pytest.raises(httpcore.ReadError):
                await wire.read(9, 5.0)
            with pytest.raises(httpcore.WriteError):
                await wire.write(b"x", 5.0)

    run(doing())


def test_who_waits_is_told_before() -> None:
    told = 0

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while part := await reader.read(9):
            writer.write(part)

    async def doing() -> None:
        async def before_waiting() -> None:
            nonlocal told
            told += 1

        async with wired(serve) as wire:
            await wire.write(b"abc", 5.0)
            wire.before_waiting = before_waiting
            read = await wire.read(1, 5.0)
            assert told == 1
            while len(read) < 3:
                held = len(wire._held)
                before = told
                read += await wire.read(1, 5.0)
                assert told == before + (not held)
            assert read == b"abc"

    run(doing())


def test_nobody_there() -> None:
    async def doing() -> None:
        async with wired(lambda reader, writer: asyncio.sleep(0)) as wire:
            port = wire.get_extra_info("peername")[1]
        with pytest.raises(httpcore.ConnectError):
            await connect(httpcore.Origin(b"http", b"127.0.0.1", port), TRUST, 5.0)

    run(doing())


def test_connections_are_used_again_and_closed_when_they_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connections, "REST_SECONDS", 0.3)

    async def doing() -> None:
        faults = Faults()
        async with gateway(faults, limits={"health_seconds": 0.05}) as live:
            (upstream,) = live.gateway.upstreams.values()
            for _ in range(10):
                assert (await live.post()).status_code == 200
                assert len(upstream.connections) <= 1
            many = [asyncio.create_task(live.post(user="hold")) for _ in range(30)]
            await live.until(lambda: faults.running == 30)
            assert len(upstream.connections) == 30
            faults.release.set()
            assert {a.status_code for a in await asyncio.gather(*many)} == {200}
            await live.until(lambda: len(upstream.connections) == 0)
            assert (await live.post()).status_code == 200

    run(doing())
