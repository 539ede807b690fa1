"""Real vLLM servers on this machine, with a tiny model, for as long as a test needs."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from justitia.engines.vllm.surroundings import IN_PROCESS, TINY_ON_CPU

KEY = "sesame"
MODEL = "tiny"
SMALL = (
    f"--served-model-name={MODEL} --enforce-eager --dtype=float32 --block-size=32 "
    "--num-gpu-blocks-override=64 --max-model-len=512 --max-num-seqs=64 "
    "--max-num-batched-tokens=1024"
).split()
STOCK = (sys.executable, "-m", "vllm.entrypoints.openai.api_server")
JUSTITIA = (sys.executable, "-m", "justitia", "serve")
PATIENCE = 300
"""Seconds for which a server may start; only a broken one takes them."""


@dataclass
class Server:
    """A server that answers; `http` is a client of it that knows its key."""

    url: str
    log: Path
    http: httpx.Client

    def state(self) -> dict[str, Any]:
        told = self.http.get("/justitia/state").raise_for_status().json()
        (rank,) = told["ranks"]
        return dict(rank)

    def wait(self, **wanted: object) -> dict[str, Any]:
        """Return the state once it has these values."""
        for _ in range(PATIENCE * 10):
            state = self.state()
            if all(state[name] == value for name, value in wanted.items()):
                return state
            time.sleep(0.1)
        raise AssertionError(f"wanted {wanted}, but it is {state}")


@contextmanager
def process(
    command: tuple[str, ...], folder: Path, environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a command in a folder, in a process group that ends with the block."""
    variables = {**os.environ, **TINY_ON_CPU, **environment}
    for name in ("PYTHONDEVMODE", *IN_PROCESS):  # what these tests have for themselves
        variables.pop(name, None)
    variables["VLLM_NO_USAGE_STATS"] = "1"
    log = folder / "server.log"
    with log.open("wb") as output:
        started = subprocess.Popen(
            command,
            cwd=folder,
            env=variables,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield started, log
        finally:
            started.terminate()
            try:
                started.wait(30)
            except subprocess.TimeoutExpired:
                os.killpg(started.pid, signal.SIGKILL)
                started.wait()


@contextmanager
def server(
    command: tuple[str, ...], folder: Path, **environment: str
) -> Iterator[Server]:
    """Start a server, to which ``--port`` is added, and wait until it answers."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    at = command.index("--") if "--" in command else len(command)
    whole = (*command[:at], f"--port={port}", *command[at:])
    with process(whole, folder, environment) as (started, log):
        url = f"http://127.0.0.1:{port}"
        for _ in range(PATIENCE * 2):
            if started.poll() is not None:
                raise AssertionError(f"the server ended:\n{log.read_text()[-4000:]}")
            try:
                if httpx.get(f"{url}/health", timeout=5).status_code == 200:
                    break
            except httpx.TransportError:
                time.sleep(0.5)
        else:
            raise AssertionError(f"the server is silent:\n{log.read_text()[-4000:]}")
        with client(url, KEY) as http:
            yield Server(url, log, http)


def client(url: str, key: str | None = None) -> httpx.Client:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(
        base_url=url, headers=headers, timeout=PATIENCE, verify=False, trust_env=False
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
