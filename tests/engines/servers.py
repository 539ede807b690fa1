"""Real servers on this machine, of a tiny model, for as long as a test needs."""

import asyncio
import os
import signal
import socket
import subprocess
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import httpx

if TYPE_CHECKING:
    import openai

KEY = "sesame"
MODEL = "tiny"
PATIENCE = 300
"""Seconds for which a server may start; only a broken one takes them."""

T = TypeVar("T")


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
def started(
    command: tuple[str, ...], folder: Path, variables: Mapping[str, str]
) -> Iterator[tuple[subprocess.Popen[bytes], Path]]:
    """Run a command in a folder, in a process group that ends with the block."""
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=dict(variables),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            yield process, log
        finally:
            process.terminate()
            with suppress(subprocess.TimeoutExpired):
                process.wait(30)
            with suppress(ProcessLookupError):  # what it may have left behind
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


@contextmanager
def serving(
    command: tuple[str, ...], folder: Path, variables: Mapping[str, str]
) -> Iterator[Server]:
    """Start a server, to which ``--port`` is added, and wait until it answers."""
    folder.mkdir(parents=True, exist_ok=True)
    port = free_port()
    at = command.index("--") if "--" in command else len(command)
    whole = (*command[:at], f"--port={port}", *command[at:])
    with started(whole, folder, variables) as (process, log):
        url = f"http://127.0.0.1:{port}"
        with client(url, KEY) as http:
            for _ in range(PATIENCE * 2):
                if process.poll() is not None:
                    raise AssertionError(f"it ended:\n{log.read_text()[-4000:]}")
                with suppress(httpx.TransportError):
                    if http.get("/health").status_code == 200:
                        break
                time.sleep(0.5)
            else:
                raise AssertionError(f"it is silent:\n{log.read_text()[-4000:]}")
            yield Server(url, log, http, process)


def client(url: str, key: str | None = None) -> httpx.Client:
    headers = {} if key is None else {"Authorization": f"Bearer {key}"}
    return httpx.Client(
        base_url=url, headers=headers, timeout=PATIENCE, verify=False, trust_env=False
    )


def with_client(
    served: Server, doing: "Callable[[openai.AsyncOpenAI], Awaitable[T]]"
) -> T:
    """Return what is done with the official client."""
    import openai

    async def run() -> T:
        async with openai.AsyncOpenAI(
            base_url=f"{served.url}/v1", api_key=KEY, max_retries=0, timeout=PATIENCE
        ) as client:
            return await doing(client)

    return asyncio.run(run())


def rests(served: Server) -> dict[str, Any]:
    """Return the state when nothing waits or runs."""
    return served.wait(waiting=0, running=0)


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])
