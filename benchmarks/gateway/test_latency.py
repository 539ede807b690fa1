"""What the gateway adds to a request, beside a bare httpx proxy in the same run."""

import asyncio
import os
import random
from time import perf_counter

import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

import httpx

from benchmarks.conftest import Figures
from benchmarks.gateway.servers import ROOT, seconds_of, served_by_uvicorn, serving

A_SECOND = int(os.environ.get("REQUESTS_A_SECOND", "200"))
SECONDS = 10
ADDED = 0.003
RATIO = 3


async def _first_bytes(urls: dict[str, str]) -> dict[str, list[float]]:
    """Return the seconds to the first byte, by server; each request goes to one."""
    took: dict[str, list[float]] = {name: [] for name in urls}
    body = {"model": "m", "prompt": "a prompt", "max_tokens": 5, "stream": True}
    dice = random.Random(7)

    async with httpx.AsyncClient(trust_env=False, timeout=60) as client:

        async def ask(name: str) -> None:
            began = perf_counter()
            async with client.stream(
                "POST", f"{urls[name]}/v1/completions", json=body
            ) as answer:
                async for _ in answer.aiter_raw():
                    took[name].append(perf_counter() - began)
                    break

        tasks = []
        at = perf_counter()
        # All servers in turn: what else the machine does hits them alike.
        for number in range(A_SECOND * SECONDS * len(urls)):
            tasks.append(asyncio.create_task(ask(list(urls)[number % len(urls)])))
            at += dice.expovariate(A_SECOND)
            await asyncio.sleep(max(0.0, at - perf_counter()))
        await asyncio.gather(*tasks)
    return {name: sorted(each[len(each) // 10 :]) for name, each in took.items()}


def test_what_it_adds(figures: Figures) -> None:
    """At the rate of arrivals that the issue names, in turn with the others."""
    cpu: dict[str, float] = {}

    async def measured() -> dict[str, list[float]]:
        async with serving(served_by_uvicorn("engine"), "/v1/models") as (engine, _):
            settings = ROOT / ".benchmarks"
            settings.mkdir(exist_ok=True)
            file = settings / "gateway.toml"
            file.write_text(
                f'[gateway]\nengines = [{{url = "{engine}", capacity = 100000}}]\n'
            )
            gateway = ["-m", "justitia", "gateway", f"--config={file}"]
            async with (
                serving(
                    served_by_uvicorn("proxy"), "/v1/models", ENGINE_URL=engine
                ) as (
                    proxy,
                    bare,
                ),
                serving(gateway, "/readyz") as (ours, us),
            ):
                before = {one: seconds_of(one) for one in (bare, us)}
                took = await _first_bytes(
                    {"engine": engine, "proxy": proxy, "gateway": ours}
                )
                for name, one in (("proxy", bare), ("gateway", us)):
                    cpu[name] = (seconds_of(one) - before[one]) / A_SECOND / SECONDS
                return took

    took = asyncio.run(measured())

    def at(name: str, part: float) -> float:
        return took[name][int(part * len(took[name]))]

    added = at("gateway", 0.5) - at("engine", 0.5)
    ratio = at("gateway", 0.99) / at("proxy", 0.99)
    figures.notes.append(
        f"gateway, {A_SECOND} requests a second: first byte p50 "
        + ", ".join(f"{name} {at(name, 0.5) * 1e3:.2f}" for name in took)
        + f" ms (adds {added * 1e3:.2f} ms); p99 "
        + ", ".join(f"{name} {at(name, 0.99) * 1e3:.1f}" for name in took)
        + f" ms (gateway x {ratio:.2f} of a bare httpx proxy); CPU a request: proxy "
        f"{cpu['proxy'] * 1e3:.2f}, gateway {cpu['gateway'] * 1e3:.2f} ms "
        f"(x {cpu['gateway'] / cpu['proxy']:.2f})"
    )
    assert ratio <= RATIO
    if at("engine", 0.5) > ADDED:
        pytest.skip("the engine alone takes longer than what would be measured: busy")
    assert added <= ADDED
