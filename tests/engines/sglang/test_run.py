"""`justitia run --engine sglang`, the real engine with the model made on the spot."""

import json
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("sglang") is None:
    pytest.skip(
        "SGLang is not installed; tox run -e sglang does it", allow_module_level=True
    )

from justitia import cli
from justitia.engines import EngineError
from justitia.engines.sglang.engine import SGLangEngine
from justitia.policy import create
from justitia.policy.fcfs import FCFS
from justitia.predictors import Oracle
from justitia.workloads import AgentSpec, write_jsonl
from tests.engines.build import make_agent

POLICIES = ("fcfs", "vtc", "justitia")


@pytest.fixture(scope="module")
def engine() -> Iterator[SGLangEngine]:
    made = SGLangEngine()
    yield made
    made.close()


def crowd(count: int = 12) -> list[AgentSpec]:
    """Agents that outgrow the cache together, in two stages, weighted by turns."""
    return [
        replace(
            make_agent(
                f"a{k}",
                *[(20 + 13 * (k % 5), 30 + 17 * (k % 4))] * 3,
                stages=(0, 0, 1),
                weight=1 + k % 2,
            ),
            arrival=0.0,
        )
        for k in range(count)
    ]


@pytest.mark.parametrize("policy", POLICIES)
def test_all_finish_and_the_engine_is_empty_afterwards(
    engine: SGLangEngine, policy: str
) -> None:
    ended: list[int] = []
    record = engine.run(crowd(), create(policy), Oracle(), progress=ended.append)
    assert [agent.outcome for agent in record.agents] == ["finished"] * 12
    assert sum(ended) == 36
    assert record.utilisation is not None
    assert 0.2 < record.utilisation <= 1
    for inference in record.inferences:
        assert inference.start is not None
        assert inference.finish is not None
        assert inference.start < inference.finish
        assert inference.start_step is not None
        assert inference.finish_step is not None
        assert inference.start_step < inference.finish_step < record.steps
    backend = engine._open()
    backend.settle()
    assert backend.usage() == 0
    assert not backend._live
    backend.agents._check()
    assert not len(backend.agents)


def test_with_tags_by_stage_the_lag_is_within_the_bound(engine: SGLangEngine) -> None:
    policy = create("justitia", tags="stage")
    record = engine.run(crowd(), policy, Oracle(), tags="stage")
    assert record.lag is not None
    assert record.lag.excess <= 0
    assert all(agent.reference_finish is not None for agent in record.agents)


def test_steps_of_one_request_are_one_for_each_token(engine: SGLangEngine) -> None:
    record = engine.run([make_agent("a", (40, 7))], create("fcfs"), Oracle())
    assert (record.steps, record.preemptions) == (7, 0)
    assert record.inferences[0].finish_step == 6


def test_an_inference_ends_with_its_own_tokens(engine: SGLangEngine) -> None:
    agents = [make_agent("a", (40, 5), longest=300), make_agent("b", (9, 0), (0, 3))]
    record = engine.run(agents, create("justitia"), Oracle())
    assert {i.outcome for i in record.inferences} == {"finished"}
    assert [i.finish_step for i in record.inferences] == [4, 0, 2]


def test_an_agent_that_is_cancelled_leaves_the_engine(engine: SGLangEngine) -> None:
    long = [make_agent(f"a{k}", (40, 400), (9, 9), stages=(0, 1)) for k in range(9)]
    agents = [
        replace(spec, cancel_after=0.02 if k % 2 else None)
        for k, spec in enumerate(long)
    ]
    record = engine.run(agents, create("justitia"), Oracle())
    outcomes = [agent.outcome for agent in record.agents]
    assert outcomes == ["finished", "cancelled"] * 4 + ["finished"]
    backend = engine._open()
    backend.settle()
    assert backend.usage() == 0


def test_what_is_too_large_is_refused(engine: SGLangEngine) -> None:
    room = engine._open().room
    agents = [make_agent("a", (400, room - 399)), make_agent("b", (400, room - 400))]
    agents += [make_agent("c", (room - 1, 1)), make_agent("d", (1, room - 1))]
    record = engine.run(agents, create("fcfs"), Oracle())
    outcomes = [agent.outcome for agent in record.agents]
    assert outcomes == ["refused", "finished", "finished", "finished"]
    assert f"the engine has room for {room}" in record.agents[0].reason


def test_lengths_are_scaled_to_the_context(engine: SGLangEngine) -> None:
    backend = engine._open()
    fitted = engine.fit([make_agent("a", (4000, 1060), (10, 1))])
    assert fitted.scale == 0.1
    assert backend.room == 506
    assert engine.about()["capacity_tokens"] == 2048
    assert engine.about()["context_tokens"] == 512


