"""`justitia run --predictor`: what predicting costs against the oracle."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.face.conftest import Justitia

FEW = ("run", "--agents", "6", "--policy", "justitia,vtc")


def prediction(content: Any) -> list[Any]:  # noqa: ANN401
    return [run["prediction"] for run in content["runs"]]


def test_the_oracle_has_nothing_to_stand_beside(justitia: Justitia) -> None:
    ran = justitia(*FEW, "--json", "a.json")
    assert "Prediction" not in ran.out
    assert prediction(json.loads(Path("a.json").read_text())) == [None, None]


@pytest.mark.parametrize("predictor", ["noisy:3", "mean", "max"])
@pytest.mark.parametrize("jobs", ["1", "2"])
def test_others_run_beside_the_oracle(
    predictor: str, jobs: str, justitia: Justitia
) -> None:
    given = (*FEW, "--predictor", predictor, "--json", "a.json")
    ran = justitia(*given, environment={"JUSTITIA_JOBS": jobs})
    assert (ran.code, len(ran.err.splitlines())) == (0, 4)
    assert ran.err.splitlines()[-1].endswith("(oracle): done (4 of 4)")
    content = json.loads(Path("a.json").read_text())
    known = justitia(*FEW, "--json", "b.json")
    assert known.code == 0
    oracle = json.loads(Path("b.json").read_text())
    for run, other, found in zip(
        content["runs"], oracle["runs"], prediction(content), strict=True
    ):
        assert set(found) == {
            *("mean_relative_error", "median_relative_error"),
            *("oracle_mean_jct", "jct_change", "notes"),
        }
        assert found["notes"] == []
        assert found["oracle_mean_jct"] == other["summary"]["mean_jct"]
        change = run["summary"]["mean_jct"] / other["summary"]["mean_jct"] - 1
        assert found["jct_change"] == pytest.approx(change)
        assert found["mean_relative_error"] > 0
    lines = ran.out.splitlines()
    at = lines.index("Prediction")
    assert lines[at + 1].split() == [
        *("policy", "mean", "error", "median", "mean", "JCT", "oracle", "costs")
    ]
    assert [line.split()[0] for line in lines[at + 2 : at + 4]] == ["justitia", "vtc"]


def test_a_running_mean_gets_better(justitia: Justitia) -> None:
    """The same agents over and over: what has finished tells of what is to come."""
    from justitia.workloads import AgentSpec, InferenceSpec, write_jsonl

    one = (InferenceSpec(40, 30), InferenceSpec(40, 30, stage=1))
    write_jsonl(
        "same.jsonl",
        [AgentSpec(f"a{k}", one, "K", arrival=9.0 * k) for k in range(9)],
    )
    ran = justitia(
        *("run", "--workload", "same.jsonl", "--policy", "justitia"),
        *("--predictor", "mean", "--json", "a.json"),
    )
    assert ran.code == 0
    (run,) = json.loads(Path("a.json").read_text())["runs"]
    first, *rest = run["agents"]
    assert first["predicted_cost"] != first["cost"]
    assert all(one["predicted_cost"] == one["cost"] for one in rest)
