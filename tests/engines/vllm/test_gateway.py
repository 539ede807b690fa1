"""A gateway in front of the real vLLM."""

import asyncio
import re
import sys
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: see docs/vllm.md")

from justitia.engines.vllm.version import check_version
from tests.engines.servers import KEY, Server
from tests.engines.vllm.servers import SMALL, STOCK, server
from tests.gateway.live import run
from tests.gateway.real import check_all, check_answers, in_front_of
from tests.gateway.real_run import check_run


@pytest.fixture(scope="module")
def stock(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    command = (
        *STOCK, f"--model={model}", *SMALL, f"--api-key={KEY}",
        "--tool-call-parser=hermes", "--enable-auto-tool-choice",
    )  # fmt: skip
    with server(command, tmp_path_factory.mktemp("stock")) as one:
        yield one


def test_the_pages_example_runs(stock: Server) -> None:
    page = (Path(__file__).parents[3] / "docs" / "gateway.md").read_text("utf-8")
    (example,) = re.findall(r"```py\n(.*?)```", page, re.S)

    async def doing() -> str:
        async with in_front_of(stock.url) as live:
            text = example.replace("http://127.0.0.1:8080", live.url)
            assert text != example
            process = await asyncio.create_subprocess_exec(
                sys.executable, "-", stdin=PIPE, stdout=PIPE
            )
            out, _ = await process.communicate(text.encode())
            await live.rests()
            return out.decode()

    assert run(doing(), seconds=300) == "question has ended\nreport has ended\n"


def test_agents_are_served_through_a_gateway(stock: Server) -> None:
    run(check_all(stock.url, 63 * 32), seconds=300)


def test_answers_are_the_engines_own(stock: Server) -> None:
    run(check_answers(stock.url, grammar=True), seconds=300)


def test_a_workload_runs_on_its_server(
    stock: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_run(
        stock,
        tmp_path,
        monkeypatch,
        server="vllm",
        version=check_version(),
        capacity_tokens=63 * 32,
        context_tokens=512,
    )
