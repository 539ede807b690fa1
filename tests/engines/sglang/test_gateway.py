"""A gateway in front of the real SGLang."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("sglang", reason="SGLang is not installed: see docs/sglang.md")

from justitia.engines.sglang.version import check_version
from tests.engines.servers import KEY, Server
from tests.engines.sglang.servers import SMALL, STOCK, server
from tests.gateway.live import run
from tests.gateway.real import check_all, check_answers
from tests.gateway.real_run import check_run

CAPACITY = 2048


@pytest.fixture(scope="module")
def stock(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    command = (
        *STOCK, f"--model-path={model}", *SMALL, f"--max-total-tokens={CAPACITY}",
        f"--api-key={KEY}",
    )  # fmt: skip
    with server(command, tmp_path_factory.mktemp("stock")) as one:
        yield one


def test_agents_are_served_through_a_gateway(stock: Server) -> None:
    run(check_all(stock.url, CAPACITY), seconds=300)


def test_answers_are_the_engines_own(stock: Server) -> None:
    # SGLang's grammars do not run on CPUs: a forced tool is refused, through both.
    run(check_answers(stock.url, grammar=False), seconds=300)


def test_a_workload_runs_on_its_server(
    stock: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    check_run(
        stock,
        tmp_path,
        monkeypatch,
        server="sglang",
        version=check_version(),
        capacity_tokens=CAPACITY,
        context_tokens=4096,
    )
