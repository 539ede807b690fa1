"""Which agents arrive when: windows, loads, and where arrivals come from."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.scenario import (
    BASE_LOAD,
    Scenario,
    build,
    load_in,
    step_seconds,
    stretched,
    window,
)
from justitia.engines.sim import load_preset
from justitia.policy import KVTokenTime, PolicyError
from justitia.workloads import (
    AgentSpec,
    InferenceSpec,
    WorkloadError,
    paper_mix,
    write_jsonl,
)
from tests.engines.build import SECOND, make_preset

DATA = Path(__file__).parents[2].parent / "shared" / "data"
NO_DATA = "the recorded agents and traces are not beside this checkout"

# 1,000 KV tokens, at most 4 sequences. A step takes 1 s, 0.25 s more for each sequence,
# and 1 ms more for each KV token.
PRESET = make_preset(
    blocks=100,
    block_size=10,
    seats=4,
    fixed=SECOND,
    per_sequence=SECOND // 4,
    per_kv=SECOND // 1000,
    per_prefill=SECOND,
)


def agents(*arrivals: float | None) -> list[AgentSpec]:
    """Two inferences each: one of 10 * 4 + 10 token-steps, one of 30 * 1 + 1."""
    return [
        AgentSpec(
            f"a{k}", (InferenceSpec(10, 4), InferenceSpec(30, 1, stage=1)), arrival=time
        )
        for k, time in enumerate(arrivals)
    ]


def file_of(folder: Path, *arrivals: float | None) -> str:
    write_jsonl(folder / "agents.jsonl", agents(*arrivals))
    return str(folder / "agents.jsonl")


def times(scenario: Scenario) -> list[float]:
    return [agent.arrival or 0.0 for agent in scenario.agents]


# The load -----------------------------------------------------------------------------


def test_a_step_of_a_full_cache() -> None:
    # 1,000 / 250 = 4 sequences: 1 + 4 * 0.25 + 1,000 * 0.001 s.
    assert step_seconds(PRESET, footprint=250) == 3.0
    assert step_seconds(PRESET, footprint=300) == 2.75  # 3 of them fit
    assert step_seconds(PRESET, footprint=10) == 3.0  # there are but 4 seats
    assert step_seconds(PRESET, footprint=9_000) == 2.25  # one does not fit: alone


def test_the_window_by_hand() -> None:
    # 5 agents of 50 + 31 token-steps: 405 in 25 steps, 16.2 tokens a sequence on
    # average, so 4 sequences and 3 s a step; 405 / 1,000 of it is 1.215 s.
    workload = agents(*[None] * 5)
    assert window(PRESET, workload, 1.0) == pytest.approx(1.215, rel=1e-12)
    assert window(PRESET, workload, 0.7) == pytest.approx(1.215 / 0.7, rel=1e-12)
    assert load_in(PRESET, workload, 1.215) == pytest.approx(1.0, rel=1e-12)
    assert load_in(PRESET, workload, 0.0) is None


def test_the_load_is_work_over_capacity_and_steps() -> None:
    preset = load_preset("llama-7b-a100-40g")
    scenario = build(preset, agents=50, density=2)
    model = KVTokenTime()
    work = sum(agent.cost(model) for agent in scenario.agents)
    tokens = sum(i.decode_tokens for a in scenario.agents for i in a.inferences)
    seconds = window(preset, scenario.agents, 1.4)
    steps = seconds / step_seconds(preset, float(work / tokens))
    assert float(work) / (preset.capacity_tokens * steps) == pytest.approx(1.4)


def test_agents_without_work_need_no_time() -> None:
    assert window(PRESET, [AgentSpec("a", ())], 0.7) == 0.0


# Density ------------------------------------------------------------------------------


def test_density_one_is_a_load_of_seven_tenths() -> None:
    scenario = build(PRESET, agents=20, density=1)
    assert (scenario.density, scenario.load) == (1.0, BASE_LOAD)
    by_load = build(PRESET, agents=20, load=BASE_LOAD)
    assert by_load == scenario


def test_the_default_density_is_two() -> None:
    assert build(PRESET, agents=9) == build(PRESET, agents=9, density=2)
    assert build(PRESET, agents=9).load == 1.4


@pytest.mark.parametrize("arrivals", ["poisson", "trace", "workload"])
def test_twice_as_dense_is_half_the_times_exactly(
    arrivals: str, tmp_path: Path
) -> None:
    workload = file_of(tmp_path, 3.0, 4.7, 5.1, 11.3)
    if arrivals == "trace":
        arrivals = str(tmp_path / "trace.jsonl")
        stamps = (json.dumps({"timestamp": n * n * 3_000}) for n in range(9))
        Path(arrivals).write_text("\n".join(stamps))
    one, two, four, three = (
        build(PRESET, workload=workload, arrivals=arrivals, density=density)
        for density in (1, 2, 4, 3)
    )
    assert times(two) == [time / 2 for time in times(one)]
    assert times(four) == [time / 4 for time in times(one)]
    assert times(three) == pytest.approx([time / 3 for time in times(one)])


def test_the_same_seed_gives_the_same_agents_whatever_the_density() -> None:
    scenarios = [
        build(PRESET, agents=30, density=density, seed=5) for density in (1, 2, 3)
    ] + [build(PRESET, agents=30, arrivals="burst", seed=5)]
    timeless = [
        [replace(agent, arrival=None) for agent in scenario.agents]
        for scenario in scenarios
    ]
    assert all(one == timeless[0] for one in timeless)
    other = build(PRESET, agents=30, seed=6)
    assert [replace(agent, arrival=None) for agent in other.agents] != timeless[0]


@given(
    st.integers(1, 30),
    st.integers(0, 99),
    st.one_of(st.none(), st.floats(0.01, 100)),
    st.sampled_from([None, "poisson", "burst"]),
)
def test_agents_are_there_in_order_of_arrival(
    n: int, seed: int, density: float | None, arrivals: str | None
) -> None:
    scenario = build(PRESET, agents=n, arrivals=arrivals, density=density, seed=seed)
    assert len(scenario.agents) == n
    assert scenario.inferences == sum(len(a.inferences) for a in scenario.agents)
    assert times(scenario) == sorted(times(scenario))
    assert {agent.id for agent in scenario.agents} == {
        agent.id for agent in paper_mix(n, seed)
    }
    if arrivals == "burst":
        assert times(scenario) == [0.0] * n
        assert (scenario.density, scenario.load) == (None, None)
    else:
        assert scenario.load == BASE_LOAD * (density or 2)
        assert max(times(scenario)) <= window(PRESET, scenario.agents, scenario.load)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), True, "2"])
def test_no_density_or_load(value: float) -> None:
    with pytest.raises(PolicyError, match="density must be "):
        build(PRESET, agents=2, density=value)
    with pytest.raises(PolicyError, match="load must be "):
        build(PRESET, agents=2, load=value)


def test_density_and_load_exclude_each_other() -> None:
    with pytest.raises(WorkloadError, match="a density or a load, not both"):
        build(PRESET, density=1, load=1)


# A workload's own times ---------------------------------------------------------------


def test_own_times_are_kept(tmp_path: Path) -> None:
    workload = file_of(tmp_path, 6.0, 3.0, 5.0)
    for arrivals in (None, "workload"):
        scenario = build(PRESET, workload=workload, arrivals=arrivals)
        assert [agent.id for agent in scenario.agents] == ["a1", "a2", "a0"]
        assert times(scenario) == [3.0, 5.0, 6.0]
        assert scenario.arrivals == "workload"
        assert scenario.density is None
        # 3 agents of 81 token-steps at 3 s a full cache, in the 3 s that they take.
        assert scenario.load == pytest.approx(3 * 0.081 * 3 / 3)


def test_own_times_are_stretched_to_a_load(tmp_path: Path) -> None:
    workload = file_of(tmp_path, 6.0, 3.0, 5.0)
    scenario = build(PRESET, workload=workload, load=0.5)
    seconds = window(PRESET, scenario.agents, 0.5)
    assert times(scenario) == pytest.approx([0.0, 2 / 3 * seconds, seconds])
    assert (scenario.arrivals, scenario.load) == ("workload", 0.5)


def test_own_times_give_way_to_others(tmp_path: Path) -> None:
    workload = file_of(tmp_path, 6.0, 3.0, 5.0)
    assert times(build(PRESET, workload=workload, arrivals="burst")) == [0.0] * 3
    poisson = build(PRESET, workload=workload, arrivals="poisson")
    assert poisson.arrivals == "poisson"
    assert max(times(poisson)) < 3.0


@pytest.mark.parametrize("arrivals", [(4.0,), (4.0, 4.0)])
def test_own_times_that_are_all_one(
    arrivals: tuple[float, ...], tmp_path: Path
) -> None:
    workload = file_of(tmp_path, *arrivals)
    scenario = build(PRESET, workload=workload)
    assert times(scenario) == list(arrivals)
    assert scenario.load is None
    assert times(build(PRESET, workload=workload, density=1)) == [0.0] * len(arrivals)


def test_no_times_to_keep(tmp_path: Path) -> None:
    with pytest.raises(WorkloadError, match="has no arrivals of its own"):
        build(PRESET, workload=file_of(tmp_path, None, None), arrivals="workload")
    with pytest.raises(WorkloadError, match="paper: has no arrivals of its own"):
        build(PRESET, agents=0, arrivals="workload")
    assert build(PRESET, workload=file_of(tmp_path, None)).arrivals == "poisson"
    assert build(PRESET, agents=0).agents == ()


@given(st.lists(st.floats(0, 1e9), min_size=1, max_size=9), st.floats(0, 1e9))
def test_stretched_times_keep_their_order_and_ends(
    given_times: list[float], seconds: float
) -> None:
    result = stretched(given_times, seconds)
    assert min(result) == 0.0
    assert max(result) in (0.0, seconds)
    pairs = sorted(zip(given_times, result, strict=True))
    assert [time for _, time in pairs] == sorted(result)


# Where things are looked for ----------------------------------------------------------


@pytest.mark.parametrize("name", ["no", "", "a\0b", "x" * 9_000, "no/no"])
def test_what_is_not_there(name: str) -> None:
    with pytest.raises(WorkloadError, match="must be paper, or a file of agents or a"):
        build(PRESET, workload=name)
    with pytest.raises(
        WorkloadError, match="must be one of poisson, burst, workload, "
    ):
        build(PRESET, agents=2, arrivals=name)


@pytest.mark.skipif(not DATA.is_dir(), reason=NO_DATA)
def test_the_recorded_agents_and_traces() -> None:
    preset = load_preset("llama-7b-a100-40g")
    folder, trace = DATA / "agents", DATA / "mooncake" / "conversation_trace.jsonl"
    one, two = (
        build(
            preset,
            workload=str(folder),
            arrivals=str(trace),
            agents=40,
            density=density,
        )
        for density in (1, 2)
    )
    assert (one.source, one.arrivals) == (str(folder), str(trace))
    assert times(two) == [time / 2 for time in times(one)]
    assert len({agent.kind for agent in one.agents}) > 5
    assert max(times(one)) <= window(preset, one.agents, BASE_LOAD)
