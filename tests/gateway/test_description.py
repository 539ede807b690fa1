"""The API's description, and whether the gateway does what it says."""

import asyncio
import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from justitia.engines.serving.claims import FIELDS
from justitia.gateway import page
from justitia.gateway.app import Gateway
from justitia.gateway.description import describe
from tests.gateway.fault_server import Faults
from tests.gateway.live import gateway, settings

KEY = "a-key"
TENANTS = [{"name": "acme", "keys": [KEY], "most_agents": 10**9}]
CONFIG = """
[[operations]]
include-operation-id = ["chat", "text"]
# In its place: tests/gateway/refusals.py.
checks.positive_data_acceptance.enabled = false
"""


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A gateway in front of a fault server, in a thread of its own."""
    stop = asyncio.Event()
    served: Future[tuple[str, asyncio.AbstractEventLoop]] = Future()

    async def serving() -> None:
        async with gateway(Faults(longest=3), tenants=TENANTS) as live:
            served.set_result((live.url, asyncio.get_running_loop()))
            await stop.wait()
            await live.rests()

    thread = threading.Thread(target=lambda: asyncio.run(serving()), daemon=True)
    thread.start()
    found, loop = served.result(60)
    yield found
    loop.call_soon_threadsafe(stop.set)
    thread.join(60)
    assert not thread.is_alive()


@pytest.mark.skipif(not find_spec("schemathesis"), reason="it is not installed")
def test_the_gateway_does_what_its_description_says(url: str, tmp_path: Path) -> None:
    config = tmp_path / "schemathesis.toml"
    config.write_text(CONFIG)
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [
            sys.executable, "-m", "schemathesis.cli", "--config-file", str(config),
            "run", f"{url}/openapi.json", "--max-examples=20",
            "--generation-deterministic", "--workers=1", "--no-color",
            "--continue-on-failure",
            "--request-timeout=30", f"--header=Authorization: Bearer {KEY}",
        ],
        cwd=tmp_path,
        env={
            **os.environ,
            "SCHEMATHESIS_HOOKS": "tests.gateway.refusals",
            "PYTHONPATH": os.pathsep.join([str(root), *sys.path]),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Operations:       11 selected / 11 total" in done.stdout, done.stdout


def test_routes_and_fields_are_those_of_the_code() -> None:
    app = Gateway(settings(["http://127.0.0.1:1"])).app
    told = describe(keys=False, state_key=False)
    routes = {
        route.path.replace("{id:path}", "{id}"): route.methods  # type: ignore[attr-defined]
        for route in app.routes
        if route.path not in page.FILES  # type: ignore[attr-defined]
    }
    assert routes.keys() == told["paths"].keys()
    for path, methods in routes.items():
        there = {m.upper() for m in told["paths"][path]} - {"PARAMETERS"}
        assert there == (methods or {"POST"}) - {"HEAD"}
    assert told["components"]["schemas"]["Claim"]["properties"].keys() == set(FIELDS)
    json.dumps(told, allow_nan=False)


def test_the_document_needs_no_key_and_says_whether_others_do(url: str) -> None:
    told = httpx.get(f"{url}/openapi.json", trust_env=False).json()
    assert told == describe(keys=True, state_key=True)
    assert told["paths"]["/v1/agents"]["post"]["security"] == [{"key": []}]
    paths = describe(keys=False, state_key=True)["paths"]
    assert paths["/v1/agents"]["post"]["security"] == []
    assert paths["/v1/state"]["get"]["security"] == [{"key": []}]
