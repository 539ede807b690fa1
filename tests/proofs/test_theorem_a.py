"""Theorem A: f ≤ T + (D − 1) + d − m·d / R with a clock of constant rate.

T is the time at which a reference of rate G finishes the agent, R what is reserved at
least while something is refused, and G·m·d ≤ R·c for every inference of cost c.
"""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy import create
from justitia.proofs.admissions import Admission, Lookahead, Peak
from justitia.proofs.bounds import replay, time_lags
from justitia.proofs.lines import FairLine, PolicyLine
from justitia.proofs.plans import (
    Number,
    Plan,
    ReservedTokenTime,
    Work,
    delivered,
    kv_token_time,
)
from justitia.proofs.scenarios import Scenario
from justitia.proofs.server import Line, Server
from justitia.proofs.strategies import errors, peaks, plans
from tests.proofs.builders import agent, largest, least_slack, longest, ours
from tests.proofs.wrong import FirstCome

RESERVED = ReservedTokenTime()


def crowd(*, most_stages: int = 1, **knobs: object) -> st.SearchStrategy[list[Plan]]:
    one = plans(most_stages=most_stages, **knobs)  # type: ignore[arg-type]
    return st.lists(one, min_size=1, max_size=6)


def slack(
    agents: list[Plan],
    admission: Admission,
    line: Line,
    *,
    work: Work,
    clock_rate: Number,
    guaranteed_rate: Number,
    footprint: Callable[[int, int], int] = lambda p, d: p + d,
    by_stage: bool = False,
) -> Fraction:
    """Run, and return the least slack; check the shorter form T + 2D − 1, too."""
    lags = time_lags(
        Scenario(tuple(agents), admission).run(line, work=work),
        clock_rate=clock_rate,
        guaranteed_rate=guaranteed_rate,
        footprint=footprint,
        by_stage=by_stage,
    )
    least = least_slack(lags)
    if least >= 0:
        assert all(lag.end <= lag.finish + 2 * longest(agents) - 1 for lag in lags)
    return least


def sizes_of(agents: list[Plan]) -> list[tuple[int, int]]:
    return [size for plan in agents for stage in plan.stages for size in stage]


@pytest.mark.property
@given(data=st.data(), agents=crowd())
def test_reserved_cost_at_the_guaranteed_rate(
    data: st.DataObject, agents: list[Plan]
) -> None:
    """Blocks, slots, weights, any parallelism: G = R."""
    peak = data.draw(peaks(agents))
    rate, work = peak.guaranteed_rate(agents), ReservedTokenTime(peak.block)
    line = FairLine(work=work, rate=rate)
    assert (
        slack(
            agents,
            peak,
            line,
            work=work,
            clock_rate=rate,
            guaranteed_rate=rate,
            footprint=peak.footprint,
        )
        >= 0
    )


@pytest.mark.property
@given(data=st.data(), agents=crowd())
def test_the_shipped_policy_with_the_reserved_cost(
    data: st.DataObject, agents: list[Plan]
) -> None:
    peak = data.draw(peaks(agents, most_block=1))
    rate = peak.guaranteed_rate(agents)
    line = ours(work=RESERVED, cost="reserved", clock="nominal", capacity=rate)
    assert (
        slack(agents, peak, line, work=RESERVED, clock_rate=rate, guaranteed_rate=rate)
        >= 0
    )


@pytest.mark.property
@given(data=st.data(), agents=crowd(most_stages=3))
def test_stage_by_stage(data: st.DataObject, agents: list[Plan]) -> None:
    peak = data.draw(peaks(agents, most_block=1))
    rate = peak.guaranteed_rate(agents)
    line = ours(
        work=RESERVED, cost="reserved", clock="nominal", capacity=rate, tags="stage"
    )
    assert (
        slack(
            agents,
            peak,
            line,
            work=RESERVED,
            clock_rate=rate,
            guaranteed_rate=rate,
            by_stage=True,
        )
        >= 0
    )


