"""What preemption leaves of the bounds: first starts, not completions."""

import pytest
from hypothesis import event, given

from justitia.proofs.admissions import Prompt, Slots
from justitia.proofs.bounds import service_lags
from justitia.proofs.scenarios import Scenario, Tosses
from justitia.proofs.strategies import scenarios
from tests.proofs.builders import agent, least_slack, ours


@pytest.mark.property
@given(scenario=scenarios())
def test_first_starts_keep_the_bound(scenario: Scenario) -> None:
    history = scenario.run(ours())
    event(f"preempted: {any(e.requeued for e in history.events)}")
    assert least_slack(service_lags(history)) >= 0


@pytest.mark.property
@given(scenario=scenarios(weighted=False, paused=False))
def test_what_is_computed_again_is_not_delivered_again(scenario: Scenario) -> None:
    history = scenario.run(ours())
    delivered = sum(e.delivered for e in history.events)
    assert delivered == sum(
        cost for plan in scenario.plans for cost in plan.real_costs(history.work)
    )


@pytest.mark.parametrize("mice", [3, 10, 40])
def test_completions_are_as_late_as_mice_keep_coming(mice: int) -> None:
    """An inference of two steps that has begun is sent back for each mouse in turn."""
    elephant = agent(0, (0, 2))
    crowd = [agent(step, (0, 1), weight=1000) for step in range(1, mice + 1)]
    # It is the only one that runs when the coin is tossed: before each mouse starts.
    preempts = Tosses(frozenset(range(1, mice + 1)))
    scenario = Scenario((elephant, *crowd), Slots(1), preempts=preempts)
    history = scenario.run(ours())
    (item,) = [item for item in history.starts if item.agent == 0]
    assert history.starts[item] == 0
    assert history.finishes[item] > 0 + 2  # f ≤ s + d is lost
    assert history.finishes[item] >= mice // 2
    assert least_slack(service_lags(history)) >= 0


def test_memory_preempts_and_the_bound_on_starts_holds() -> None:
    """Two grow until only one fits; the one of the larger tag gives way."""
    plans = [agent(0, (1, 6)), agent(0, (1, 6))]
    history = Scenario(tuple(plans), Prompt(9)).run(ours())
    assert [i.agent for e in history.events for i in e.requeued] == [1]
    assert max(e.held for e in history.events) <= 9
    assert least_slack(service_lags(history)) >= 0
