"""AIPerf's dag_jsonl: what maps to agents, what does not, and the way back."""

import json
from pathlib import Path
from typing import Any

import pytest

from justitia.workloads import (
    AgentSpec,
    WorkloadError,
    generate,
    paper_mix,
    read,
    write_dag_jsonl,
)
from tests.workloads.builders import agent, call


def turn(
    words: int = 3,
    answer: int = 5,
    **fields: Any,  # noqa: ANN401
) -> dict[str, Any]:
    messages = [{"role": "user", "content": " ".join(["w"] * words)}]
    return {"messages": messages, "max_tokens": answer, **fields}


def session(
    name: str,
    *turns: dict[str, Any],
    **fields: Any,  # noqa: ANN401
) -> dict[str, Any]:
    return {"session_id": name, "turns": list(turns) or [turn()], **fields}


def written(folder: Path, *sessions: dict[str, Any]) -> Path:
    file = folder / "w.dag.jsonl"
    file.write_text("".join(json.dumps(s) + "\n" for s in sessions))
    return file


def shape(path: Path) -> dict[str, tuple[int, int, tuple[str, ...] | None]]:
    (made,) = read(path)
    return {i.id: (i.prompt_tokens, i.decode_tokens, i.after) for i in made.inferences}


def test_turns_are_a_chain_with_a_growing_prompt(tmp_path: Path) -> None:
    file = written(tmp_path, session("s", turn(3, 5), turn(2, 4)))
    assert shape(file) == {"s:0": (3, 5, ()), "s:1": (10, 4, ("s:0",))}
    assert read(file)[0].text == "w w w"


def test_isolated_turns_do_not_grow(tmp_path: Path) -> None:
    mode = "message_array_with_responses"
    file = written(tmp_path, session("s", turn(3), turn(2), context_mode=mode))
    assert [p for p, _, _ in shape(file).values()] == [3, 2]


def test_forks_carry_on_the_conversation(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        session("root", turn(3, 5, forks=["a", "b"])),
        session("a", turn(1, 1), turn(1, 1)),
        session("b", turn(2, 2)),
    )
    assert shape(file) == {
        "root:0": (3, 5, ()),
        "a:0": (9, 1, ("root:0",)),
        "a:1": (11, 1, ("a:0",)),
        "b:0": (10, 2, ("root:0",)),
    }


def test_background_fork_lets_the_parent_go_on(tmp_path: Path) -> None:
    forks = [{"child": "a", "background": True}]
    file = written(
        tmp_path, session("root", turn(forks=forks), turn()), session("a", turn(1, 1))
    )
    found = shape(file)
    assert found["root:1"][2] == found["a:0"][2] == ("root:0",)


def test_spawns_start_afresh_and_are_joined_at_the_next_turn(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        session("root", turn(spawns=["a", "b"]), turn()),
        session("a", turn(7, 1), turn(1, 1)),
        session("b", turn(8, 1)),
    )
    found = shape(file)
    assert found["a:0"] == (7, 1, ("root:0",))
    assert found["root:1"][2] == ("root:0", "a:1", "b:0")
    assert read(file)[0].depths() == (0, 1, 2, 1, 3)


def test_join_at_lets_turns_run_meanwhile(tmp_path: Path) -> None:
    spawns = [{"children": ["a"], "join_at": 2}]
    file = written(
        tmp_path, session("root", turn(spawns=spawns), turn(), turn()), session("a")
    )
    found = shape(file)
    assert found["root:1"][2] == ("root:0",)
    assert found["root:2"][2] == ("root:1", "a:0")


def test_join_waits_for_what_a_spawned_session_forks(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        session("root", turn(spawns=["a"]), turn()),
        session("a", turn(forks=["b"])),
        session("b"),
    )
    assert shape(file)["root:1"][2] == ("root:0", "b:0")


def test_spawn_of_the_last_turn_is_joined_by_nobody(tmp_path: Path) -> None:
    file = written(tmp_path, session("root", turn(spawns=["a"])), session("a"))
    assert shape(file)["a:0"][2] == ("root:0",)


def test_session_spawned_twice_runs_twice(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        session("root", turn(spawns=["a"]), turn(spawns=["a"]), turn()),
        session("a"),
    )
    found = shape(file)
    assert found["root:1"][2] == ("root:0", "a:0")
    assert found["root:2"][2] == ("root:1", "a#2:0")


def test_spawned_before_the_session(tmp_path: Path) -> None:
    file = written(
        tmp_path, session("root", turn(), pre_session_spawns=["a"]), session("a")
    )
    assert shape(file)["a:0"][2] == shape(file)["root:0"][2] == ()


