"""A gateway in front of the real vLLM."""

from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: see docs/vllm.md")

from tests.engines.servers import KEY, Server
from tests.engines.vllm.servers import SMALL, STOCK, server
from tests.gateway.live import run
from tests.gateway.real import check_all


@pytest.fixture(scope="module")
def stock(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    command = (*STOCK, f"--model={model}", *SMALL, f"--api-key={KEY}")
    with server(command, tmp_path_factory.mktemp("stock")) as one:
        yield one


def test_agents_are_served_through_a_gateway(stock: Server) -> None:
    run(check_all(stock.url, 63 * 32), seconds=300)
