"""Predictors that learn, in an experiment; needs the extra ``predictors``."""

import json
from pathlib import Path

import pytest

from justitia.experiments import EXPERIMENTS
from justitia.experiments.cells import Outcome
from justitia.experiments.tasks.learn import learn
from justitia.workloads import KINDS, generate, write_jsonl
from tests.experiments.small import scope
from tests.predictors import extra  # noqa: F401 - skips where torch is not


def learned(what: str, data: str = "") -> Outcome:
    return learn(
        what=what, seed=7, preset="llama-7b-a100-40g", agents=12, density=2,
        taught=12, judged=4, data=data,
    )  # fmt: skip


@pytest.mark.parametrize("what", ["mlp", "s3"])
def test_the_same_seed_learns_the_same(what: str) -> None:
    one, other = learned(what), learned(what)
    assert json.dumps(one["result"]) == json.dumps(other["result"])
    result = one["result"]
    assert (result["taught"], result["judged"]) == (12 * len(KINDS), 4 * len(KINDS))
    assert result["judged_error"] > 0
    assert (result["one_plan_error"] is None) == (what == "mlp")
    assert all(took > 0 for took in one["timings"].values())


def test_files_are_learned_from(tmp_path: Path) -> None:
    agents = [generate("SC", number, 5) for number in range(30)]
    write_jsonl(tmp_path / "agents.jsonl", agents)
    result = learned("mlp", str(tmp_path / "agents.jsonl"))["result"]
    assert (result["taught"], result["judged"]) == (12, 18)


def test_what_is_learned_from_is_part_of_the_cell(tmp_path: Path) -> None:
    files = tmp_path / "agents.jsonl"
    write_jsonl(files, [generate("SC", 1, 5)])
    before = EXPERIMENTS["predictor"].cells(scope(data=str(files)))
    assert before == EXPERIMENTS["predictor"].cells(scope(data=str(files)))
    write_jsonl(files, [generate("SC", 2, 5)])
    assert before != EXPERIMENTS["predictor"].cells(scope(data=str(files)))
