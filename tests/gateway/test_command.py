"""`justitia gateway` as a process, and what it refuses to start with."""

import json
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import httpx
import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from justitia.cli import main
from justitia.flags import USAGE


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


@contextmanager
def started(*arguments: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    port = free_port()
    process = subprocess.Popen(
        (
            sys.executable,
            "-P",
            "-m",
            "justitia",
            "gateway",
            *arguments,
            f"--port={port}",
        ),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    url = f"http://127.0.0.1:{port}"
    try:
        for _ in range(600):
            assert process.poll() is None
            with suppress(httpx.TransportError):
                httpx.get(f"{url}/healthz", trust_env=False)
                break
            time.sleep(0.05)
        yield process, url
    finally:
        process.kill()
        process.communicate()


def test_it_serves_from_a_file_until_it_is_told_to_stop(tmp_path: Path) -> None:
    file = tmp_path / "justitia.toml"
    file.write_text(
        """[gateway]
engines = [{url = "http://127.0.0.1:9", capacity = 100, key = "CANARY-1"}]
tenants = [{name = "acme", keys = ["CANARY-2"]}]
logs = "json"
[gateway.limits]
queue_seconds = 0.1
"""
    )
    with started("--config", str(file)) as (process, url):
        assert httpx.get(f"{url}/readyz", trust_env=False).status_code == 503
        answer = httpx.post(
            f"{url}/v1/completions",
            json={"prompt": "a"},
            headers={"authorization": "Bearer CANARY-2"},
            trust_env=False,
        )
        assert answer.json()["error"]["code"] == "queue_timeout"
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
    assert out == ""
    assert "CANARY" not in err
    events = [json.loads(line) for line in err.splitlines()]
    assert events[0]["event"] == "gateway"
    (request,) = [event for event in events if event["event"] == "request"]
    assert (request["status"], request["code"]) == (503, "queue_timeout")
    assert process.returncode in (0, -signal.SIGTERM)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "gateway.engines: must be given"),
        (["--engine", "ftp://x"], "--engine.0.url: must be a server's"),
        (["--engine", "http://x", "--host", "0.0.0.0"], "can be reached by others"),
        (["--engine", "http://x", "--policy", "x"], "--policy: must be one of"),
        (["--engine", "http://x", "--port", "x"], "--port: must be a valid integer"),
        (["--engine", "http://x", "--options", "{"], "--options"),
        (["--config", "nowhere.toml"], "nowhere.toml: cannot be read"),
        (["--what"], "Unknown option"),
    ],
)
def test_what_it_cannot_start_with_is_named(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    assert main(["gateway", *arguments]) == USAGE
    told = capsys.readouterr().err
    assert message in told
    assert "Traceback" not in told


def test_an_address_in_use_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        one.listen()
        port = str(one.getsockname()[1])
        done = subprocess.run(
            (
                sys.executable, "-P", "-m", "justitia", "gateway",
                "--engine=http://127.0.0.1:9", f"--port={port}",
            ),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )  # fmt: skip
    assert done.returncode == 1
    assert "nothing can listen on" in done.stderr
    assert "Traceback" not in done.stderr