@pytest.mark.property
@given(data=st.data(), agents=crowd())
def test_the_papers_cost_at_gamma_times_the_rate(
    data: st.DataObject, agents: list[Plan]
) -> None:
    """γ = min c / (m·d): what part of the reserved memory is in use at least."""
    peak = data.draw(peaks(agents))
    rate = peak.guaranteed_rate(agents)
    gamma = min(
        Fraction(kv_token_time(p, d), peak.footprint(p, d) * d)
        for p, d in sizes_of(agents)
    )
    assert peak.block > 1 or gamma > Fraction(1, 2)
    assert (
        slack(
            agents,
            peak,
            ours(clock="nominal", capacity=gamma * rate),
            work=kv_token_time,
            clock_rate=gamma * rate,
            guaranteed_rate=rate,
            footprint=peak.footprint,
        )
        >= 0
    )


@pytest.mark.property
@given(data=st.data(), agents=crowd())
def test_the_papers_cost_at_half_the_rate_in_blocks_of_one(
    data: st.DataObject, agents: list[Plan]
) -> None:
    peak = data.draw(peaks(agents, most_block=1))
    rate = peak.guaranteed_rate(agents)
    half = Fraction(rate, 2)
    assert (
        slack(
            agents,
            peak,
            ours(clock="nominal", capacity=half),
            work=kv_token_time,
            clock_rate=half,
            guaranteed_rate=rate,
        )
        >= 0
    )


def test_half_the_rate_is_too_much_in_blocks_of_sixteen() -> None:
    """M = u = 16 and (0, 1), which costs 1 and fills a block."""
    agents, peak = [agent(0, (0, 1))] * 10, Peak(16, block=16)
    assert peak.guaranteed_rate(agents) == 16

    def at(rate: Fraction) -> Fraction:
        return slack(
            agents,
            peak,
            ours(clock="nominal", capacity=rate),
            work=kv_token_time,
            clock_rate=rate,
            guaranteed_rate=16,
            footprint=peak.footprint,
        )

    assert at(Fraction(8)) < 0
    assert at(Fraction(1)) >= 0  # γ is 1/16


@pytest.mark.property
@given(data=st.data(), equal=st.integers(1, 6), times=st.integers(1, 4))
def test_equal_footprints_that_divide_the_capacity_have_all_of_it(
    data: st.DataObject, equal: int, times: int
) -> None:
    size = st.integers(1, equal).map(lambda d: (equal - d, d))
    agents = data.draw(crowd(size=size))
    peak = Peak(equal * times)
    assert peak.guaranteed_rate(agents) == peak.capacity
    line = ours(work=RESERVED, cost="reserved", clock="nominal", capacity=peak.capacity)
    assert (
        slack(
            agents,
            peak,
            line,
            work=RESERVED,
            clock_rate=peak.capacity,
            guaranteed_rate=peak.capacity,
        )
        >= 0
    )


@pytest.mark.property
@given(data=st.data(), agents=crowd(), off=st.sampled_from([2, 3, 5]))
def test_wrong_predictions_cost_the_factor_by_which_they_are_wrong(
    data: st.DataObject, agents: list[Plan], off: int
) -> None:
    peak = data.draw(peaks(agents, most_block=1))
    rate = peak.guaranteed_rate(agents)
    told = []
    for plan in agents:
        (real,) = plan.real_costs(RESERVED)
        wrong = (real * data.draw(errors(off)),)
        told.append(Plan(plan.arrival, plan.stages, plan.weight, wrong))
    slow = Fraction(rate, off)
    line = ours(work=RESERVED, cost="reserved", clock="nominal", capacity=slow)
    assert (
        slack(told, peak, line, work=RESERVED, clock_rate=slow, guaranteed_rate=rate)
        >= 0
    )


@pytest.mark.property
@given(agents=crowd(), more=st.integers(0, 20))
def test_admission_that_looks_ahead(agents: list[Plan], more: int) -> None:
    """What is refused would overflow later: no less than M + 1 − m is spoken for."""
    capacity = largest(agents) + more
    rate = more + 1
    line = ours(work=RESERVED, cost="reserved", clock="nominal", capacity=rate)
    assert (
        slack(
            agents,
            Lookahead(capacity),
            line,
            work=RESERVED,
            clock_rate=rate,
            guaranteed_rate=rate,
        )
        >= 0
    )