def test_orchestrator_of_single_turns_is_stages(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {"session_id": "o", "orchestrator": True,
         "rounds": [{"spawns": ["a", "b"]}, {"spawns": ["c"], "think_time_ms": 0}]},
        session("a"), session("b"), session("c"),
    )  # fmt: skip
    (made,) = read(file)
    assert made.id == "o"
    assert [(i.id, i.stage, i.after) for i in made.inferences] == [
        ("a:0", 0, None),
        ("b:0", 0, None),
        ("c:0", 1, None),
    ]


def test_orchestrator_repeats_its_rounds(tmp_path: Path) -> None:
    file = written(
        tmp_path,
        {"session_id": "o", "orchestrator": True, "rounds": 2, "spawns": ["a", "b"]},
        session("a", turn(), turn()), session("b"),
    )  # fmt: skip
    found = shape(file)
    assert found["a#2:0"][2] == found["b#2:0"][2] == ("a:1", "b:0")
    assert read(file)[0].depths() == (0, 1, 0, 2, 3, 2)


def test_each_root_is_an_agent(tmp_path: Path) -> None:
    file = written(
        tmp_path, session("a", turn(spawns=["c"])), session("b"), session("c")
    )
    assert [(a.id, len(a.inferences)) for a in read(file)] == [("a", 2), ("b", 1)]


def test_tokens_can_be_counted_otherwise(tmp_path: Path) -> None:
    file = written(tmp_path, session("s", turn(3)))
    assert read(file, count_tokens=len)[0].inferences[0].prompt_tokens == 5


def test_parts_tools_and_calls_count(tmp_path: Path) -> None:
    one = {
        "messages": [
            {"role": "system", "content": [{"type": "text", "text": "a b"}]},
            {"role": "assistant", "tool_calls": [{"name": "f"}]},
            {"role": "tool", "content": None},
        ],
        "tools": [{"name": "f"}],
        "max_tokens": 1,
        "extra": {"temperature": 0},
        "model": "m",
    }
    assert shape(written(tmp_path, session("s", one)))["s:0"][0] == 2 + 2 + 2


@pytest.mark.parametrize(
    ("sessions", "says"),
    [
        ([session("a", turn(), turn(delay=5.0))], "turns[1].delay: must be 0"),
        ([session("a", turn(delay=-1))], "turns[0].delay: it must be a finite number"),
        ([session("a", think_time_ms=3)], "think_time_ms: must be 0"),
        ([session("a", turn(model="x"), turn(model="y"))], "turns[1].model: is 'y'"),
        ([session("a", turn(temperature=1))], "turns[0].temperature: no such field"),
        ([session("a", tuns=[])], "tuns: no such field"),
        ([{"session_id": "a", "turns": []}], "turns: must not be empty"),
        ([{"session_id": "a"}], "turns: is missing"),
        ([{"session_id": "", "turns": []}], "session_id: must be a string"),
        ([session("a"), session("a")], "session_id: 'a' is taken (line 1)"),
        ([session("a", turn(answer=0))], "turns[0].max_tokens: must be at least 1"),
        ([session("a", turn(max_tokens=None))], "turns[0].max_tokens: it must be an"),
        ([session("a", turn(max_tokens=True))], "turns[0].max_tokens: it must be an"),
        ([session("a", {"messages": []})], "turns[0].max_tokens: is missing"),
        ([session("a", turn(messages=3))], "turns[0].messages: must be a list"),
        ([session("a", turn(messages=[{}]))], "turns[0].messages[0].role: is missing"),
        (
            [session("a", turn(messages=[
                {"role": "user", "content": [{"type": "image_url"}]}]))],
            "turns[0].messages[0].content[0].type: must be 'text', not 'image_url'",
        ),
        ([session("a", context_mode="x")], "context_mode: must be one of"),
        ([session("a", rounds=2)], "rounds: is only for an orchestrator"),
        ([session("a", orchestrator="yes")], "orchestrator: must be a bool"),
        ([session("a", orchestrator=True)], "turns: must be empty"),
        ([{"session_id": "a", "orchestrator": True}], "spawns: is missing"),
        (
            [{"session_id": "a", "orchestrator": True, "rounds": []}],
            "rounds: an orchestrator must start something",
        ),
        (
            [{"session_id": "a", "orchestrator": True, "rounds": 10**9, "spawns": []}],
            "rounds: must be at most 10,000",
        ),
        ([session("a", turn(spawns=["b"]))], "'a' starts 'b', which is no session"),
        ([session("a", turn(spawns=[3]))], "turns[0].spawns[0]: must be the id"),
        ([session("a", turn(spawns=["b", "b"]))], "turns[0].spawns: 'b' is started"),
        (
            [session("a", turn(forks=["b"]), turn()), session("b")],
            "turns[0].forks: must be in the background, or in the last turn",
        ),
        (
            [session("a", turn(forks=[{"child": "b", "background": 1}]))],
            "turns[0].forks[0].background: must be a bool",
        ),
        (
            [session("a", turn(), turn(spawns=[{"children": ["b"], "join_at": 1}]))],
            "turns[1].spawns: join_at must be a turn of the session after this one",
        ),
        (
            [session("a", turn(spawns=[{"children": ["b"], "join_at": 1}]))],
            "turns[0].spawns: join_at must be a turn of the session after this one",
        ),
        (
            [session("a", turn(forks=["c"])), session("b"), session("c"),
             session("r", turn(spawns=["a"]), turn(forks=["c"]))],
            "'c' is forked twice",
        ),
        (
            [session("r", turn(spawns=["a"])), session("a", turn(spawns=["a"]))],
            "'a' starts itself",
        ),
        (
            [session("r"), session("a", turn(spawns=["b"])),
             session("b", turn(spawns=["a"]))],
            "'a' is part of sessions that start each other in a circle",
        ),
        (
            [session(f"s{k}", turn(spawns=[f"s{k + 1}"])) for k in range(300)]
            + [session("s300")],
            "more than 200 sessions start each other in a row",
        ),
        ([session("a\n")], "session_id: it must have no control characters"),
    ],
)  # fmt: skip
def test_what_does_not_map_is_refused(
    tmp_path: Path, sessions: list[dict[str, Any]], says: str
) -> None:
    file = written(tmp_path, *sessions)
    with pytest.raises(WorkloadError) as error:
        read(file)
    assert str(error.value).startswith(f"{file}, line ")
    assert says in str(error.value)


