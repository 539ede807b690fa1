"""`justitia run --engine vllm`, on the real engine with the model made on the spot."""

import json
import sys
from collections.abc import Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest

if find_spec("vllm") is None:
    pytest.skip(
        "vLLM is not installed; tox run -e vllm does it", allow_module_level=True
    )

from justitia import cli
from justitia.engines import EngineError
from justitia.engines.vllm.engine import VLLMEngine
from justitia.policy import create
from justitia.policy.fcfs import FCFS
from justitia.predictors import Oracle
from justitia.workloads import AgentSpec, write_jsonl
from tests.engines.build import make_agent

POLICIES = ("fcfs", "vtc", "justitia")


@pytest.fixture(scope="module")
def engine() -> Iterator[VLLMEngine]:
    made = VLLMEngine()
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
    engine: VLLMEngine, policy: str
) -> None:
    ended: list[int] = []
    record = engine.run(crowd(), create(policy), Oracle(), progress=ended.append)
    assert [agent.outcome for agent in record.agents] == ["finished"] * 12
    assert sum(ended) == 36
    assert record.utilisation is not None
    assert 0.3 < record.utilisation <= 1
    for inference in record.inferences:
        assert inference.start is not None
        assert inference.finish is not None
        assert inference.start < inference.finish
        assert inference.start_step is not None
        assert inference.finish_step is not None
        assert inference.start_step < inference.finish_step < record.steps
    backend = engine._open()
    assert backend.usage() == 0
    assert not backend._ids
    backend.agents._check()
    assert not len(backend.agents)


def test_with_tags_by_stage_the_lag_is_within_the_bound(engine: VLLMEngine) -> None:
    policy = create("justitia", tags="stage")
    record = engine.run(crowd(), policy, Oracle(), tags="stage")
    assert record.lag is not None
    assert record.lag.excess <= 0
    assert all(agent.reference_finish is not None for agent in record.agents)


def test_memory_is_short_and_nobody_is_lost(engine: VLLMEngine) -> None:
    agents = [make_agent(f"a{k}", (40, 200)) for k in range(14)]
    record = engine.run(agents, create("justitia"), Oracle())
    assert record.preemptions > 0
    assert {i.outcome for i in record.inferences} == {"finished"}
    assert sum(i.preempted for i in record.inferences) == record.preemptions


def test_steps_of_one_request_are_one_for_each_token(engine: VLLMEngine) -> None:
    record = engine.run([make_agent("a", (40, 7))], create("fcfs"), Oracle())
    assert (record.steps, record.preemptions) == (7, 0)
    assert record.inferences[0].finish_step == 6


def test_an_inference_ends_with_its_own_tokens(engine: VLLMEngine) -> None:
    agents = [make_agent("a", (40, 5), longest=300), make_agent("b", (9, 0), (0, 3))]
    record = engine.run(agents, create("justitia"), Oracle())
    assert {i.outcome for i in record.inferences} == {"finished"}
    assert [i.finish_step for i in record.inferences] == [4, 0, 2]


def test_an_agent_that_is_cancelled_leaves_the_engine(engine: VLLMEngine) -> None:
    long = [make_agent(f"a{k}", (40, 400), (9, 9), stages=(0, 1)) for k in range(9)]
    agents = [
        replace(spec, cancel_after=0.02 if k % 2 else None)
        for k, spec in enumerate(long)
    ]
    record = engine.run(agents, create("justitia"), Oracle())
    outcomes = [agent.outcome for agent in record.agents]
    assert outcomes == ["finished", "cancelled"] * 4 + ["finished"]
    assert engine._open().usage() == 0


def test_what_is_too_large_is_refused(engine: VLLMEngine) -> None:
    agents = [make_agent("a", (400, 113)), make_agent("b", (400, 112))]
    record = engine.run(agents, create("fcfs"), Oracle())
    assert [agent.outcome for agent in record.agents] == ["refused", "finished"]
    assert "400 + 113 tokens, the engine has room for 512" in record.agents[0].reason


def test_lengths_are_scaled_to_the_context(engine: VLLMEngine) -> None:
    fitted = engine.fit([make_agent("a", (4000, 1120), (10, 1))])
    assert fitted.scale == 0.1
    assert engine.about()["capacity_tokens"] == 63 * 32
    assert engine.about()["context_tokens"] == 512


def test_a_run_that_fails_leaves_the_next_one_a_fresh_engine() -> None:
    class Silent(FCFS):
        def peek(self) -> None:
            return None

    engine = VLLMEngine()
    with pytest.raises(Exception, match=r"nobody is waiting|no token"):
        engine.run([make_agent("a", (4, 4))], Silent(), Oracle())
    assert engine._backend is None
    engine.close()


def test_a_tag_that_is_none_is_told(engine: VLLMEngine) -> None:
    with pytest.raises(EngineError, match="tags must be agent or stage, not 'no'"):
        engine.run([], create("fcfs"), Oracle(), tags="no")


# The command --------------------------------------------------------------------------


def test_the_command_gives_tables_and_json(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    write_jsonl(
        "mine.jsonl",
        [
            make_agent(f"a{k}", (900, 100), (90, 0), stages=(0, 1), at=k)
            for k in range(5)
        ],
    )
    arguments = ["run", "--engine", "vllm", "--workload", "mine.jsonl", "--jobs", "2"]
    arguments += ["--policy", "justitia,vtc", "--json", "out.json"]
    code = cli.main([*arguments, "--admission", "max"])
    out, err = capfd.readouterr()
    assert code == 0, err
    assert "on vllm 0.3" in out
    assert "prompts and outputs are 0.512 times as long" in out
    assert "vtc: done (2 of 2)" in err
    content = json.loads(Path("out.json").read_text())
    assert content["schema"] == 1
    assert content["engine"] == {
        "name": "vllm",
        "version": content["engine"]["version"],
        "model": "tiny",
        "preset": "tiny-llama-cpu",
        "capacity_tokens": 2016,
        "context_tokens": 512,
        "admission": "max",
        "preemption": "recompute",
        "scaled": 0.512,
        "tags": "agent",
    }
    assert [run["policy"] for run in content["runs"]] == ["justitia", "vtc"]
    for run in content["runs"]:
        assert run["summary"]["finished"] == 10
        assert run["summary"]["preemptions"] == 0
    assert sys.stdout.writable()
