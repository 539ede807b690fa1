"""What is read from a history, against numbers worked out by hand."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.proofs.admissions import Peak, Slots
from justitia.proofs.bounds import (
    delay_lags,
    least_delivered,
    replay,
    service_lags,
    time_lags,
)
from justitia.proofs.lines import FairLine
from justitia.proofs.plans import Item, Number, Plan, ReservedTokenTime
from justitia.proofs.reference import fair_finishes
from justitia.proofs.scenarios import Scenario
from justitia.proofs.strategies import peaks, plans, scenarios
from tests.proofs.builders import agent, run


def numbers(*values: Number) -> list[Number]:
    return list(values)


MOUSE, ELEPHANT = agent(1, (0, 1)), agent(0, (0, 3))


def test_the_lags_of_a_mouse_behind_an_elephant() -> None:
    """The elephant delivers 1, 2, 3; the mouse comes at V = 1 and gets the tag 2."""
    first, second = service_lags(run([ELEPHANT, MOUSE]))
    assert first.item == Item(0, 0, 0)
    assert numbers(first.step, first.delivered) == [0, 0]
    assert numbers(first.finish, first.in_flight, first.cost) == [7, 0, 6]
    # The reference gives each 1/2 of 2, then of 3: it reaches the level 2 at S = 3.
    assert numbers(second.step, second.delivered, second.finish) == [3, 6, 3]
    # Of the elephant 2 + 3 were in flight after step 0.
    assert numbers(second.in_flight, second.cost, second.underestimated) == [5, 1, 0]
    assert numbers(second.bound, second.slack) == [7, 1]


def test_the_same_in_time() -> None:
    history = run([ELEPHANT, MOUSE])
    assert least_delivered(history) == 2
    first, second = delay_lags(history)
    assert numbers(first.end, first.finish) == [3, 4]
    assert numbers(second.end, second.finish, second.in_flight) == [4, 2, 5]
    assert second.bound == 2 + Fraction(5 - 1, 2) + 1
    _, slower = delay_lags(history, rate=1)
    assert slower.bound == 2 + 4 + 1


def test_the_same_at_a_constant_rate() -> None:
    history = run([ELEPHANT, MOUSE], FairLine(rate=2))
    first, second = time_lags(
        history, clock_rate=2, guaranteed_rate=3, footprint=lambda p, d: p + d
    )
    # The mouse has its 1 after one step of half the rate.
    assert numbers(first.finish, second.finish) == [Fraction(7, 2), 2]
    assert first.bound == Fraction(7, 2) + 2 + 3 - Fraction(9, 3)
    assert numbers(second.end, second.bound) == [4, 2 + 2 + 1 - Fraction(1, 3)]


def test_what_was_underestimated_and_by_whom() -> None:
    plans = [agent(0, (0, 1), (0, 1), (0, 1), predicted=1), agent(0, (0, 1), (0, 1))]
    lags = service_lags(run(plans))
    assert [lag.underestimated for lag in lags] == [2] * 5
    assert [lag.delivered for lag in lags] == [0, 1, 2, 3, 4]


def test_a_cancelled_agent_may_have_no_lag() -> None:
    plans = [agent(0, (0, 9), cancelled=1)]
    assert service_lags(run(plans)) == []
    assert delay_lags(run(plans)) == []


def test_least_delivered_of_steps_in_which_nothing_waits() -> None:
    history = run([agent(3, (0, 2))])
    assert [event.waited for event in history.events] == [False] * 5
    assert least_delivered(history) == 1


@pytest.mark.property
@given(data=st.data(), agents=st.lists(plans(), min_size=1, max_size=5))
def test_two_ways_to_the_reference_of_constant_rate(
    data: st.DataObject, agents: list[Plan]
) -> None:
    """Step by step or all at once, unless it forgot what it owed in an idle moment."""
    peak = data.draw(peaks(agents, most_block=1))
    rate, work = peak.guaranteed_rate(agents), ReservedTokenTime()
    history = Scenario(tuple(agents), peak).run(
        FairLine(work=work, rate=rate), work=work
    )

    def finishes(*, by_stage: bool) -> dict[Item, Fraction]:
        lags = time_lags(
            history,
            clock_rate=rate,
            guaranteed_rate=rate,
            footprint=peak.footprint,
            by_stage=by_stage,
        )
        return {lag.item: lag.finish for lag in lags}

    jobs = [
        (k, p.arrival, sum(p.real_costs(work)), p.weight) for k, p in enumerate(agents)
    ]
    at_once = finishes(by_stage=False)
    assert set(at_once.values()) == set(fair_finishes(jobs, rate).values())
    here, idle = 0, 0
    for event in history.events:
        here += len(event.arrived) - len(event.left)
        idle += bool(event.left) and not here
    assert idle > 1 or finishes(by_stage=True).items() <= at_once.items()


@pytest.mark.property
@pytest.mark.parametrize("by_stage", [False, True], ids=["agent", "stage"])
@given(scenario=scenarios(most_stages=3, most_error=3, cancelled=True))
def test_a_replay_is_the_line_that_it_replays(
    by_stage: bool, scenario: Scenario
) -> None:
    line = FairLine(by_stage=by_stage)
    history = scenario.run(line)
    again = replay(history, by_stage=by_stage)
    assert {unit: tag for unit, (tag, _) in again.places.items()} == line.tags
    assert again.fair.level == line.fair.level
    assert again.delivered[-1] == sum(event.delivered for event in history.events)
    again.fair._check()


def test_rates_need_not_be_delivered() -> None:
    """A reference at a rate of its own: 5 a step, whatever was delivered."""
    run_ = replay(run([ELEPHANT], admission=Slots(1)), rate=5)
    assert run_.fair.reached(6) == 6
    assert run_.fair.lost == 9
    assert replay(run([ELEPHANT], admission=Peak(3))).fair.lost == 0
