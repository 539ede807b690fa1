"""A client that reads nothing is waited for, in no memory to speak of, and let go."""

import asyncio
import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from tests.gateway.fault_server import Faults
from tests.gateway.live import listening, plain, request, run
from tests.gateway.test_command import started

PROC = Path("/proc")
SETTINGS = """[gateway]
engines = [{{url = "http://127.0.0.1:{port}", capacity = 10000}}]
[gateway.limits]
stall_seconds = 1.0
health_seconds = 0.1
"""


def peak(process: int) -> int:
    """Return the most kilobytes that a process ever had in memory."""
    lines = (PROC / str(process) / "status").read_text().splitlines()
    (line,) = (one for one in lines if one.startswith("VmHWM"))
    return int(line.split()[1])


async def until(enough: Callable[[], bool]) -> None:
    for _ in range(6000):
        if enough():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never came to be")


async def check(
    process: subprocess.Popen[str], http: httpx.AsyncClient, faults: Faults
) -> None:
    while (await http.get("/readyz")).status_code != 200:
        await asyncio.sleep(0.02)

    async def post() -> int:
        asked = request(max_tokens=3)
        return (await http.post("/v1/completions", json=asked)).status_code

    # What is loaded once is loaded, and as many connections as will be are there.
    assert set(await asyncio.gather(*[post() for _ in range(20)])) == {200}
    before = peak(process.pid)
    place = http.base_url
    reader, writer = await asyncio.open_connection(place.host, place.port, limit=2**12)
    body = json.dumps(request(stream=True, user="big", max_tokens=200)).encode()
    writer.write(
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: %d\r\n\r\n%s"
        % (len(body), body)
    )
    await writer.drain()
    await until(lambda: len(faults.sent) == 1)
    assert set(await asyncio.gather(*[post() for _ in range(20)])) == {200}
    await until(lambda: faults.running == 0)
    grown = peak(process.pid) - before
    assert grown < 10 * 1024
    assert len(faults.sent[0]) < 50 * 2**20  # what sockets hold, above all
    told = (await http.get("/metrics")).text.splitlines()
    assert any('code="client_stalled"' in line for line in told)
    left = [line for line in told if line.startswith("justitia_gateway_engine_")]
    assert all(line.endswith(" 0.0") for line in left if 'what="used"' in line)
    assert await reader.read(9) == b"HTTP/1.1 "
    writer.close()


@pytest.mark.skipif(not PROC.joinpath("self/status").exists(), reason="no /proc here")
def test_a_client_that_reads_nothing_holds_no_memory_and_is_let_go_b47(
    tmp_path: Path,
) -> None:
    """The gateway is a process of its own: nothing else is in its memory."""

    async def doing() -> None:
        faults = Faults()
        async with listening(plain(faults.app), force=True) as port:
            file = tmp_path / "justitia.toml"
            file.write_text(SETTINGS.format(port=port))
            with started("--config", str(file)) as (process, url):
                async with httpx.AsyncClient(
                    base_url=url, trust_env=False, timeout=60
                ) as http:
                    await check(process, http, faults)

    run(doing())
