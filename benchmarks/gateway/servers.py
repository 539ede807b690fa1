"""Programs that serve, each in a process of its own, for as long as it is measured."""

import asyncio
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from benchmarks.gateway.client import connected, request

ROOT = Path(__file__).parents[2]


@dataclass(frozen=True, slots=True)
class Serving:
    """A program that serves."""

    url: str
    process: int

    @property
    def seconds(self) -> float:
        """Seconds of CPU that it has had."""
        text = Path(f"/proc/{self.process}/stat").read_text()
        fields = text.rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def megabytes(self) -> float:
        """What it has in memory."""
        pages = int(Path(f"/proc/{self.process}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@asynccontextmanager
async def serving(
    arguments: list[str], ready: str, **variables: str
) -> AsyncIterator[Serving]:
    """Let a program serve until the block ends."""
    port = free_port()
    process = subprocess.Popen(
        [sys.executable, *arguments, f"--port={port}"],
        cwd=ROOT,
        env={**os.environ, **variables},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        one = Serving(f"http://127.0.0.1:{port}", process.pid)
        for _ in range(600):
            if await _ready(one.url, ready):
                break
            await asyncio.sleep(0.05)
        else:
            raise RuntimeError(f"{' '.join(arguments)} does not serve")
        yield one
    finally:
        process.kill()
        process.wait()


async def _ready(url: str, path: str) -> bool:
    try:
        connection = await connected(url)
        answer = await connection.ask(request(path))
    except OSError:
        return False
    connection.close()
    return answer.status == 200


def engine() -> list[str]:
    return ["-m", "benchmarks.gateway.engine"]


def bare_proxy() -> list[str]:
    name = "benchmarks.gateway.proxy:app"
    more = ["--no-access-log", "--timeout-keep-alive=60"]
    return ["-m", "uvicorn", name, "--app-dir=.", *more]


def gateway(name: str, engine: str) -> list[str]:
    """Return the command of a gateway.

    Parameters
    ----------
    name
        Of its file of settings.
    engine
        What it says of its engine, as TOML has it.
    """
    folder = ROOT / ".benchmarks"
    folder.mkdir(exist_ok=True)
    file = folder / f"{name}.toml"
    file.write_text(f"[gateway]\nengines = [{{{engine}}}]\n")
    return ["-m", "justitia", "gateway", f"--config={file}"]
