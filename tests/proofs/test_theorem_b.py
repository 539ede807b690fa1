"""Theorem B: S(s) ≤ G + I − c, for every first start of every setting that promises it.

S(s) is what was delivered before inference q of agent j starts in step s, G the service
at which the fair reference finishes j, I what was in flight after the last earlier step
in which anything of a larger (tag, arrival) entered, c the cost of q.
"""

from fractions import Fraction

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from justitia.policy import COST_MODELS
from justitia.proofs.bounds import delay_lags, service_lags
from justitia.proofs.lines import FairLine
from justitia.proofs.scenarios import Scenario
from justitia.proofs.strategies import peaks, plans, scenarios
from tests.proofs.builders import agent, least_slack, longest, ours, run, tags_of
from tests.proofs.wrong import FirstCome, LastTag, LeastRemaining

BY_STAGE = pytest.mark.parametrize("by_stage", [False, True], ids=["agent", "stage"])


@pytest.mark.property
@BY_STAGE
@pytest.mark.parametrize("cost", sorted(COST_MODELS))
@given(data=st.data())
def test_theorem_B_bounds_every_first_start(
    cost: str, by_stage: bool, data: st.DataObject
) -> None:
    """Any memory, batch, chunk, pause, preemption, prediction, weight, cancellation."""
    work = COST_MODELS[cost]()
    scenario = data.draw(
        scenarios(
            most_stages=3 if by_stage else 1, most_error=4, cancelled=True, work=work
        )
    )
    line = ours(work=work, cost=cost, tags=tags_of(by_stage))
    history = scenario.run(line, work=work)
    lags = service_lags(history, by_stage=by_stage)
    assert least_slack(lags) >= 0
    event(f"in flight: {any(lag.in_flight for lag in lags)}")
    event(f"underestimated: {any(lag.underestimated for lag in lags)}")


@pytest.mark.property
@BY_STAGE
@given(data=st.data())
def test_of_agents_predicted_exactly_every_start_is_bounded(
    by_stage: bool, data: st.DataObject
) -> None:
    """No start is passed over, and no term is there for a wrong prediction."""
    scenario = data.draw(scenarios(most_stages=3 if by_stage else 1))
    history = scenario.run(ours(tags=tags_of(by_stage)))
    lags = service_lags(history, by_stage=by_stage)
    assert len(lags) == sum(len(s) for plan in scenario.plans for s in plan.stages)
    assert not any(lag.underestimated for lag in lags)
    assert least_slack(lags) >= 0


@pytest.mark.property
@BY_STAGE
@given(data=st.data())
def test_theorem_B_in_time(by_stage: bool, data: st.DataObject) -> None:
    """f ≤ g + I / R + D with R the least delivered while something waits.

    And I ≤ M·(D − 1) where peaks are reserved: what runs with reserved footprints that
    fit in M has at most D − 1 steps to go after the step in which it was started.
    """
    agents = tuple(
        data.draw(
            st.lists(
                plans(most_stages=3 if by_stage else 1, most_error=3, cancelled=True),
                min_size=1,
                max_size=6,
            )
        )
    )
    peak = data.draw(peaks(agents))
    history = Scenario(agents, peak).run(ours(tags=tags_of(by_stage)))
    lags = delay_lags(history, by_stage=by_stage)
    assert least_slack(lags) >= 0
    most = peak.capacity * (longest(agents) - 1)
    assert all(lag.in_flight <= most for lag in lags)


@pytest.mark.parametrize("weight", [1, 10, 1000])
def test_theorem_B_leaves_nothing_to_spare(weight: int) -> None:
    """A mouse behind an elephant, one at a time: as close to the bound as one likes."""
    plans = [agent(0, (0, 3)), agent(1, (0, 1), weight=weight)]
    first, second = service_lags(run(plans, ours()))
    assert first.slack == 1
    assert second.slack == Fraction(1, weight)


def test_the_bound_is_met_exactly() -> None:
    """Two alike: the second starts when all but itself was delivered."""
    _, second = service_lags(run([agent(0, (2, 3)), agent(0, (2, 3))], ours()))
    assert second.slack == 0
    assert second.delivered == second.cost == 12


@pytest.mark.parametrize("wrong", [FirstCome, LastTag])
def test_the_check_can_fail(wrong: type[FairLine]) -> None:
    """An agent of fifty inferences before one of one that comes with it."""
    plans = [agent(0, *[(9, 1)] * 50), agent(0, (9, 1))]
    if wrong is LastTag:
        plans.reverse()
    history = run(plans, wrong())
    assert least_slack(service_lags(history)) < -100
    assert least_slack(delay_lags(history)) < 0
    assert least_slack(service_lags(run(plans, ours()))) >= 0


def test_the_check_fails_where_the_least_remaining_goes_first() -> None:
    elephant, mice = agent(0, (0, 5)), [agent(k, (0, 2)) for k in range(0, 200, 2)]
    history = run([elephant, *mice], LeastRemaining())
    assert least_slack(service_lags(history)) < -100
    history = run([elephant, *mice], ours())
    assert least_slack(service_lags(history)) >= 0
