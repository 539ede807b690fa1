"""SGLang's Engine, which serves nobody: the policy is in it as it is in a server."""

import json
import os
import sys
from pathlib import Path

import pytest

pytest.importorskip("sglang", reason="SGLang is not installed: see docs/sglang.md")

from tests.engines.servers import PATIENCE
from tests.engines.sglang import offline
from tests.engines.sglang.experiment import FAIR, FCFS, order, place
from tests.engines.sglang.servers import process

ROOT = Path(__file__).parents[3]


def run(model: Path, folder: Path, **environment: str) -> list[str]:
    """Return whose the requests were, as they completed."""
    code, log = program(model, folder, **environment)
    assert code == 0, log[-4000:]
    told: list[str] = json.loads(log.splitlines()[-1])
    return told


def program(model: Path, folder: Path, **environment: str) -> tuple[int, str]:
    """Return how it ended, and what it said."""
    folder.mkdir()
    path = os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])
    command = (sys.executable, str(offline.__file__), str(model))
    with process(command, folder, {"PYTHONPATH": path, **environment}) as (one, log):
        return one.wait(PATIENCE), log.read_text()


def test_small_agents_are_sooner_with_the_policy(model: Path, tmp_path: Path) -> None:
    first_come = run(model, tmp_path / "alone")
    assert order(first_come) == FCFS
    ended = run(model, tmp_path / "with", JUSTITIA_POLICY="justitia")
    assert order(ended) == FAIR
    for agent in ("B", "C"):
        assert place(ended, agent) < place(first_come, agent)


def test_a_setting_that_cannot_be_stops_it(model: Path, tmp_path: Path) -> None:
    code, log = program(model, tmp_path / "nix", JUSTITIA_POLICY="nix")
    assert code == 1
    assert "justitia: policy: must be one of" in log
