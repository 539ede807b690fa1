"""Logs of finished inferences as workloads."""

import gzip
import json
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.workloads import (
    AgentSpec,
    InferenceSpec,
    WorkloadError,
    read,
    read_groups,
)
from tests.workloads.builders import agent, call, shapes


def line(agent: str = "a", p: int = 10, d: int = 5, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    return {"agent": agent, "prompt_tokens": p, "decode_tokens": d, **fields}


def logged(path: Path, *lines: dict[str, Any]) -> Path:
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    return path


def complaint(path: Path) -> str:
    with pytest.raises(WorkloadError) as error:
        read(path)
    return str(error.value)


def test_lines_of_agents_may_be_mixed(tmp_path: Path) -> None:
    file = logged(
        tmp_path / "log.jsonl",
        line("b", 1, 2, kind="SC", justitia_inference=1),
        line("a", 3, 4, stage=2, text="later"),
        line("b", 5, 6, kind="SC", stage=1, max_tokens=9, text="Question"),
        line("a", 7, 8, text="first", group="g"),
    )
    # The text is that of the first line that has one, whatever its stage.
    with pytest.raises(WorkloadError, match=r"line 4: group: must be None for agent"):
        read(file)
    lines = [json.loads(one) for one in file.read_text().splitlines()]
    lines[1]["group"] = "g"
    logged(file, *lines)
    assert read(file) == [
        agent(call(1, 2), call(5, 6, stage=1, max_tokens=9), id="b", kind="SC",
              text="Question"),
        agent(call(7, 8), call(3, 4, stage=2), id="a", text="later"),
    ]  # fmt: skip
    assert read_groups(file) == {"b": "b", "a": "g"}


def test_an_agent_may_lie_in_several_files_of_a_folder(tmp_path: Path) -> None:
    logged(tmp_path / "1.jsonl", line("a", 1, 1, group="g"))
    rest = json.dumps(line("a", 2, 2, stage=1, group="g")) + "\n"
    (tmp_path / "2.jsonl.gz").write_bytes(gzip.compress(rest.encode()))
    assert read(tmp_path) == [agent(call(1, 1), call(2, 2, stage=1), id="a")]
    assert read_groups(tmp_path) == {"a": "g"}


def test_a_log_beside_other_formats(tmp_path: Path) -> None:
    logged(tmp_path / "1.jsonl", line("a"))
    logged(
        tmp_path / "2.jsonl",
        {"agent_class": "SC", "agent_id": "b", "input": None, "calls": [[0, 1, 1]]},
    )
    logged(tmp_path / "3.jsonl", {"justitia_workload": 1, "id": "c", "inferences": []})
    assert sorted(one.id for one in read(tmp_path)) == ["a", "b", "c"]
    assert read_groups(tmp_path) == {"a": "a", "b": "b", "c": "c"}
    logged(tmp_path / "4.jsonl", line("b"))
    assert "id: 'b' is the id of an agent already" in complaint(tmp_path)


@given(shapes(), st.randoms(use_true_random=False))
def test_any_order_of_a_log_gives_the_same_stages(
    calls: tuple[InferenceSpec, ...], rng: Random
) -> None:
    from justitia.workloads.files import finished
    from justitia.workloads.files.row import Row

    rows = [
        Row("log", n, line("a", one.prompt_tokens, one.decode_tokens, stage=one.stage))
        for n, one in enumerate(calls)
    ]
    rng.shuffle(rows)
    found = [one for _, one in finished.agents(rows)]
    if not calls:
        assert found == []
        return
    (one,) = found
    plain = AgentSpec("a", tuple(call(c.prompt_tokens, c.decode_tokens, stage=c.stage)
                                 for c in calls))  # fmt: skip
    assert one.cost() == plain.cost()
    assert one.stage_costs() == plain.stage_costs()


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"agent": ""}, "line 2: agent: must be a string that is not empty, not ''"),
        ({"agent": 3}, "line 2: agent: must be a string that is not empty, not 3"),
        ({"kind": "SC"}, "line 2: kind: must be None for agent 'a', as in "),
        ({"group": "g"}, "line 2: group: must be None for agent 'a', as in "),
        ({"decode_tokens": -1}, "line 2: decode_tokens: it must be a count from 0"),
        ({"prompt_tokens": "3"}, "line 2: prompt_tokens: it must be "),
        ({"stage": 1.5}, "line 2: stage: it must be "),
        ({"max_tokens": 4}, "line 2: decode_tokens of an inference must be at most"),
        ({"decod_tokens": 4}, "line 2: decod_tokens: no such field; there are: just"),
        ({"justitia_inference": 2}, "line 2: justitia_inference: must be 1, the vers"),
        ({"text": "\ud800"}, "line 2: text: "),
    ],
)
def test_a_wrong_line_is_told(
    fields: dict[str, Any], said: str, tmp_path: Path
) -> None:
    file = logged(tmp_path / "log.jsonl", line(), {**line(), **fields})
    assert said in complaint(file)


def test_a_place_is_told_once(tmp_path: Path) -> None:
    file = logged(tmp_path / "log.jsonl", {**line(), "text": "\ud800"})
    assert complaint(file).count("line 1") == 1


@pytest.mark.parametrize("field", ["prompt_tokens", "decode_tokens"])
def test_a_length_that_is_missing_is_told(field: str, tmp_path: Path) -> None:
    lines = [line(), line()]
    del lines[1][field]
    assert f"line 2: {field}: is missing" in complaint(logged(tmp_path / "l", *lines))
