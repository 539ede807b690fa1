"""A tag for each stage keeps the bound; one tag for a staged agent has none."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given

from justitia.proofs.admissions import Slots
from justitia.proofs.bounds import replay, service_lags
from justitia.proofs.plans import Plan, kv_token_time
from justitia.proofs.scenarios import Scenario
from justitia.proofs.strategies import scenarios
from tests.proofs.builders import chain, least_slack, ours, run, tags_of


def worst(plans: list[Plan], *, by_stage: bool) -> Fraction:
    history = run(plans, ours(tags=tags_of(by_stage)), Slots(2))
    return -least_slack(service_lags(history, by_stage=by_stage))


def test_one_tag_for_a_chain_has_no_bound() -> None:
    """A chain of short inferences waits behind what ran when each became ready."""

    def late(length: int, *, by_stage: bool) -> Fraction:
        crowd = Plan(0, (((100, 10),) * length,))
        return worst([chain(0, *[(0, 1)] * length), crowd], by_stage=by_stage)

    assert [late(n, by_stage=True) <= 0 for n in (20, 40, 80)] == [True] * 3
    assert late(20, by_stage=False) > 0
    assert late(40, by_stage=False) > 1_000
    assert late(80, by_stage=False) > 5_000  # and it grows


@pytest.mark.property
@given(scenario=scenarios(most_stages=4, most_error=3))
def test_a_stage_is_tagged_when_it_is_ready(scenario: Scenario) -> None:
    """At F = max(V, the tag of the stage before) + C / w, as packets are."""
    line = ours(tags="stage")
    history = scenario.run(line)
    places = replay(history, by_stage=True).places
    for number, plan in enumerate(scenario.plans):
        costs = plan.costs(kv_token_time)
        tags = [Fraction(line.tags[number, stage]) for stage in range(len(costs))]
        for stage, (before, tag) in enumerate(pairwise(tags), start=1):
            assert tag >= before + costs[stage] / Fraction(plan.weight)
        assert tags == [places[number, stage][0] for stage in range(len(costs))]


@pytest.mark.property
@given(scenario=scenarios(most_stages=4))
def test_stage_by_stage_the_bound_holds(scenario: Scenario) -> None:
    history = scenario.run(ours(tags="stage"))
    assert least_slack(service_lags(history, by_stage=True)) >= 0


def test_a_stage_is_ready_in_the_step_after_the_one_before_it() -> None:
    history = run([Plan(0, (((0, 2), (0, 1)), ((0, 1),)))], ours(), Slots(9))
    assert [event.ready for event in history.events] == [((0, 0),), (), ((0, 1),)]
