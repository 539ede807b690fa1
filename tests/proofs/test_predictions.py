"""Theorem B with wrong predictions: what each term is there for."""

from fractions import Fraction

import pytest
from hypothesis import given

from justitia.proofs.bounds import ServiceLag, service_lags
from justitia.proofs.scenarios import Scenario
from justitia.proofs.strategies import scenarios
from tests.proofs.builders import agent, least_slack, ours, run


@pytest.mark.property
@given(scenario=scenarios(most_error=4))
def test_overestimates_add_nothing(scenario: Scenario) -> None:
    """Where nobody got more than was predicted, the bound is that of the exact."""
    history = scenario.run(ours())
    over = [
        lag
        for lag in service_lags(history)
        if not lag.underestimated or lag.bound - lag.underestimated >= lag.delivered
    ]
    assert all(lag.delivered <= lag.finish + lag.in_flight - lag.cost for lag in over)
    assert least_slack(service_lags(history)) >= 0


def last(*plans: object) -> ServiceLag:
    return service_lags(run(plans, ours()))[-1]  # type: ignore[arg-type]


def without(lag: ServiceLag, term: Fraction) -> Fraction:
    """The slack if a term were left out."""
    return lag.slack - term


def test_the_agents_own_error_counts() -> None:
    """Two inferences predicted to cost 1: the second starts when that is used up."""
    lag = last(agent(0, (0, 1), (0, 1), predicted=1))
    assert [lag.delivered, lag.finish, lag.in_flight, lag.cost] == [1, 1, 0, 1]
    assert lag.underestimated == 1
    assert lag.slack == 0
    assert without(lag, Fraction(1)) < 0


@pytest.mark.parametrize("times", [2, 10, 100])
def test_without_its_own_error_there_is_no_bound(times: int) -> None:
    lag = last(agent(0, *[(0, 1)] * times, predicted=1))
    assert lag.slack == 0
    assert without(lag, Fraction(times - 1)) == 1 - times


@pytest.mark.parametrize("liars", [1, 6, 50])
def test_the_errors_of_those_before_it_count(liars: int) -> None:
    """They say 1 and take 3, and go before the honest one."""
    liar = agent(0, *[(0, 1)] * 3, predicted=1)
    lag = last(agent(0, (0, 1), (0, 1)), *[liar] * liars)
    assert lag.item.agent == 0
    assert lag.underestimated == 2 * liars
    assert lag.slack == 0
    assert without(lag, lag.underestimated) == -2 * liars


def test_errors_of_those_after_it_do_not() -> None:
    honest, liar = agent(0, (0, 1)), agent(0, *[(0, 1)] * 30, predicted=2)
    first, *_ = service_lags(run([honest, liar], ours()))
    assert first.item.agent == 0
    assert first.underestimated == 0
    assert first.slack >= 0
