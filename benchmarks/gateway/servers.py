"""Programs that serve, each in a process of its own, for as long as it is measured."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).parents[2]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@asynccontextmanager
async def serving(
    arguments: list[str], ready: str, **variables: str
) -> AsyncIterator[tuple[str, int]]:
    """Let a program serve until the block ends; give its address and its process."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, *arguments, f"--port={port}"],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        import httpx  # noqa: PLC0415 - of the extra gateway

        async with httpx.AsyncClient(trust_env=False) as client:
            for _ in range(600):
                with suppress(httpx.TransportError):
                    if (await client.get(f"{url}{ready}")).status_code == 200:
                        break
                await asyncio.sleep(0.05)
        yield url, process.pid
    finally:
        process.kill()
        process.wait()


def seconds_of(process: int) -> float:
    """Return the seconds of CPU that a process has had."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def served_by_uvicorn(app: str) -> list[str]:
    name = f"benchmarks.gateway.apps:{app}"
    return ["-m", "uvicorn", name, "--app-dir=.", "--no-access-log"]
