"""The stock route on the real server, in both of its modes; and no policy by half."""

import asyncio
import gc
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: see docs/vllm.md")

import httpx

from justitia.cli import main
from justitia.engines.serving.priorities import VLLM, Priorities
from justitia.engines.serving.probe import PriorityIgnored, probe
from tests.engines.servers import MODEL, PATIENCE, Server
from tests.engines.vllm.servers import SMALL, STOCK, held, process, server


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Let what a test's sockets warn of when they are collected be of that test."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def prioritised(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    command = (
        *STOCK, f"--model={model}", *SMALL, "--scheduling-policy=priority",
        "--enable-log-requests",
    )  # fmt: skip
    with server(command, tmp_path_factory.mktemp("priority")) as one:
        yield one


def test_a_server_with_priorities_passes(prioritised: Server) -> None:
    asyncio.run(probe(f"{prioritised.url}/v1"))


def test_the_command_finds_it_out(
    prioritised: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["probe", prioritised.url]) == 0
    assert "It honours priorities" in capsys.readouterr().out


def test_the_pages_example_runs(prioritised: Server) -> None:
    page = (Path(__file__).parents[3] / "docs" / "vllm.md").read_text("utf-8")
    examples = re.findall(r"```py\n(.*?)```", page, re.S)
    (example,) = (text for text in examples if "Priorities" in text)
    text = example.replace("http://127.0.0.1:8000", prioritised.url)
    assert text != example
    ran = subprocess.run(
        [sys.executable, "-"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE,
    )
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.splitlines()) == ["question has ended", "report has ended"]


def test_the_whole_range_is_taken_and_no_more_b16(prioritised: Server) -> None:
    for priority, status in (
        (VLLM.least, 200),
        (VLLM.most, 200),
        (VLLM.least - 1, 400),
        (VLLM.most + 1, 400),
        (130.5, 400),
    ):
        body = {
            "model": MODEL, "prompt": "a", "max_tokens": 1, "priority": priority
        }  # fmt: skip
        answer = prioritised.http.post("/v1/completions", json=body)
        assert answer.status_code == status, answer.text


def test_requests_start_in_the_order_of_their_tags_b16(prioritised: Server) -> None:
    priorities = Priorities(VLLM)
    tags = [130.7, 2**63 + 1, 130.2, 2_304_128_000, 2**63]
    ended: list[float] = []

    def added() -> int:
        return prioritised.log.read_text().count("Added request")

    async def one(client: httpx.AsyncClient, tag: float) -> None:
        body = {
            "model": MODEL,
            "prompt": f"{tag}",
            "max_tokens": 448,
            "ignore_eos": True,
            "priority": priorities.give(tag),
        }
        answer = await client.post("/v1/completions", json=body)
        assert answer.status_code == 200
        ended.append(tag)

    async def run() -> None:
        async with httpx.AsyncClient(
            base_url=prioritised.url, timeout=PATIENCE
        ) as client:
            with held(prioritised):
                wanted = added() + len(tags)
                tasks = [asyncio.create_task(one(client, tag)) for tag in tags]
                while added() < wanted:
                    await asyncio.sleep(0.05)
            await asyncio.gather(*tasks)

    asyncio.run(run())
    # Of 15 blocks each four go at a time, and the fifth when they have ended.
    assert set(ended[:4]) == set(sorted(tags)[:4])
    assert ended[4] == max(tags)


def test_a_server_that_ignores_priorities_is_refused_b17(
    model: Path, tmp_path: Path
) -> None:
    command = (*STOCK, f"--model={model}", *SMALL)
    with (
        server(command, tmp_path) as one,
        pytest.raises(PriorityIgnored, match="--scheduling-policy priority"),
    ):
        asyncio.run(probe(f"{one.url}/v1", most=512))


def test_a_server_with_the_plugin_but_another_scheduler_stops(
    model: Path, tmp_path: Path
) -> None:
    command = (*STOCK, f"--model={model}", *SMALL, "--port=0")
    with process(command, tmp_path, {"VLLM_PLUGINS": "justitia"}) as (started, log):
        assert started.wait(PATIENCE) != 0
    told = log.read_text()
    assert "justitia: not in force, so this server stops" in told
    assert "--scheduler-cls justitia.engines.vllm.Scheduler" in told
