"""Real SGLang servers."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractContextManager, asynccontextmanager
from pathlib import Path

from justitia.engines.serving.settings import PREFIX
from justitia.engines.serving.surroundings import flags
from justitia.engines.sglang.surroundings import (
    ARGUMENTS_ON_CPU,
    ON_CPU,
    TINY_ON_CPU,
    on_cpu,
    path_on_cpu,
)
from tests.engines.servers import MODEL, Server, serving, started

SMALL = (
    f"--served-model-name={MODEL} --context-length=4096 --max-running-requests=64 "
    "--chunked-prefill-size=1024 --page-size=1 --random-seed=7 --sleep-on-idle"
).split()
JUSTITIA = (sys.executable, "-m", "justitia", "serve", "--engine=sglang")
STOCK = (
    sys.executable,
    "-m",
    "sglang.launch_server",
    *(flags(ARGUMENTS_ON_CPU) if on_cpu() else ()),
)

STEP = 0.25
"""Seconds that a step takes in a server that is held."""


@asynccontextmanager
async def held(server: Server) -> AsyncIterator[None]:
    """Within it the engine all but stands still, and requests arrive.

    Every step takes `STEP`, so whoever has a hundred tokens to go does not end before
    those come that are sent meanwhile, however slow this machine is. (While SGLang is
    paused its front end keeps new requests to itself, and its scheduler has none.)
    """
    await asyncio.to_thread(_slow, server, STEP)
    try:
        yield
    finally:
        await asyncio.to_thread(_slow, server, 0)


def _slow(server: Server, seconds: float) -> None:
    told = {"forward_sleep_time": seconds}
    server.http.post("/slow_down", json=told).raise_for_status()


def process(
    command: tuple[str, ...], folder: Path, environment: Mapping[str, str]
) -> AbstractContextManager[tuple[subprocess.Popen[bytes], Path]]:
    """Run a command in a folder, in a process group that ends with the block."""
    return started(command, folder, _variables(environment))


def server(
    command: tuple[str, ...], folder: Path, **environment: str
) -> AbstractContextManager[Server]:
    """Start a server, to which ``--port`` is added, and wait until it answers."""
    return serving(command, folder, _variables(environment))


def _variables(environment: Mapping[str, str]) -> dict[str, str]:
    # Of our own settings a server is told those of its test, and no others.
    variables = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
    variables = {**variables, **TINY_ON_CPU, **environment}
    if on_cpu():
        variables |= ON_CPU
        variables["PYTHONPATH"] = path_on_cpu(variables.get("PYTHONPATH"))
    variables.pop("PYTHONDEVMODE", None)
    return variables
