"""The generators against the published shapes of the classes."""

import hashlib
from collections import Counter
from statistics import correlation

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.workloads import KINDS, AgentSpec, WorkloadError, generate, paper_mix
from justitia.workloads.kinds import Spread

# Calls p50/p90, stages p50, widest p50, prompt p50/p90, decode p50/p90, cost p50/p90 of
# recorded agents of each class.
RECORDED = {
    "KBQAV": (13, 31, 3, 6, 475, 1304, 68, 167, 1.1e6, 2.9e6),
    "CC": (10, 10, 1, 10, 209, 512, 54, 297, 2.4e5, 1.2e6),
    "SC": (10, 20, 1, 10, 530, 547, 206, 375, 1.3e6, 1.7e6),
    "EV": (27, 36, 3, 9, 538, 614, 69, 121, 1.1e6, 1.6e6),
    "FV": (2, 4, 2, 1, 932, 1089, 30, 39, 6.1e4, 1.2e5),
    "FVP": (7, 11, 1, 7, 33, 46, 45, 78, 2.5e4, 4.3e4),
    "ALFWI": (50, 50, 50, 1, 2761, 3310, 12, 29, 1.8e6, 2.6e6),
    "PE": (5, 8, 5, 1, 479, 877, 18, 87, 7.0e4, 2.6e5),
    "MRS": (5, 7, 2, 4, 573, 773, 86, 243, 3.2e5, 9.6e5),
    "DM": (6, 6, 2, 3, 1717, 2721, 846, 1624, 1.2e7, 2.7e7),
}
MOST = {  # of prompt and of decode tokens
    "KBQAV": (1656, 739),
    "CC": (835, 1118),
    "SC": (562, 1000),
    "EV": (789, 239),
    "FV": (2092, 106),
    "FVP": (212, 481),
    "ALFWI": (3689, 118),
    "PE": (4612, 512),
    "MRS": (1142, 943),
    "DM": (7759, 5905),
}


def quantile(values: list[float], place: float) -> float:
    return sorted(values)[int(place * len(values))]


def ranks(values: list[float]) -> list[float]:
    order = sorted(range(len(values)), key=values.__getitem__)
    return [
        float(rank) for _, rank in sorted(zip(order, range(len(order)), strict=True))
    ]


def drawn(kind: str) -> list[AgentSpec]:
    return [generate(kind, number, seed=11) for number in range(300)]


@pytest.mark.parametrize("kind", RECORDED)
def test_shape_is_that_of_recorded_agents(kind: str) -> None:
    agents = drawn(kind)
    calls = [a.inferences for a in agents]
    columns: dict[str, list[float]] = {
        "calls": [len(c) for c in calls],
        "stages": [len({i.stage for i in c}) for c in calls],
        "widest": [max(Counter(i.stage for i in c).values()) for c in calls],
        "prompt": [i.prompt_tokens for c in calls for i in c],
        "decode": [i.decode_tokens for c in calls for i in c],
        "cost": [float(a.cost()) for a in agents],
    }
    wanted = iter(RECORDED[kind])
    for name, values in columns.items():
        assert quantile(values, 0.5) == pytest.approx(next(wanted), rel=0.25), name
        if name not in ("stages", "widest"):
            assert quantile(values, 0.9) == pytest.approx(next(wanted), rel=0.4), name
    prompt, decode = MOST[kind]
    assert max(columns["decode"]) <= decode
    # Prompts that grow with what is produced have no sharp end.
    assert max(columns["prompt"]) <= prompt * (2.7 if kind == "MRS" else 1.3)


def test_elephants_have_30_to_80_maps() -> None:
    for made in drawn("MapReduce")[:50]:
        *maps, merge = made.inferences
        assert 30 <= len(maps) <= 80
        assert all(800 <= one.prompt_tokens <= 1800 for one in maps)
        assert merge.prompt_tokens > sum(one.decode_tokens for one in maps)
        assert made.depths() == (0,) * len(maps) + (1,)


