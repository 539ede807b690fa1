"""What the strategies draw: small at first, and within their knobs."""

from typing import TypeVar

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st

from justitia.proofs.admissions import Admission, Lookahead, Peak, Prompt, Slots, Whim
from justitia.proofs.plans import Plan
from justitia.proofs.scenarios import Scenario, Seeded, Tosses
from justitia.proofs.strategies import (
    admissions,
    coins,
    costs,
    errors,
    footprints,
    peaks,
    plans,
    scenarios,
)

T = TypeVar("T")
SMALLEST = Scenario((Plan(0, (((0, 1),),)),), Slots(1))


def smallest(strategy: st.SearchStrategy[T]) -> T:
    return find(
        strategy,
        lambda _: True,
        settings=settings(database=None, phases=[Phase.generate]),
    )


def test_the_smallest_scenario() -> None:
    assert smallest(scenarios()) == SMALLEST
    everything = scenarios(most_stages=3, most_error=4, cancelled=True)
    assert smallest(everything) == SMALLEST


def test_a_condition_leaves_no_more_than_it_needs() -> None:
    """Such as a second agent: all else is the smallest there is."""
    found = find(
        st.lists(plans(most_stages=2, most_error=3, cancelled=True), max_size=3),
        lambda drawn: len(drawn) > 1,
        settings=settings(database=None),
    )
    assert tuple(found) == SMALLEST.plans * 2


@pytest.mark.property
@given(scenario=scenarios(paused=False, preempted=False, chunked=False))
def test_the_simplest_servers(scenario: Scenario) -> None:
    assert scenario.chunk is None
    assert scenario.pauses == scenario.preempts == Tosses()
    assert not isinstance(scenario.admission, Prompt)
    for plan in scenario.plans:
        assert len(plan.stages) == 1
        assert plan.predicted == ()
        assert plan.cancelled is None


@pytest.mark.property
@given(plan=plans(last_arrival=3, most_stages=2, most_inferences=1, weighted=False))
def test_knobs_of_plans(plan: Plan) -> None:
    assert plan.arrival <= 3
    assert plan.weight == 1
    assert len(plan.stages) <= 2
    assert all(len(stage) == 1 for stage in plan.stages)


@pytest.mark.property
@given(off=st.integers(1, 5), data=st.data())
def test_errors_keep_their_factor(off: int, data: st.DataObject) -> None:
    factor = data.draw(errors(off))
    assert off * factor >= 1
    assert factor <= off


@pytest.mark.property
@given(data=st.data(), agents=st.lists(plans(), max_size=4))
def test_everybody_fits_a_peak(data: st.DataObject, agents: list[Plan]) -> None:
    peak = data.draw(peaks(agents))
    capacity = peak.capacity // peak.block * peak.block
    assert all(peak.footprint(0, m) <= capacity for m in footprints(agents))
    if agents:
        assert peak.guaranteed_rate(agents) > 0


@pytest.mark.property
@given(coin=coins(most=40))
def test_no_coin_says_yes_for_ever(coin: Tosses | Seeded) -> None:
    assert not any(coin(n) for n in range(301, 400))


@pytest.mark.parametrize("kind", [Slots, Peak, Lookahead, Prompt, Whim])
def test_every_sort_of_admission_is_drawn(kind: type[Admission]) -> None:
    find(
        admissions(),
        lambda rule: isinstance(rule, kind),
        settings=settings(database=None, max_examples=1_000),
    )


def test_costs_are_positive() -> None:
    assert smallest(costs()) == 1