@pytest.mark.property
@given(data=st.data(), agents=crowd(most_stages=1))
def test_refused_means_that_the_guaranteed_rate_is_reserved(
    data: st.DataObject, agents: list[Plan]
) -> None:
    """What Theorem A asks of an admission, of each of those that it is tested with."""
    peak = data.draw(peaks(agents))
    look = Lookahead(peak.capacity)
    for admission, rate in (
        (peak, peak.guaranteed_rate(agents)),
        (look, look.capacity + 1 - largest(agents)),
    ):
        history = Scenario(tuple(agents), admission).run(ours())
        for step in history.events:
            if step.refused is not None:
                sizes = [agents[i.agent].stages[i.stage][i.place] for i in step.ran]
                assert sum(peak.footprint(p, d) for p, d in sizes) >= rate


def test_no_higher_rate_will_do() -> None:
    """M = 3 and footprints of 2: R = 2, and at 3 the lag grows with the run."""
    for agents, late in ((10, 3), (40, 13), (160, 53)):
        plans = [agent(0, (1, 1))] * agents
        assert Peak(3).guaranteed_rate(plans) == 2
        line = ours(work=RESERVED, cost="reserved", clock="nominal", capacity=3)
        lags = time_lags(
            Scenario(tuple(plans), Peak(3)).run(line, work=RESERVED),
            clock_rate=3,
            guaranteed_rate=2,
            footprint=lambda p, d: p + d,
        )
        assert max(lag.end - lag.finish for lag in lags) >= late


@pytest.mark.parametrize("k", [2, 5, 10])
def test_no_smaller_constant_will_do(k: int) -> None:
    """M = k·D: k inferences of D steps fill it, and one comes a step later."""
    length = 8
    elephants = [agent(0, (0, length)) for _ in range(k)]
    mouse = agent(1, (0, length), weight=10**6)
    lags = time_lags(
        Scenario((*elephants, mouse), Peak(k * length)).run(
            ours(work=RESERVED, cost="reserved", clock="nominal", capacity=k * length),
            work=RESERVED,
        ),
        clock_rate=k * length,
        guaranteed_rate=k * length,
        footprint=lambda p, d: p + d,
    )
    (last,) = [lag for lag in lags if lag.item.agent == k]
    # Late by all of T + (D − 1) + d − d / k but next to nothing.
    assert 0 <= last.slack < Fraction(1, 1000)
    assert last.end - last.finish > 2 * length - 1 - Fraction(length, k) - 1


def test_the_check_can_fail() -> None:
    plans = [agent(0, *[(0, 10)] * 5), agent(0, (0, 1))]

    def of(line: Line) -> Fraction:
        return slack(
            plans, Peak(10), line, work=RESERVED, clock_rate=10, guaranteed_rate=10
        )

    assert of(FirstCome(work=RESERVED, rate=10)) < -20
    assert of(FairLine(work=RESERVED, rate=10)) >= 0
    assert delivered(RESERVED, (0, 10), 10) == 100


@pytest.mark.parametrize(
    ("cost", "work", "rate", "kept"),
    [("kv", kv_token_time, 5, False), ("reserved", ReservedTokenTime(), 10, True)],
)
def test_cancellations_lose_it_with_the_kv_cost_and_not_with_the_reserved(
    cost: str, work: Work, rate: int, kept: bool
) -> None:
    """What is cut short has delivered little of what it reserved."""
    mice = [Plan(k, (((0, 10),),), cancelled=k + 1) for k in range(90)]
    plans = [Plan(0, (((0, 10),) * 9,)), *mice]
    policy = create("justitia", clock="nominal", capacity=rate, cost=cost)
    line = PolicyLine(policy, work=work)
    history = Server(plans, line, Peak(10), work=work).run()
    reference = replay(history, rate=rate)
    finish = reference.fair.reached(reference.places[0, 0][0])
    assert finish is not None
    end, bound = history.agent_finishes()[0], finish / rate + 2 * 10 - 1
    assert (end <= bound) is kept
    if not kept:
        assert end == 180
        assert bound == 163
