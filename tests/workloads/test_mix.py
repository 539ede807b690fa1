"""Drawing from recorded agents."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.workloads import KINDS, AgentSpec, WorkloadError, read, real_mix, sample
from tests.workloads.builders import DATA, NO_DATA, agent


def recorded(**kinds: int) -> list[AgentSpec]:
    return [
        agent(id=f"{kind}-{k}", kind=kind)
        for kind, n in kinds.items()
        for k in range(n)
    ]


@given(st.integers(0, 12), st.integers(0, 12), st.integers(0, 999))
def test_sample_keeps_the_order(there: int, n: int, seed: int) -> None:
    agents = recorded(X=there)
    drawn = sample(agents, n, seed)
    assert len(drawn) == min(n, there)
    assert drawn == [a for a in agents if a in drawn]
    assert drawn == sample(agents, n, seed)


def test_sample_is_fair() -> None:
    agents = recorded(X=10)
    counts = Counter(a.id for seed in range(1000) for a in sample(agents, 3, seed))
    assert all(abs(count - 300) < 75 for count in counts.values())


def test_sizes_are_exact_and_classes_share_equally() -> None:
    agents = recorded(
        FV=90, FVP=90, PE=90, CC=90, KBQAV=20, EV=20, SC=20, MRS=20, ALFWI=20, DM=9
    )
    kinds = Counter(a.kind for a in real_mix(agents, 300, seed=1))
    assert kinds["FV"] == kinds["FVP"] == kinds["PE"] == kinds["CC"] == 54
    assert sum(kinds[k] for k in ("KBQAV", "EV", "SC", "MRS", "ALFWI")) == 78
    assert kinds["DM"] == kinds["MapReduce"] == 3


def test_share_of_absent_classes_goes_to_those_of_their_size() -> None:
    kinds = Counter(a.kind for a in real_mix(recorded(FV=9, SC=9), 100, seed=1))
    assert kinds == {"FV": 72, "SC": 26, "MapReduce": 2}


def test_recorded_elephants_are_like_any_class() -> None:
    agents = recorded(FV=900, SC=300, MapReduce=50, DM=50)
    mix = real_mix(agents, 1000, seed=1)
    assert Counter(a.kind for a in mix)["MapReduce"] == 10
    assert {a.id for a in mix} <= {a.id for a in agents}


def test_nobody_is_drawn_twice_while_there_are_enough() -> None:
    agents = recorded(FV=72, SC=26, DM=1)
    ids = [a.id for a in real_mix(agents, 100, seed=3)]
    assert len(set(ids)) == 100
    assert not any("#" in name for name in ids)


@given(st.integers(0, 60), st.integers(0, 99))
def test_ids_are_unique_when_drawn_again(n: int, seed: int) -> None:
    agents = [*recorded(FV=3, SC=1), agent(id="FV-0#2", kind="FV")]
    mix = real_mix(agents, n, seed)
    assert len(mix) == len({a.id for a in mix}) == n
    assert mix == real_mix(agents, n, seed)
    for made in mix:
        assert made.id.rsplit("#", 1)[0].startswith(made.kind)


def test_ids_of_copies_count_up() -> None:
    ids = {a.id for a in real_mix(recorded(FV=1, SC=1), 4, seed=0)}
    assert ids == {"FV-0", "FV-0#2", "FV-0#3", "SC-0"}


def test_mix_needs_small_and_medium_agents() -> None:
    with pytest.raises(WorkloadError, match="needs small agents") as error:
        real_mix(recorded(SC=5, Zoo=3), 10, seed=0)
    assert "SC, Zoo" in str(error.value)
    with pytest.raises(WorkloadError, match="needs medium agents"):
        real_mix(recorded(FV=5), 10, seed=0)


@pytest.mark.parametrize("wrong", [-1, 0.5, None, True])
def test_wrong_count_is_refused(wrong: int) -> None:
    for draw in (real_mix, sample):
        with pytest.raises(WorkloadError, match="must be a count"):
            draw([agent()], wrong, 0)


@pytest.mark.skipif(not DATA.is_dir(), reason=NO_DATA)
def test_mix_of_recorded_agents() -> None:
    mix = real_mix(read(DATA / "agents"), 300, seed=0)
    sizes = Counter(KINDS[a.kind].size for a in mix)
    assert sizes == {"small": 216, "medium": 78, "large": 6}
