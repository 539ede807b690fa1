"""What the gateway adds to a request, beside a bare httpx proxy in the same run."""

import asyncio
import json
import os
import random
from time import perf_counter

import pytest

pytest.importorskip("httptools", reason="the extra gateway is not installed")

from benchmarks.conftest import Figures
from benchmarks.gateway import servers
from benchmarks.gateway.client import Connection, connected, request
from benchmarks.gateway.loop import run
from benchmarks.gateway.servers import Serving, serving

A_SECOND = int(os.environ.get("REQUESTS_A_SECOND", "200"))
SLICES = int(os.environ.get("LATENCY_SLICES", "20"))
ADDED = 0.003
RATIO = 3

_BODY = {"model": "m", "prompt": "a prompt", "max_tokens": 5, "stream": True}
_REQUEST = request("/v1/completions", json.dumps(_BODY).encode())


class Asker:
    """Asks one server, and keeps how long it took."""

    def __init__(self, server: Serving) -> None:
        self.server = server
        self.first: list[float] = []
        self.cpu = 0.0
        self._idle: list[Connection] = []

    async def slice_of(self, gaps: list[float]) -> None:
        """Send requests with those gaps between them, whether or not answers come."""
        before = self.server.seconds
        tasks = []
        at = perf_counter()
        for gap in gaps:
            at += gap
            await asyncio.sleep(max(0.0, at - perf_counter()))
            tasks.append(asyncio.create_task(self._ask()))
        await asyncio.gather(*tasks)
        self.cpu += self.server.seconds - before

    async def _ask(self) -> None:
        began = perf_counter()
        connection = None
        while self._idle and connection is None:
            found = self._idle.pop()
            connection = found if found.open else None
        if connection is None:
            connection = await connected(self.server.url)
        waited = perf_counter() - began
        answer = await connection.ask(_REQUEST)
        assert answer.status == 200
        assert answer.body.endswith(b"[DONE]\n\n")
        self.first.append(waited + answer.first)
        self._idle.append(connection)

    def at(self, part: float) -> float:
        """Return a quantile, in seconds."""
        return sorted(self.first)[int(part * len(self.first))]


async def _measured() -> dict[str, Asker]:
    """Return what came of each server, all at the same rate, a second each in turn."""
    async with serving(servers.engine(), "/v1/models") as engine:
        told = f'url = "{engine.url}", capacity = 100000'
        command = servers.gateway("latency", told)
        async with (
            serving(servers.bare_proxy(), "/v1/models", ENGINE_URL=engine.url) as bare,
            serving(command, "/readyz") as ours,
        ):
            askers = {
                "engine": Asker(engine), "proxy": Asker(bare), "gateway": Asker(ours)
            }  # fmt: skip
            dice = random.Random(7)
            for number in range(SLICES + 1):
                gaps = [dice.expovariate(A_SECOND) for _ in range(A_SECOND)]
                for asker in askers.values():
                    await asker.slice_of(gaps)
                if number == 0:  # what is made once has been made
                    for asker in askers.values():
                        asker.first.clear()
                        asker.cpu = 0.0
            return askers


def test_what_it_adds(figures: Figures) -> None:
    """At the rate of arrivals that the issue names, in turn with the others."""
    load = os.getloadavg()[0]
    askers = run(_measured())
    engine, proxy, gateway = askers.values()
    added = gateway.at(0.5) - engine.at(0.5)
    ratio = gateway.at(0.99) / proxy.at(0.99)
    cpu = {name: one.cpu / len(one.first) * 1e3 for name, one in askers.items()}

    def told(part: float) -> str:
        return ", ".join(f"{n} {one.at(part) * 1e3:.2f}" for n, one in askers.items())

    figures.notes.append(
        f"gateway, {A_SECOND} requests a second: first byte p50 {told(0.5)} ms (adds "
        f"{added * 1e3:.2f} ms; a bare httpx proxy "
        f"{(proxy.at(0.5) - engine.at(0.5)) * 1e3:.2f} ms); p99 {told(0.99)} ms "
        f"(x {ratio:.2f} of the proxy's); CPU a request "
        + ", ".join(f"{name} {one:.2f}" for name, one in cpu.items())
        + f" ms (x {cpu['gateway'] / cpu['proxy']:.2f})"
    )
    assert ratio <= RATIO
    if added > ADDED and load > 1:
        pytest.skip(f"the machine was busy before (load {load:.1f}): no milliseconds")
    assert added <= ADDED
