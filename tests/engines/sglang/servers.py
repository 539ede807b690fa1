"""Real SGLang servers on this machine, of a tiny model, as long as a test needs."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from justitia.engines.serving.settings import PREFIX
from justitia.engines.serving.surroundings import flags
from justitia.engines.sglang.surroundings import (
    ARGUMENTS_ON_CPU,
    ON_CPU,
    TINY_ON_CPU,
    on_cpu,
    path_on_cpu,
)

KEY = "sesame"
MODEL = "tiny"
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
PATIENCE = 300
"""Seconds for which a server may start; only a broken one takes them."""


@dataclass
class Server:
    """A server that answers; `http` is a client of it that knows its key."""

    url: str
    log: Path
    http: httpx.Client
    process: subprocess.Popen[bytes]

    def state(self) -> dict[str, Any]:
        told = self.http.get("/justitia/state").raise_for_status().json()
        (rank,) = told["ranks"]
        return dict(rank)

    def wait(self, **wanted: object) -> dict[str, Any]:
        """Return the state once it has these values."""
        return self.until(
            lambda state: all(state[name] == value for name, value in wanted.items())
        )

    def until(self, enough: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Return the state as soon as it is enough."""
        for _ in range(PATIENCE * 20):
            state = self.state()
            if enough(state):
                return state
            time.sleep(0.05)
        raise AssertionError(f"not in {state}")


@contextmanager
def process(
    command: tuple[str, ...], folder: Path, environment: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a command in a folder, in a process group that ends with the block."""
    # Of our own settings a server is told those of its test, and no others.
    variables = {k: v for k, v in os.environ.items() if not k.startswith(PREFIX)}
    variables = {**variables, **TINY_ON_CPU, **environment}
    if on_cpu():
        variables |= ON_CPU
        variables["PYTHONPATH"] = path_on_cpu(variables.get("PYTHONPATH"))
    variables.pop("PYTHONDEVMODE", None)
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
            with suppress(subprocess.TimeoutExpired):
                started.wait(30)
            with suppress(ProcessLookupError):  # what it may have left behind
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
        with client(url, KEY) as http:
            for _ in range(PATIENCE * 2):
                if started.poll() is not None:
                    raise AssertionError(f"it ended:\n{log.read_text()[-4000:]}")
                with suppress(httpx.TransportError):
                    if http.get("/health").status_code == 200:
                        break
                time.sleep(0.5)
            else:
                raise AssertionError(f"it is silent:\n{log.read_text()[-4000:]}")
            yield Server(url, log, http, started)


def client(url: str, key: str | None = None) -> httpx.Client:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(
        base_url=url, headers=headers, timeout=PATIENCE, verify=False, trust_env=False
    )


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
