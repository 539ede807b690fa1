"""Thousands of agents at once: every answer comes once, and memory stays flat."""

import asyncio
import json
import os
from statistics import median
from time import perf_counter

import pytest

pytest.importorskip("httptools", reason="the extra gateway is not installed")

from benchmarks.conftest import Figures
from benchmarks.gateway import servers
from benchmarks.gateway.client import Connection, connected, request
from benchmarks.gateway.loop import run
from benchmarks.gateway.servers import Serving, serving

AGENTS = 2_000
INFERENCES = 5
"""Of an agent; then it has ended, and another comes."""
SLOTS = 200
SECONDS = float(os.environ.get("LOAD_SECONDS", "120"))
"""Of which the second half counts: in the first what is remembered fills up, the last
10,000 agents that ended and 8,192 beginnings of prompts."""
GROWTH = 1.03
"""Of the memory from the third quarter of the time to the fourth."""
LOOKS = 40
_WORDS = "what is to be said of it, in a word or two?"


class Crowd:
    """Two thousand who ask, each the next thing when the last is answered."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.answered = 0
        self.agents = 0
        self._ends = perf_counter() + SECONDS

    async def one(self) -> None:
        """Be one agent after the other until the time is over."""
        connection = await connected(self.url)
        while perf_counter() < self._ends:
            self.agents += 1
            await self._agent(connection, f"agent-{self.agents}")
        connection.close()

    async def _agent(self, connection: Connection, name: str) -> None:
        headers = {
            "x-justitia-agent-id": name,
            "x-justitia-inferences": str(INFERENCES),
        }
        for number in range(INFERENCES):
            if perf_counter() >= self._ends:
                return
            prompt = f"{name}/{number}: {_WORDS}"
            body = {"model": "m", "prompt": prompt, "max_tokens": 5}
            answer = await connection.ask(
                request("/v1/completions", json.dumps(body).encode(), headers)
            )
            assert answer.status == 200, answer.body
            assert json.loads(answer.body)["choices"][0]["text"] == prompt
            self.answered += 1


async def _watched(server: Serving, sizes: list[float]) -> None:
    """Look at a server's memory many times while the time lasts."""
    for _ in range(LOOKS):
        await asyncio.sleep(SECONDS / LOOKS)
        sizes.append(server.megabytes)


async def _told(url: str, path: str) -> str:
    connection = await connected(url)
    answer = await connection.ask(request(path))
    connection.close()
    return answer.body.decode()


def test_load(figures: Figures) -> None:
    """With room for a tenth of them at once, so that most wait in line."""
    sizes: list[float] = []

    async def measured() -> tuple[Crowd, float, float, str, int]:
        async with serving(
            servers.engine(), "/v1/models", ENGINE_SECONDS="0.02"
        ) as engine:
            told = f'url = "{engine.url}", slots = {SLOTS}'
            command = servers.gateway("load", told)
            async with serving(command, "/readyz") as ours:
                before, began = ours.seconds, perf_counter()
                crowd = Crowd(ours.url)
                await asyncio.gather(
                    _watched(ours, sizes), *[crowd.one() for _ in range(AGENTS)]
                )
                took, cpu = perf_counter() - began, ours.seconds - before
                metrics = await _told(ours.url, "/metrics")
                served = int(await _told(engine.url, "/served"))
                return crowd, took, cpu, metrics, served

    crowd, took, cpu, metrics, served = run(measured())
    counted = {
        line.split()[0]: float(line.split()[1])
        for line in metrics.splitlines()
        if line.startswith("justitia_gateway_requests_total{")
    }
    quarter = LOOKS // 4
    third, last = median(sizes[2 * quarter : 3 * quarter]), median(sizes[-quarter:])
    figures.notes.append(
        f"gateway, {AGENTS:,} agents at once for {took:.0f} s: {crowd.answered:,} "
        f"answers to {crowd.agents:,} agents ({crowd.answered / took:.0f} a second), "
        f"none lost, doubled or another's; CPU a request "
        f"{cpu / crowd.answered * 1e3:.2f} ms; resident {third:.1f} MB in the third "
        f"quarter of the time, {last:.1f} MB in the last"
    )
    assert list(counted.values()) == [crowd.answered], counted
    assert served == crowd.answered
    assert last <= GROWTH * third
