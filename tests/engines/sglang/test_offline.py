"""SGLang's Engine, which serves nobody: the policy is in it as it is in a server."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sglang", reason="SGLang is not installed: see docs/sglang.md")

from tests.engines.servers import PATIENCE
from tests.engines.sglang import neighbours, offline
from tests.engines.sglang.experiment import CAPACITY, FAIR, FCFS, order, place
from tests.engines.sglang.servers import process

ROOT = Path(__file__).parents[3]


def run(model: Path, folder: Path, **environment: str) -> tuple[list[str], Any]:
    """Return whose the requests were, as they completed, and of the policy's state."""
    code, log = program(model, folder, **environment)
    assert code == 0, log[-4000:]
    ended, state = json.loads(log.splitlines()[-1])
    assert ("is in force" in log) == (state is not None)
    return ended, state


def program(model: Path, folder: Path, **environment: str) -> tuple[int, str]:
    """Return how it ended, and what it said."""
    folder.mkdir()
    paths = [environment.get("PYTHONPATH"), str(ROOT), os.environ.get("PYTHONPATH")]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    command = (sys.executable, str(offline.__file__), str(model))
    with process(command, folder, environment) as (one, log):
        return one.wait(PATIENCE), log.read_text()


def test_small_agents_are_sooner_with_the_policy(model: Path, tmp_path: Path) -> None:
    """And without a setting SGLang is as it was; both beside plugins of others."""
    beside = tmp_path / "beside"
    beside.mkdir()
    variables = {"PYTHONPATH": neighbours.install(beside)}
    first_come, nobody = run(model, tmp_path / "alone", **variables)
    assert order(first_come) == FCFS
    assert nobody is None
    variables |= {
        "JUSTITIA_POLICY": "justitia",
        "JUSTITIA_OPTIONS": '{"tags": "stage"}',
        "JUSTITIA_ADMISSION": "max",
    }
    ended, state = run(model, tmp_path / "with", **variables)
    assert order(ended) == FAIR
    for agent in ("B", "C"):
        assert place(ended, agent) < place(first_come, agent)
    assert state["policy"] == "justitia"
    assert state["options"] == {"tags": "stage"}
    assert state["admission"] == "max"
    assert state["capacity_tokens"] == CAPACITY


def test_a_setting_that_cannot_be_stops_it(model: Path, tmp_path: Path) -> None:
    code, log = program(model, tmp_path / "nix", JUSTITIA_POLICY="nix")
    assert code == 1
    assert "justitia: policy: must be one of" in log
