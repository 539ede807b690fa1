"""Who leaves early stays in the reference for what it got; nothing else is right."""

from fractions import Fraction

import pytest
from hypothesis import event, given

from justitia.proofs.admissions import Peak, Slots
from justitia.proofs.bounds import service_lags
from justitia.proofs.lines import FairLine
from justitia.proofs.plans import Plan
from justitia.proofs.scenarios import Scenario
from justitia.proofs.server import Line
from justitia.proofs.strategies import scenarios
from tests.proofs.builders import agent, least_slack, ours, run, tags_of
from tests.proofs.wrong import Dropping, HoldingCounts


@pytest.mark.property
@pytest.mark.parametrize("by_stage", [False, True], ids=["agent", "stage"])
@given(scenario=scenarios(cancelled=True, most_error=3))
def test_cancellations_break_nothing(by_stage: bool, scenario: Scenario) -> None:
    history = scenario.run(ours(tags=tags_of(by_stage)))
    event(f"cancelled: {any(e.cancelled for e in history.events)}")
    assert least_slack(service_lags(history, by_stage=by_stage)) >= 0


@pytest.mark.parametrize("agents", [6, 12, 24])
def test_dropping_those_that_leave_breaks_the_bound(agents: int) -> None:
    """V runs too fast, and a mouse in the middle gets a tag after all the others."""
    crowd = [agent(0, *[(0, 1)] * 10) for _ in range(agents)]
    plans = [*crowd, agent(13 * agents // 2, (0, 1))]

    def worst(line: Line) -> Fraction:
        return least_slack(service_lags(run(plans, line)))

    assert worst(Dropping()) < -2 * agents
    assert worst(FairLine()) >= 0
    assert worst(ours()) >= 0


def test_stages_are_settled_one_by_one() -> None:
    """Found by proving it: ``coq/examples/StagesSettledInOne.v``.

    The first stage of the second agent was thought to cost 10 and cost 1; it leaves in
    step 11. Taking the 9 out of its second stage finishes the third agent too early.
    """
    plans = [
        agent(0, (0, 8), (0, 1), (0, 8)),
        Plan(3, (((0, 1),), ((4, 2),)), 20, (10, 11)),
        Plan(9, (((3, 2),),), 10),
    ]
    last = [
        service_lags(run(plans, line, Peak(8)), by_stage=True)[-1]
        for line in (ours(tags="stage"), FairLine(by_stage=True))
    ]
    assert last[0] == last[1]
    assert last[0].delivered == 49
    assert last[0].finish == Fraction(589, 10)
    assert last[0].slack == Fraction(9, 10)


def test_the_smallest_instance_of_it() -> None:
    plans = [
        agent(2, (2, 3)),
        agent(7, (0, 1)),
        agent(3, (0, 1), (0, 1), (4, 1)),
    ]
    assert least_slack(service_lags(run(plans, Dropping()))) < 0
    assert least_slack(service_lags(run(plans, ours()))) >= 0


@pytest.mark.parametrize("prompts", [1, 4, 16])
def test_counting_what_is_merely_held_breaks_the_bound(prompts: int) -> None:
    """In chunks of one token, a prompt of 20 is held for 20 steps before it decodes.

    That is ten times the work that was predicted, so the one with no prompt is late.
    """
    plans = (*[agent(0, (20, 1))] * prompts, agent(0, *[(0, 6)]))
    scenario = Scenario(plans, Slots(1), chunk=1)
    line = HoldingCounts()
    history = line.count(scenario.run(line))
    lag = service_lags(history)[-1]
    assert lag.item.agent == prompts
    assert lag.finish + lag.in_flight - lag.cost - lag.delivered <= -189 * prompts
    assert least_slack(service_lags(scenario.run(ours()))) >= 0


def test_so_it_does_for_one_inference_alone() -> None:
    """The smallest instance: two prompt tokens in two steps, one token produced."""
    line = HoldingCounts()
    scenario = Scenario((agent(0, (2, 1)),), Slots(1), chunk=1)
    (lag,) = service_lags(line.count(scenario.run(line)))
    assert [lag.finish, lag.cost, lag.delivered] == [3, 4, 0]


def test_when_nobody_is_left_nobody_is_owed() -> None:
    """An agent that got less than predicted leaves no debt behind an idle moment."""
    plans = [agent(0, (0, 1), predicted=1000), agent(5, (0, 2)), agent(5, (0, 1))]
    line = FairLine()
    history = run(plans, line)
    assert [item.agent for item in history.starts] == [0, 2, 1]
    assert line.tags[2, 0] - line.tags[1, 0] == -2
    assert not line.fair.wanting()
