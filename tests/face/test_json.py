"""The JSON of a run, key by key: others read it."""

import json
from pathlib import Path
from typing import Any

import pytest

from justitia import __version__
from justitia.config import PAPER_POLICIES
from tests.face.builders import DATA, NO_DATA, agents_file
from tests.face.conftest import Justitia

OPTIONAL = (type(None),)
NUMBER = (int, float)
TIME = (float, *OPTIONAL)
SCHEMA: dict[str, Any] = {
    "schema": int,
    "version": str,
    "seed": int,
    "engine": {
        "name": str,
        "preset": str,
        "capacity_tokens": int,
        "admission": str,
        "preemption": str,
        "tags": str,
    },
    "workload": {
        "source": str,
        "arrivals": str,
        "density": TIME,
        "load": TIME,
        "agents": int,
        "inferences": int,
        "predictor": str,
    },
    "runs": [
        {
            "policy": str,
            "options": dict,
            "summary": {
                "mean_jct": TIME,
                "p50_jct": TIME,
                "p90_jct": TIME,
                "p99_jct": TIME,
                "max_jct": TIME,
                "gain_vs_vtc": TIME,
                "share_later": TIME,
                "worst_later": TIME,
                "worst_later_seconds": TIME,
                "utilisation": TIME,
                "preemptions": int,
                "steps": int,
                "finished": int,
                "cancelled": int,
                "refused": int,
                "max_lag": (*NUMBER, *OPTIONAL),
                "max_lag_allowed": (*NUMBER, *OPTIONAL),
                "max_lag_ratio": TIME,
                "cached_tokens": (int, *OPTIONAL),
            },
            "remarks": list,
            "prediction": (dict, *OPTIONAL),
            "agents": [
                {
                    "id": str,
                    "kind": str,
                    "arrival": float,
                    "finish": TIME,
                    "jct": TIME,
                    "cost": NUMBER,
                    "predicted_cost": (*NUMBER, *OPTIONAL),
                    "tag": (*NUMBER, *OPTIONAL),
                    "reference_finish": TIME,
                    "outcome": str,
                    "reason": (str, *OPTIONAL),
                    "cached_tokens": (int, *OPTIONAL),
                }
            ],
            "inferences": [
                {
                    "id": str,
                    "agent": str,
                    "stage": int,
                    "start_step": (int, *OPTIONAL),
                    "finish_step": (int, *OPTIONAL),
                    "start": TIME,
                    "finish": TIME,
                    "preempted": int,
                    "outcome": str,
                    "cached_tokens": (int, *OPTIONAL),
                    "prompt_tokens": (int, *OPTIONAL),
                    "decode_tokens": (int, *OPTIONAL),
                }
            ],
        }
    ],
}
"""Every key and its type, in order."""


def check(value: Any, schema: Any, place: str = "") -> None:  # noqa: ANN401
    if isinstance(schema, dict):
        assert list(value) == list(schema), place
        for key, inner in schema.items():
            check(value[key], inner, f"{place}.{key}")
    elif isinstance(schema, list):
        assert isinstance(value, list)
        assert value, place
        for n, one in enumerate(value):
            check(one, schema[0], f"{place}[{n}]")
    else:
        assert isinstance(value, schema), (place, value)
        assert type(value) is not bool


def run_json(justitia: Justitia, *arguments: str) -> Any:  # noqa: ANN401
    ran = justitia("run", "--json", "a.json", *arguments)
    assert ran.code == 0, ran.err
    text = Path("a.json").read_text("ascii")
    assert text.endswith("}\n")
    return json.loads(text, parse_constant=pytest.fail)


@pytest.mark.parametrize(
    "arguments",
    [
        ("--agents", "5"),
        ("--agents", "5", "--predictor", "noisy:2", "--tags", "stage"),
        ("--workload", "refused.jsonl"),
        ("--workload", "cancelled.jsonl", "--arrivals", "burst"),
    ],
)
def test_every_key_is_there_in_order(
    arguments: tuple[str, ...], justitia: Justitia
) -> None:
    agents_file("refused.jsonl", prompt=9_000)
    agents_file("cancelled.jsonl", n=9, decode=500, cancel_after=6.0)
    content = run_json(justitia, *arguments)
    check(content, SCHEMA)
    assert [run["policy"] for run in content["runs"]] == list(PAPER_POLICIES)


