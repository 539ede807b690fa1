"""Thousands of agents at once: every answer comes once, and memory stays flat."""

import asyncio
import os
from pathlib import Path
from time import perf_counter

import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

import httpx

from benchmarks.conftest import Figures
from benchmarks.gateway.servers import ROOT, served_by_uvicorn, serving

AGENTS = 2_000
SECONDS = float(os.environ.get("LOAD_SECONDS", "60"))
GROWTH = 1.2


def resident(process: int) -> float:
    """Return the megabytes that a process has in memory."""
    pages = int(Path(f"/proc/{process}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


async def _load(url: str, process: int) -> tuple[int, list[float]]:
    """Return how many answers came, and the memory after each tenth of the time."""
    answered = 0
    ends = perf_counter() + SECONDS
    limits = httpx.Limits(max_connections=None, max_keepalive_connections=None)

    async def agent(client: httpx.AsyncClient, name: int) -> None:
        nonlocal answered
        number = 0
        while perf_counter() < ends:
            prompt = f"{name}/{number}"
            answer = await client.post(
                "/v1/completions",
                json={"model": "m", "prompt": prompt, "max_tokens": 5},
                headers={"x-justitia-agent-id": str(name)},
            )
            assert answer.status_code == 200, answer.text
            assert answer.json()["choices"][0]["text"] == prompt
            answered += 1
            number += 1

    # One pool for so many connections would be what is measured.
    clients = [
        httpx.AsyncClient(base_url=url, limits=limits, trust_env=False, timeout=300)
        for _ in range(AGENTS // 50)
    ]
    agents = [
        asyncio.create_task(agent(clients[name % len(clients)], name))
        for name in range(AGENTS)
    ]
    sizes = []
    for _ in range(10):
        await asyncio.sleep(SECONDS / 10)
        sizes.append(resident(process))
    await asyncio.gather(*agents)
    for client in clients:
        await client.aclose()
    return answered, sizes


def test_load(figures: Figures) -> None:
    """With room for 200 at once, so that most wait in line."""

    async def measured() -> tuple[int, list[float], str]:
        async with serving(served_by_uvicorn("engine"), "/v1/models") as (engine, _):
            settings = ROOT / ".benchmarks"
            settings.mkdir(exist_ok=True)
            file = settings / "gateway-load.toml"
            file.write_text(
                f'[gateway]\nengines = [{{url = "{engine}", slots = 200}}]\n'
            )
            command = ["-m", "justitia", "gateway", f"--config={file}"]
            async with serving(command, "/readyz") as (ours, process):
                answered, sizes = await _load(ours, process)
                async with httpx.AsyncClient(trust_env=False) as client:
                    text = (await client.get(f"{ours}/metrics")).text
                return answered, sizes, text

    answered, sizes, metrics = asyncio.run(measured())
    (counted,) = (
        line for line in metrics.splitlines()
        if line.startswith("justitia_gateway_requests_total{")
    )  # fmt: skip
    figures.notes.append(
        f"gateway, {AGENTS:,} agents at once for {SECONDS:g} s: {answered:,} answers, "
        f"none lost or another's; resident {sizes[1]:.0f} MB after a fifth of the "
        f"time, {sizes[-1]:.0f} MB at the end"
    )
    assert float(counted.split()[-1]) == answered
    assert sizes[-1] <= GROWTH * sizes[1]
