"""The shipped policy and the fair reference keep the same line, event by event."""

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise
from typing import cast

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from justitia.policy import COST_MODELS, SelectivePampering
from justitia.proofs.admissions import Slots
from justitia.proofs.lines import FairLine, PolicyLine
from justitia.proofs.plans import Plan
from justitia.proofs.scenarios import Scenario
from justitia.proofs.server import Line
from justitia.proofs.strategies import scenarios
from tests.proofs.builders import ours, tags_of
from tests.proofs.wrong import FirstCome, LastTag

pytestmark = pytest.mark.property
BY_STAGE = pytest.mark.parametrize("by_stage", [False, True], ids=["agent", "stage"])


@BY_STAGE
@pytest.mark.parametrize("cost", sorted(COST_MODELS))
@given(data=st.data())
def test_policy_and_reference_give_the_same_history(
    cost: str, by_stage: bool, data: st.DataObject
) -> None:
    work = COST_MODELS[cost]()
    scenario = data.draw(
        scenarios(most_stages=3, most_error=4, cancelled=True, work=work)
    )
    fair = FairLine(by_stage=by_stage, work=work)
    policy = ours(work=work, cost=cost, tags=tags_of(by_stage))
    expected = scenario.run(fair, work=work)
    history = scenario.run(policy, work=work)
    assert history.events == expected.events
    assert history.starts == expected.starts
    assert history.finishes == expected.finishes
    # Of an agent with one tag the policy tells it again when a stage is ready.
    for unit, tag in fair.tags.items():
        assert policy.tags.get(unit, tag) == tag
    assert fair.tags.keys() <= policy.tags.keys()
    event(f"preempted: {any(e.requeued for e in history.events)}")
    event(f"refused: {any(e.refused for e in history.events)}")
    event(f"cancelled: {any(e.cancelled for e in history.events)}")


@BY_STAGE
@given(scenario=scenarios(most_stages=3), rate=st.integers(1, 30))
def test_so_they_do_with_a_clock_of_constant_rate(
    by_stage: bool, scenario: Scenario, rate: int
) -> None:
    policy = ours(clock="nominal", capacity=rate, tags=tags_of(by_stage))
    expected = scenario.run(FairLine(by_stage=by_stage, rate=rate))
    assert scenario.run(policy).events == expected.events


@given(scenario=scenarios(most_error=3, cancelled=True))
def test_an_agent_of_one_stage_is_a_stage(scenario: Scenario) -> None:
    by_agent, by_stage = FairLine(), FairLine(by_stage=True)
    assert scenario.run(by_agent).events == scenario.run(by_stage).events
    assert by_agent.tags == by_stage.tags


@BY_STAGE
@given(
    scenario=scenarios(most_stages=3, most_error=3, cancelled=True),
    last=st.integers(0, 8),
)
def test_later_arrivals_change_no_tag(
    by_stage: bool, scenario: Scenario, last: int
) -> None:
    """Without those that come after `last`, what was ready by then has the same tag."""

    def tags(agents: list[int]) -> dict[tuple[int, int], object]:
        line = ours(tags=tags_of(by_stage))
        plans = tuple(scenario.plans[number] for number in agents)
        history = replace(scenario, plans=plans).run(line)
        early = [unit for event in history.events[: last + 1] for unit in event.ready]
        return {(agents[a], stage): line.tags[a, stage] for a, stage in early}

    everybody = list(range(len(scenario.plans)))
    early = [k for k in everybody if scenario.plans[k].arrival <= last]
    assert tags(early) == tags(everybody)


@given(scenario=scenarios(most_error=3))
def test_tags_are_in_the_order_of_fair_finishes(scenario: Scenario) -> None:
    line = FairLine()
    scenario.run(line)
    finishes = {
        (int(str(share.agent)), 0): share.finish
        for share in line.fair.shares
        if share.finish is not None
        and share.satisfied_at == line.tags[int(str(share.agent)), 0]
    }
    order = sorted(finishes, key=lambda unit: (line.tags[unit], unit))
    for earlier, later in pairwise(order):
        assert finishes[earlier] <= finishes[later]


class Beside:
    """Two lines that are told the same and must answer the same."""

    def __init__(self, first: Line, second: Line) -> None:
        self.lines = (first, second)
        self.after: Callable[[], None] = lambda: None

    def __getattr__(self, verb: str) -> Callable[..., object]:
        def both(*arguments: object) -> object:
            answers = [getattr(line, verb)(*arguments) for line in self.lines]
            assert answers[0] == answers[1]
            self.after()
            return answers[0]

        return both


@BY_STAGE
@given(scenario=scenarios(most_stages=3, most_error=4, cancelled=True))
def test_the_clock_is_the_reference_after_every_step(
    by_stage: bool, scenario: Scenario
) -> None:
    """Two lines in one: the policy leads, the reference is told the same."""

    policy = SelectivePampering(tags=tags_of(by_stage))
    fair = FairLine(by_stage=by_stage)
    both = Beside(PolicyLine(policy), fair)
    before: list[object] = [0]

    def agree() -> None:
        policy._check()
        fair.fair._check()
        assert policy.clock.value == fair.fair.level
        assert policy.clock.active == len(fair.fair.wanting())
        assert policy.clock.value >= before[0]  # type: ignore[operator]
        before[0] = policy.clock.value

    both.after = agree
    scenario.run(cast(Line, both))
    assert len(policy.clock) == policy.clock.active == 0


@pytest.mark.parametrize("wrong", [FirstCome, LastTag])
def test_another_order_gives_another_history(wrong: type[FairLine]) -> None:
    large, small = Plan(0, (((0, 5),) * 3,)), Plan(0, (((0, 1),) * 2,))
    scenario = Scenario((large, small), Slots(1))
    assert scenario.run(wrong()).events != scenario.run(ours()).events
