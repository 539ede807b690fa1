"""The JSON form of a comparison: plain numbers, or null, and nothing else."""

import json
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from justitia.engines import EngineError, Lag, RunRecord
from justitia.engines.document import Result, document, dumps
from justitia.engines.scenario import Scenario
from justitia.engines.summary import summarise
from justitia.workloads import AgentSpec, InferenceSpec
from tests.engines.test_summary import make_run

SCENARIO = Scenario(
    (AgentSpec("a0", (InferenceSpec(1, 1), InferenceSpec(1, 1))),),
    source="paper",
    arrivals="burst",
    density=None,
    load=None,
    seed=7,
)


def told(run: RunRecord, **options: object) -> Any:  # noqa: ANN401
    content = document(
        SCENARIO,
        [Result(run.policy, options, run, summarise(run, None))],
        version="1.2",
        engine={"name": "sim"},
        predictor="oracle",
    )
    text = dumps(content)
    assert text.isascii()
    assert text.endswith("}\n")
    return json.loads(text, parse_constant=pytest.fail)


def test_the_head() -> None:
    content = told(make_run(1.0))
    (run,) = content.pop("runs")
    assert content == {
        "schema": 1,
        "version": "1.2",
        "seed": 7,
        "engine": {"name": "sim"},
        "workload": {
            "source": "paper",
            "arrivals": "burst",
            "density": None,
            "load": None,
            "agents": 1,
            "inferences": 2,
            "predictor": "oracle",
        },
    }
    assert list(run) == [
        *("policy", "options", "summary", "remarks", "prediction"),
        *("agents", "inferences"),
    ]
    assert run["prediction"] is None


def test_what_has_no_value_is_null() -> None:
    (run,) = told(make_run(None, outcomes=["refused"]))["runs"]
    summary = run["summary"]
    assert {key for key, value in summary.items() if value is None} == {
        *("mean_jct", "p50_jct", "p90_jct", "p99_jct", "max_jct", "gain_vs_vtc"),
        *("share_later", "worst_later", "worst_later_seconds"),
        *("max_lag", "max_lag_allowed", "max_lag_ratio", "cached_tokens"),
    }
    (agent,), (inference,) = run["agents"], run["inferences"]
    assert (agent["finish"], agent["jct"], agent["reason"]) == (None, None, None)
    assert (inference["start_step"], inference["finish"]) == (None, None)


@pytest.mark.parametrize(
    ("number", "plain"),
    [
        (Fraction(7, 2), 3.5),
        (Fraction(4), 4.0),
        (2**70, 2**70),
        (np.int64(3), 3),
        (np.float64(0.5), 0.5),
        (np.float32(0.5), 0.5),
        (0.1, 0.1),
    ],
)
def test_numbers_are_plain(number: Any, plain: float) -> None:  # noqa: ANN401
    run = make_run(1.0, lag=Lag(number, number, 0, 1))
    agents = tuple(replace(a, cost=number, tag=number) for a in run.agents)
    (content,) = told(replace(run, agents=agents))["runs"]
    values = [
        content["summary"]["max_lag"],
        content["summary"]["max_lag_allowed"],
        content["agents"][0]["cost"],
        content["agents"][0]["tag"],
    ]
    assert values == [plain] * 4
    assert [type(value) for value in values] == [type(plain)] * 4


@pytest.mark.parametrize("number", [float("nan"), float("inf"), np.float64("nan")])
def test_numbers_that_json_has_not_are_refused(number: float) -> None:
    run = make_run(1.0)
    agents = tuple(replace(agent, tag=number) for agent in run.agents)
    with pytest.raises(EngineError, match="cannot be told in JSON"):
        told(replace(run, agents=agents))


def test_options_of_any_kind() -> None:
    options = told(make_run(1.0), tags="stage", price=Decimal("0.5"), by=[1, None])
    assert options["runs"][0]["options"] == {
        "tags": "stage",
        "price": "0.5",
        "by": [1, None],
    }


def test_the_same_run_gives_the_same_bytes() -> None:
    texts = {
        dumps(
            document(
                SCENARIO, [], version="1", engine={"name": "sim"}, predictor="oracle"
            )
        )
        for _ in range(3)
    }
    assert len(texts) == 1