def test_file_that_doubles_and_doubles(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from justitia.workloads.files import dag_tree

    monkeypatch.setattr(dag_tree, "LARGEST_TREE", 1000)
    levels = [
        session(f"s{k}", turn(spawns=[f"s{k + 1}"]), turn(spawns=[f"s{k + 1}"]), turn())
        for k in range(60)
    ]
    with pytest.raises(WorkloadError, match="starts more than 1,000 turns"):
        read(written(tmp_path, *levels, session("s60")))


# Writing ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["w.jsonl", "w.jsonl.gz"])
def test_stages_come_back(tmp_path: Path, name: str) -> None:
    agents = [a for a in paper_mix(40, seed=2) if a.kind not in ("ALFWI", "DM")]
    write_dag_jsonl(tmp_path / name, agents)
    back = read(tmp_path / name)
    assert [a.id for a in back] == [a.id for a in agents]
    for was, now in zip(agents, back, strict=True):
        assert now.cost() == was.cost()
        assert now.stage_costs() == was.stage_costs()
        assert sorted(now.depths()) == sorted(was.depths())
    once = (tmp_path / name).read_bytes()
    write_dag_jsonl(tmp_path / name, agents)
    assert (tmp_path / name).read_bytes() == once


def test_single_call_is_a_plain_session(tmp_path: Path) -> None:
    write_dag_jsonl(tmp_path / "w", [agent(call(4, 3))])
    (line,) = (tmp_path / "w").read_text().splitlines()
    one = {"role": "user", "content": "so so so so"}
    assert json.loads(line) == {
        "session_id": "a",
        "turns": [
            {
                "messages": [one],
                "max_tokens": 3,
                "extra": {"min_tokens": 3, "ignore_eos": True},
            }
        ],
    }


def test_after_that_is_stages_can_be_written(tmp_path: Path) -> None:
    made = agent(call(), call(), call(after=("0", "1")))
    write_dag_jsonl(tmp_path / "w", [made])
    assert read(tmp_path / "w")[0].depths() == (0, 0, 1)


@pytest.mark.parametrize(
    ("made", "says"),
    [
        (agent(call(after=()), call(), call(after=("0",))), "does not wait for all"),
        (agent(call(3, 0)), "produces no tokens"),
        (agent(weight=2), "its weight is 2, not 1"),
        (agent(cancel_after=3), "it is cancelled after 3.0 s"),
    ],
)
def test_what_the_format_cannot_say_is_refused(
    tmp_path: Path, made: AgentSpec, says: str
) -> None:
    with pytest.raises(WorkloadError, match="agent 'a' cannot be written") as error:
        write_dag_jsonl(tmp_path / "w", [generate("FVP", 0, 0), made])
    assert says in str(error.value)
    assert not list(tmp_path.iterdir())


def test_session_ids_must_not_clash(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="'a/0' is taken"):
        write_dag_jsonl(tmp_path / "w", [agent(call(), call()), agent(id="a/0")])
