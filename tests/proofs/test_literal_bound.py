"""Theorem B.1 as printed: an instance that breaks it, and when it is true after all.

`test_counterexamples` has an instance for each assumption that it needs.
"""

from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from justitia.engines.sim import Preset, SimEngine
from justitia.policy import create
from justitia.predictors import Oracle
from justitia.proofs.admissions import Peak
from justitia.proofs.plans import Plan, ReservedTokenTime, Work, kv_token_time
from justitia.proofs.reference import FairReference, fair_finishes
from justitia.proofs.server import History, Line
from justitia.proofs.strategies import plans
from justitia.workloads import AgentSpec, InferenceSpec
from tests.proofs.builders import agent, longest, ours, run

CAPACITY = 3
COST = 2  # one prompt token, one decode token


def last_finish_on_sim(agents: int) -> int:
    preset = Preset(
        name="three tokens",
        description="made for a test",
        source="nobody",
        capacity_tokens=CAPACITY,
        block_size=1,
        max_num_seqs=256,
        max_num_batched_tokens=2048,
        step_fixed_ps=1,
        step_prefill_token_ps=0,
        step_sequence_ps=0,
        step_kv_token_ps=0,
        swap_token_ps=0,
    )
    specs = [AgentSpec(f"a{k}", (InferenceSpec(1, 1),)) for k in range(agents)]
    engine = SimEngine(preset, admission="max")
    record = engine.run(specs, create("justitia"), Oracle())
    return 1 + max(one.finish_step or 0 for one in record.inferences)


def last_finish_in_reference(agents: int) -> Fraction:
    reference = FairReference()
    for k in range(agents):
        reference.arrive(f"a{k}", COST)
    steps = Fraction(0)
    while reference.wanting():
        reference.serve(Fraction(CAPACITY, 3))  # a third of a step
        steps += Fraction(1, 3)
    return steps


def test_paper_theorem_b1_is_false_as_printed() -> None:
    lag = last_finish_on_sim(15) - last_finish_in_reference(15)
    printed = 2 * COST + Fraction(COST, CAPACITY)
    assert lag == 5
    assert printed == Fraction(14, 3)
    assert lag > printed


@pytest.mark.parametrize("agents", [3, 30, 90])
def test_the_lag_behind_the_nominal_rate_grows_without_limit(agents: int) -> None:
    lag = last_finish_on_sim(agents) - last_finish_in_reference(agents)
    assert lag == Fraction(agents, 3)


# When it is true -------------------------------------------------------------------


def saturated_until(history: History, capacity: int) -> int:
    """Return the first step that did not deliver exactly M."""
    for step, event_ in enumerate(history.events):
        if event_.delivered != capacity:
            return step
    return len(history.events)


def check_literal(agents: list[Plan], capacity: int, line: Line, work: Work) -> int:
    """Check all that end while every step delivers M; return how many these are.

    Up to then S(t) = M·t, so the reference that shares what is delivered is the one of
    rate M, and Theorem B in time says f ≤ f̄ + M (D − 1) / M + D. This is less than the
    printed bound, as c_max ≥ D.
    """
    history = run(agents, line, Peak(capacity), work=work)
    jobs = [
        (number, plan.arrival, sum(plan.real_costs(work)), plan.weight)
        for number, plan in enumerate(agents)
    ]
    fair = fair_finishes(jobs, capacity)
    biggest = max(Fraction(work(p, d)) for p, d in sizes_of(agents))
    printed = 2 * biggest + max(Fraction(job[2]) for job in jobs) / capacity
    full = saturated_until(history, capacity)
    inside = [a for a, end in history.agent_finishes().items() if end <= full]
    for number in inside:
        lag = history.agent_finishes()[number] - fair[number]
        assert lag <= 2 * longest(agents) - 1 < printed
    return len(inside)


def sizes_of(agents: list[Plan]) -> list[tuple[int, int]]:
    return [size for plan in agents for stage in plan.stages for size in stage]


def crowd(size: st.SearchStrategy[tuple[int, int]]) -> st.SearchStrategy[list[Plan]]:
    one = plans(size=size, most_inferences=6, last_arrival=8)
    return st.lists(one, min_size=1, max_size=8)


@pytest.mark.property
@given(data=st.data(), equal=st.integers(1, 5), times=st.integers(1, 4))
def test_it_holds_for_one_token_each_with_equal_footprints_that_fill_the_memory(
    data: st.DataObject, equal: int, times: int
) -> None:
    """The paper's KV cost; (p, 1) uses all that it reserves, and there is no hole."""
    agents = data.draw(crowd(st.just((equal - 1, 1))))
    agents.insert(0, agent(0, *[(equal - 1, 1)] * (6 * times)))
    inside = check_literal(agents, equal * times, ours(), kv_token_time)
    event(f"ended while all was full: {inside}")


@pytest.mark.property
@given(data=st.data(), equal=st.integers(1, 6), times=st.integers(1, 4))
def test_it_holds_for_reserved_cost_with_equal_footprints_that_fill_the_memory(
    data: st.DataObject, equal: int, times: int
) -> None:
    """Inferences of different lengths; memory counts as used when it is reserved."""
    size = st.integers(1, equal).map(lambda d: (equal - d, d))
    agents = data.draw(crowd(size))
    agents.insert(0, agent(0, *[(0, equal)] * (4 * times)))
    work = ReservedTokenTime()
    line = ours(work=work, cost="reserved")
    inside = check_literal(agents, equal * times, line, work)
    event(f"ended while all was full: {inside}")


def test_the_two_families_are_not_empty() -> None:
    ones = [agent(0, *[(4, 1)] * 4) for _ in range(5)] + [agent(2, (4, 1))]
    assert check_literal(ones, 10, ours(), kv_token_time) >= 5
    work = ReservedTokenTime()
    mixed = [agent(0, (0, 4), (3, 1), (2, 2)), agent(1, (1, 3)), agent(2, (3, 1))] * 4
    line = ours(work=work, cost="reserved")
    assert check_literal(mixed, 8, line, work) >= 8