def test_what_the_keys_say(justitia: Justitia) -> None:
    content = run_json(justitia, "--agents", "9", "--seed", "3", "--density", "3")
    assert content["schema"] == 1
    assert content["version"] == __version__
    assert content["seed"] == 3
    assert content["engine"] == {
        "name": "sim",
        "preset": "small",
        "capacity_tokens": 8192,
        "admission": "none",
        "preemption": "recompute",
        "tags": "agent",
    }
    workload = content["workload"]
    assert (workload["source"], workload["arrivals"]) == ("paper", "poisson")
    assert (workload["density"], workload["load"]) == (3.0, pytest.approx(2.1))
    assert (workload["agents"], workload["predictor"]) == (9, "oracle")
    vtc = next(run for run in content["runs"] if run["policy"] == "vtc")
    for run in content["runs"]:
        agents = {agent["id"]: agent for agent in run["agents"]}
        assert len(agents) == 9
        assert len(run["inferences"]) == workload["inferences"]
        summary = run["summary"]
        assert summary["finished"] == workload["inferences"]
        jcts = [agent["jct"] for agent in run["agents"]]
        assert summary["max_jct"] == max(jcts)
        assert summary["mean_jct"] == pytest.approx(sum(jcts) / len(jcts))
        gain = 1 - summary["mean_jct"] / vtc["summary"]["mean_jct"]
        assert summary["gain_vs_vtc"] == pytest.approx(gain)
        for agent in run["agents"]:
            assert agent["jct"] == agent["finish"] - agent["arrival"]
        for inference in run["inferences"]:
            assert 0 <= inference["start_step"] <= inference["finish_step"]
            agent = agents[inference["agent"]]
            assert agent["arrival"] <= inference["start"] < inference["finish"]
            assert inference["finish"] <= agent["finish"]
        assert (run["agents"][0]["tag"] is None) == (not run["policy"].startswith("j"))


def test_options_are_those_that_the_policy_got(justitia: Justitia) -> None:
    Path("c.toml").write_text(
        'policies = ["justitia", "vtc", "sjf"]\ntags = "stage"\n'
        '[policy.justitia]\nclock = "nominal"\n[policy.sjf]\nby = "cost"\n'
    )
    runs = run_json(justitia, "--config", "c.toml", "--agents", "3")["runs"]
    assert [run["options"] for run in runs] == [
        {"clock": "nominal", "tags": "stage", "capacity": 8192, "step_seconds": 0.01},
        {},
        {"by": "cost"},
    ]


def test_the_time_of_a_prompt_is_the_presets(justitia: Justitia) -> None:
    Path("c.toml").write_text(
        'policies = ["mlfq", "fairserve"]\n[policy.mlfq]\nprefill_token_seconds = 1\n'
    )
    known = ("--preset", "llama-7b-a100-40g", "--agents", "2")
    mlfq, fairserve = run_json(justitia, "--config", "c.toml", *known)["runs"]
    assert mlfq["options"] == {
        "prefill_token_seconds": 1,
        "prefill_seconds": 0.01182318,
    }
    assert fairserve["options"] == {}
    (run,) = run_json(justitia, "--policy", "mlfq", *known)["runs"]
    assert run["options"]["prefill_token_seconds"] == 5.506e-05
    assert run["policy"] == "mlfq"  # sim displaces: nothing is missing


@pytest.mark.parametrize("workload", ["paper", "agents"])
def test_the_delay_bound_holds_stage_by_stage_with_exact_costs(
    workload: str, justitia: Justitia
) -> None:
    if workload == "agents" and not (DATA / "agents").is_dir():
        pytest.skip(NO_DATA)
    content = run_json(
        justitia,
        *("--workload", "paper" if workload == "paper" else str(DATA / "agents")),
        *("--tags", "stage", "--policy", "justitia", "--agents", "40"),
        *("--preset", "llama-7b-a100-40g", "--density", "3"),
    )
    (run,) = content["runs"]
    assert run["summary"]["max_lag_ratio"] <= 1e-9
    assert run["summary"]["preemptions"] > 0  # it had something to decide