class Alike:
    """Prompts that begin alike for an agent's inferences."""

    def __init__(self, engine: SGLangEngine) -> None:
        self.backend = engine._open()

    def add(
        self,
        name: str,
        prompt_tokens: int,
        most_tokens: int,
        claim: Mapping[str, object],
    ) -> None:
        token = 3 + ord(name[0])
        self.backend.send(name, [token] * prompt_tokens, most_tokens, claim)


def test_what_the_cache_served_is_told(
    engine: SGLangEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    agents = [make_agent(name, (40, 3), (60, 3), stages=(0, 1)) for name in "ab"]
    apart = engine.run(agents, create("justitia"), Oracle())
    assert [agent.cached_tokens for agent in apart.agents] == [0, 0]
    assert apart.cached_tokens == 0
    monkeypatch.setattr(engine._open(), "add", Alike(engine).add)
    shared = engine.run(agents, create("justitia"), Oracle())
    assert [one.cached_tokens for one in shared.inferences] == [0, 40, 0, 40]
    assert [agent.cached_tokens for agent in shared.agents] == [40, 40]
    assert shared.cached_tokens == 80
    again = engine.run(agents, create("justitia"), Oracle())
    assert again.cached_tokens == 80  # and not what an earlier run left there


def test_a_run_that_fails_leaves_the_next_one_a_fresh_engine(
    engine: SGLangEngine,
) -> None:
    class Silent(FCFS):
        def peek(self) -> None:
            return None

    class Deaf(Silent):
        def order(self) -> Iterator[None]:  # type: ignore[override]
            return iter(())

    engine.close()  # only one can be open in a process
    other = SGLangEngine()
    with pytest.raises(EngineError, match="produced no token"):
        other.run([make_agent("a", (4, 4))], Deaf(), Oracle())
    assert other._backend is None
    other.close()
    assert engine.run([make_agent("a", (4, 4))], create("fcfs"), Oracle()).steps == 4


def test_tags_and_admissions_that_are_none_are_told(engine: SGLangEngine) -> None:
    with pytest.raises(EngineError, match="tags must be agent or stage, not 'no'"):
        engine.run([], create("fcfs"), Oracle(), tags="no")
    with pytest.raises(EngineError, match="must be one of none, max, not 'prompt'"):
        SGLangEngine(admission="prompt")


def test_an_sglang_whose_scheduler_is_made_otherwise_is_told(
    engine: SGLangEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    engine.close()
    monkeypatch.setitem(sys.modules, "justitia.engines.sglang.backend", None)
    with pytest.raises(EngineError, match="cannot be run in this process"):
        SGLangEngine().about()


# The command --------------------------------------------------------------------------


def test_the_command_gives_tables_and_json(
    engine: SGLangEngine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    engine.close()
    monkeypatch.chdir(tmp_path)
    write_jsonl(
        "mine.jsonl",
        [
            make_agent(f"a{k}", (900, 100), (90, 0), stages=(0, 1), at=k)
            for k in range(5)
        ],
    )
    scenario = ["--workload", "mine.jsonl", "--policy", "justitia,vtc"]
    arguments = ["run", "--engine", "sglang", *scenario, "--admission", "max"]
    code = cli.main([*arguments, "--jobs", "2", "--json", "out.json"])
    out, err = capfd.readouterr()
    assert code == 0, err
    assert "on sglang 0." in out
    assert "prompts and outputs are 0.506 times as long" in out
    assert "vtc: done (2 of 2)" in err
    content = json.loads(Path("out.json").read_text())
    assert content["schema"] == 1
    assert content["engine"] == {
        "name": "sglang",
        "version": content["engine"]["version"],
        "model": "tiny",
        "preset": "tiny-llama-cpu-sglang",
        "capacity_tokens": 2048,
        "context_tokens": 512,
        "admission": "max",
        "preemption": "recompute",
        "scaled": 0.506,
        "tags": "agent",
    }
    assert [run["policy"] for run in content["runs"]] == ["justitia", "vtc"]
    for run in content["runs"]:
        assert run["summary"]["finished"] == 10
        assert run["summary"]["preemptions"] == 0
        assert run["summary"]["cached_tokens"] == 0
    assert sys.stdout.writable()
    assert cli.main(["run", *scenario, "--json", "sim.json"]) == 0
    sim = json.loads(Path("sim.json").read_text())
    more = {"version", "model", "context_tokens", "scaled"}
    assert content["engine"].keys() - more == sim["engine"].keys()
    assert shape(content["runs"]) == shape(sim["runs"])
    assert content["workload"].keys() == sim["workload"].keys()
    assert content.keys() == sim.keys()


def shape(value: object) -> object:
    """Return what keys there are, and where."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    return [shape(inner) for inner in value] if isinstance(value, list) else None