@pytest.mark.parametrize(
    ("kind", "low", "high"),
    [
        ("KBQAV", 0.6, 1.0),
        ("FVP", 0.5, 1.0),
        ("EV", 0.5, 1.0),
        ("CC", 0.5, 0.9),
        ("FV", -0.1, 0.4),
        ("ALFWI", -0.1, 0.4),
        ("DM", -0.25, 0.25),
    ],
)
def test_text_tells_the_cost_where_it_does(kind: str, low: float, high: float) -> None:
    agents = drawn(kind)
    texts = [float(len(a.text)) for a in agents]
    costs = [float(a.cost()) for a in agents]
    assert low <= correlation(ranks(texts), ranks(costs)) <= high


def test_words_tell_something_that_length_does_not() -> None:
    agents = drawn("MRS")
    telling = set(KINDS["MRS"].telling.split())
    shares = [
        sum(word.strip(".") in telling for word in a.text.split()) / len(a.text.split())
        for a in agents
    ]
    decode = [float(a.inferences[0].decode_tokens) for a in agents]
    assert correlation(ranks(shares), ranks(decode)) > 0.3


def digest(agents: list[AgentSpec]) -> str:
    return hashlib.sha256(repr(agents).encode()).hexdigest()


def test_seed_gives_the_same_bytes_everywhere() -> None:
    # Computed once; a change here changes every published result.
    assert digest(paper_mix(60, seed=1))[:16] == "49e7cf2a9bb0d6ef"
    assert digest(paper_mix(60, seed=1)) != digest(paper_mix(60, seed=2))


def test_larger_mix_holds_the_agents_of_the_smaller() -> None:
    small = {a.id: a for a in paper_mix(100, seed=3)}
    large = {a.id: a for a in paper_mix(300, seed=3)}
    assert all(large[name] == made for name, made in small.items())


def test_mix_of_300_has_exact_sizes() -> None:
    mix = paper_mix(300, seed=0)
    sizes = Counter(KINDS[a.kind].size for a in mix)
    assert sizes == {"small": 216, "medium": 78, "large": 6}
    kinds = Counter(a.kind for a in mix)
    assert kinds["FV"] == kinds["FVP"] == kinds["PE"] == kinds["CC"] == 54
    assert {kinds[k] for k in ("KBQAV", "EV", "SC", "MRS", "ALFWI")} == {15, 16}
    assert kinds["DM"] == kinds["MapReduce"] == 3
    assert all(a.arrival is None for a in mix)
    assert [a.kind for a in mix] != sorted(a.kind for a in mix)


@given(st.integers(0, 120), st.integers(0, 10**6))
def test_mix_has_largest_remainder_counts(n: int, seed: int) -> None:
    from justitia.workloads.draws import stream
    from justitia.workloads.kinds import SIZES
    from justitia.workloads.shares import split

    counts = split(n, SIZES, stream(seed, "x"))
    assert sum(counts.values()) == n
    for name, count in counts.items():
        assert abs(count - n * SIZES[name] / 100) < 1


def test_ids_are_unique_and_of_the_form() -> None:
    mix = paper_mix(40, seed=5)
    assert len({a.id for a in mix}) == 40
    assert generate("SC", 17, seed=5).id == "SC-00017"
    assert paper_mix(0, seed=5) == []


@pytest.mark.parametrize("wrong", [-1, 1.0, True, None])
def test_wrong_count_is_refused(wrong: object) -> None:
    with pytest.raises(WorkloadError, match="must be a count"):
        paper_mix(wrong, seed=0)  # type: ignore[arg-type]


@pytest.mark.parametrize("wrong", ["sc", "", None, ["SC"]])
def test_b35_wrong_class_lists_the_classes(wrong: object) -> None:
    with pytest.raises(WorkloadError, match="there are: FV, FVP, PE"):
        generate(wrong, 0, 0)  # type: ignore[arg-type]


@given(st.floats(-9, 9))
def test_spread_stays_between_its_ends(score: float) -> None:
    spread = Spread((1, 2, 5, 9, 20, 100))
    assert 1 <= spread.at(score) <= 100
    assert spread.at(0) == 5
