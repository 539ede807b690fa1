"""What it takes to tell the page of 10,000 agents in line, and for how long at once."""

import asyncio
import json
import time

import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from justitia.gateway.app import Gateway
from justitia.gateway.settings import GatewaySettings
from tests.gateway.build import call

AGENTS = 10_000


@pytest.mark.parametrize("tenants", [0, 10])
def test_others_have_their_turn_while_the_page_is_told(tenants: int) -> None:
    names = [f"t{number}" for number in range(tenants)] or ["everybody"]
    told = [{"name": name, "keys": [name]} for name in names] if tenants else []
    engine = {"url": "http://127.0.0.1:9", "capacity": 2000}
    gateway = Gateway(
        GatewaySettings.model_validate({"engines": [engine], "tenants": told})
    )
    dispatcher = gateway.dispatcher
    for each in dispatcher.fleet:
        dispatcher.up(each)
    for number in range(AGENTS):
        tenant = names[number % len(names)]
        dispatcher.submit(call(f"a{number}", 50 + number % 90, 20, tenant=tenant))

    async def look() -> tuple[list[float], bytes]:
        """Return the CPU seconds of each turn, and what was told."""
        turns = []
        task = asyncio.create_task(gateway.overview.told(None))
        while not task.done():
            began = time.thread_time()
            await asyncio.sleep(0)
            turns.append(time.thread_time() - began)
        return turns, task.result()

    turns, text = asyncio.run(look())
    shown = len(json.loads(text)["agents"])
    print(
        f"\n{tenants} tenants, {AGENTS:,} agents: {shown} shown, {len(text):,} bytes, "
        f"{1e3 * sum(turns):.0f} ms of CPU, {1e3 * max(turns):.1f} ms at once"
    )
    assert max(turns) < 0.6 * sum(turns)
