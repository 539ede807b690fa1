"""What is read to train on, and how it is parted."""

import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.predictors.data import Data, fingerprint, load
from justitia.predictors.splits import MOST, SEED, SHARE, split
from justitia.workloads import AgentSpec, WorkloadError, write_jsonl
from tests.workloads.builders import DATA, NO_DATA, agent


def test_files_of_all_formats_together(tmp_path: Path) -> None:
    write_jsonl(tmp_path / "own.jsonl.gz", [agent(id="a", kind="SC")])
    (tmp_path / "log.jsonl").write_text(
        '{"agent": "b", "kind": "PE", "prompt_tokens": 1, "decode_tokens": 2, '
        '"group": "g"}\n'
    )
    data = load([tmp_path / "own.jsonl.gz", tmp_path / "log.jsonl"])
    assert [one.id for one in data.agents] == ["a", "b"]
    assert data.groups == {"a": "a", "b": "g"}
    assert data.kinds() == ["PE", "SC"]
    assert load([tmp_path]).groups == data.groups


def test_the_same_agent_twice_is_told(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write_jsonl(tmp_path / name, [agent(id="a")])
    with pytest.raises(WorkloadError) as error:
        load([tmp_path / "one", tmp_path / "two"])
    assert str(error.value) == (
        f"{tmp_path / 'two'}: id: 'a' is the id of an agent of {tmp_path / 'one'} "
        "already"
    )


def test_a_fingerprint_is_of_the_group_alone() -> None:
    assert fingerprint("g") == fingerprint("g") != fingerprint("h")
    assert len(fingerprint("é" * 1000)) == 16
    int(fingerprint(""), 16)


def made(*groups: tuple[str, str, int]) -> Data:
    """Return agents: (kind, group, how many)."""
    agents: list[AgentSpec] = []
    of = {}
    for kind, group, many in groups:
        for _ in range(many):
            name = f"{len(agents)}"
            agents.append(AgentSpec(name, (), kind=kind))
            of[name] = group
    return Data(tuple(agents), of)


@given(
    st.lists(
        st.tuples(st.sampled_from("AB"), st.sampled_from("ghij"), st.integers(1, 9)),
        min_size=1,
    ),
    st.integers(1, 30),
    st.floats(0.01, 1),
    st.integers(0, 99),
)
def test_no_group_lies_on_both_sides(
    groups: list[tuple[str, str, int]], most: int, share: float, seed: int
) -> None:
    data = made(*groups)
    train, test = split(data, most=most, share=share, seed=seed)
    assert {*train.groups} | {*test.groups} == {*data.groups}
    assert not {*train.groups.values()} & {*test.groups.values()}
    assert len(train.agents) + len(test.agents) == len(data.agents)
    assert train.kinds() == data.kinds()  # of each class something is learned
    assert split(data, most=most, share=share, seed=seed) == (train, test)


def test_how_many_are_trained_on() -> None:
    data = made(
        *(("A", f"a{k}", 1) for k in range(400)),
        *(("B", f"b{k}", 1) for k in range(10)),
        ("C", "c0", 65),
        *(("C", f"c{k}", 1) for k in range(1, 36)),
    )
    train, _ = split(data)
    counts = Counter(one.kind for one in train.agents)
    assert (counts["A"], counts["B"]) == (MOST, int(SHARE * 10))
    assert counts["C"] in (35, 70)  # the large group is in, or cannot be
    other, _ = split(data, seed=SEED + 1)
    assert train != other
    everything, nothing = split(data, most=10**6, share=1.0)
    assert (everything.agents, nothing.agents) == (data.agents, ())


def test_a_class_of_one_group_is_trained_on() -> None:
    train, test = split(made(("A", "g", 50)), most=3)
    assert (len(train.agents), len(test.agents)) == (50, 0)


@pytest.mark.parametrize(("most", "share"), [(0, 0.7), (1, 0.0), (1, 1.1), (1.5, 0.7)])
def test_a_split_that_is_none_is_told(most: int, share: float) -> None:
    with pytest.raises(WorkloadError, match="must be"):
        split(made(("A", "g", 1)), most=most, share=share)


@pytest.mark.skipif(not (DATA / "agents").is_dir(), reason=NO_DATA)
def test_the_recorded_agents() -> None:
    data = load([DATA / "agents"])
    train, test = split(data)
    sizes = Counter(one.kind for one in data.agents)
    counts = Counter(one.kind for one in train.agents)
    for kind, size in sizes.items():
        assert 0.5 * min(MOST, SHARE * size) < counts[kind] <= min(MOST, SHARE * size)
    for path in (DATA / "agents").glob("*.gz"):
        kind = path.name.partition(".")[0]
        assert sizes[kind] == len(load([path]).agents)
    assert {one.kind for one in test.agents} == set(sizes)
    assert json.dumps(sorted(train.groups)) != json.dumps(sorted(test.groups))
