"""The exact server does what it says, whoever keeps the line."""

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import event, given
from hypothesis import strategies as st

from justitia.policy import Policy, create, names
from justitia.proofs.admissions import Lookahead, Peak, Prompt, Slots, Whim, coin
from justitia.proofs.lines import FairLine, PolicyLine
from justitia.proofs.plans import (
    Item,
    Plan,
    ReservedTokenTime,
    delivered,
    kv_token_time,
)
from justitia.proofs.scenarios import Scenario, Seeded, Tosses
from justitia.proofs.server import Server, Stuck, never
from justitia.proofs.strategies import scenarios
from tests.proofs.builders import agent, ours, run


def of(scenario: Scenario, item: Item) -> tuple[int, int]:
    return scenario.plans[item.agent].stages[item.stage][item.place]


@pytest.mark.property
@given(
    scenario=scenarios(most_stages=3, most_error=3, cancelled=True),
    name=st.sampled_from(names()),
)
def test_every_run_is_a_run(scenario: Scenario, name: str) -> None:
    """Whatever the policy: nothing runs twice, too long, out of turn or past memory."""
    history = scenario.run(PolicyLine(create(name)))
    produced: Counter[Item] = Counter()
    running: set[Item] = set()
    gone: set[int] = set()
    for step, now in enumerate(history.events):
        gone |= set(now.cancelled)
        running = {item for item in running if item.agent not in gone}
        assert set(now.requeued) <= running
        running -= set(now.requeued)
        for item in now.entered:
            assert item not in running
            assert history.starts[item] <= step
            running.add(item)
        assert running == set(now.ran)
        if isinstance(scenario.admission, Slots):
            assert len(running) <= scenario.admission.most
        assert now.service.keys() <= running
        for item in now.service:
            size, before = of(scenario, item), produced[item]
            produced[item] += 1
            work = delivered(kv_token_time, size, before + 1)
            assert now.service[item] == work - delivered(kv_token_time, size, before)
        ended = {item for item, end in history.finishes.items() if end == step + 1}
        assert ended <= running
        running -= ended
    for item in history.starts:
        assert (item in history.finishes) == (produced[item] == of(scenario, item)[1])
        if item not in history.finishes:
            assert item.agent in gone
    for number, plan in enumerate(scenario.plans):
        assert number in gone or {i for i in history.finishes if i.agent == number} == {
            Item(number, k, n)
            for k, stage in enumerate(plan.stages)
            for n, _ in enumerate(stage)
        }
    event(f"cancelled: {bool(gone)}")


@pytest.mark.property
@given(scenario=scenarios(most_stages=2, chunked=False, paused=False))
def test_memory_is_kept(scenario: Scenario) -> None:
    history = scenario.run(ours())
    rule = scenario.admission
    if isinstance(rule, Peak | Lookahead | Prompt):
        for now in history.events:
            alone = len(now.ran) == 1
            assert now.held <= rule.capacity or alone


def test_stages_wait_for_all_of_the_one_before() -> None:
    plan = Plan(0, (((0, 1), (0, 3)), ((0, 1),)))
    history = run([plan], FairLine(), Slots(9))
    assert history.starts == {Item(0, 0, 0): 0, Item(0, 0, 1): 0, Item(0, 1, 0): 3}
    assert history.finishes == {Item(0, 0, 0): 1, Item(0, 0, 1): 3, Item(0, 1, 0): 4}


def test_a_prompt_in_chunks_delivers_nothing_until_its_last() -> None:
    history = Scenario((agent(0, (5, 2)),), Slots(1), chunk=2).run(FairLine())
    assert [int(now.delivered) for now in history.events] == [0, 0, 6, 7]
    assert [now.held for now in history.events] == [2, 4, 6, 7]


def test_what_is_sent_back_computes_its_tokens_again() -> None:
    scenario = Scenario(
        (agent(0, (2, 3)),), Slots(1), chunk=2, preempts=Tosses(frozenset({1}))
    )
    history = scenario.run(FairLine())
    # Produced one; then 3 to compute again, in chunks of 2.
    assert [int(now.delivered) for now in history.events] == [3, 0, 4, 5]
    assert [len(now.requeued) for now in history.events] == [0, 1, 0, 0]


def test_a_pause_is_a_step_of_nothing() -> None:
    scenario = Scenario((agent(0, (2, 2)),), Slots(1), pauses=Tosses(frozenset({2})))
    history = scenario.run(FairLine())
    assert [int(now.delivered) for now in history.events] == [3, 0, 4]
    assert [now.held for now in history.events] == [3, 3, 4]


def test_cancelled_before_anything_arrives() -> None:
    plans = [
        agent(0, (0, 5), cancelled=2),
        agent(2, (0, 1)),
        agent(3, (0, 1), cancelled=9),
    ]
    history = run(plans, FairLine())
    assert [now.cancelled for now in history.events] == [(), (), (0,), ()]
    assert history.agent_finishes() == {1: 3, 2: 4}


def test_an_overflow_sends_back_as_many_as_it_takes() -> None:
    """Four that grow in a memory of eight: two are left when each is to hold three."""
    history = run([agent(0, *[(0, 4)] * 4)], FairLine(), Prompt(8))
    assert max(now.held for now in history.events) <= 8
    assert [len(now.requeued) for now in history.events][:4] == [0, 0, 2, 0]


def test_equal_footprints_that_divide_the_capacity_leave_no_hole() -> None:
    peak = Peak(12, most=5)
    assert peak.guaranteed_rate([agent(0, (1, 2), (2, 1))]) == 12
    assert peak.guaranteed_rate([agent(0, (1, 2), (2, 2))]) == 9
    assert Peak(12, most=2).guaranteed_rate([agent(0, (1, 2))]) == 6
    assert Peak(33, block=16).guaranteed_rate([agent(0, (1, 2), (20, 1))]) == 16


def test_cost_of_what_is_reserved() -> None:
    work = ReservedTokenTime(block=4)
    assert work(3, 2) == 16
    assert [delivered(work, (3, 2), n) for n in range(3)] == [0, 8, 16]
    assert [delivered(kv_token_time, (3, 2), n) for n in range(3)] == [0, 4, 9]


class _Forgetful(FairLine):
    def head(self) -> Item | None:
        return None

    def ready(self, items: Sequence[Item]) -> None:
        super().ready(items)


def test_a_line_that_starves_somebody_is_stuck() -> None:
    with pytest.raises(Stuck, match="nobody is next"):
        run([agent(0, (0, 1))], _Forgetful())


def test_a_run_that_does_not_end_is_given_up() -> None:
    server = Server(
        [agent(0, (0, 1))], FairLine(), Slots(1), pauses=lambda n: True, most_steps=50
    )
    with pytest.raises(Stuck, match="after 50 steps"):
        server.run()


def test_coins() -> None:
    assert not any(never(n) for n in range(9))
    assert [n for n in range(9) if Tosses(frozenset({3, 5}))(n)] == [3, 5]
    some = [n for n in range(1, 1000) if Seeded(7, 3, last=500)(n)]
    assert some == [n for n in range(1, 501) if coin(7, 3)(n)]
    assert 100 < len(some) < 250


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"stages": ()}, "needs a stage"),
        ({"stages": ((),)}, "needs a stage"),
        ({"stages": (((0, 0),),)}, "d at least 1"),
        ({"stages": (((-1, 1),),)}, "p must be at least 0"),
        ({"stages": (((0, 1),),), "predicted": (1, 2)}, "every stage, or of none"),
    ],
)
def test_plans_that_make_no_sense(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Plan(0, **wrong)  # type: ignore[arg-type]


def test_a_scenario_runs_as_often_as_one_likes() -> None:
    scenario = Scenario((agent(0, *[(0, 2)] * 6),), Whim(3, tossed=5))
    assert scenario.run(FairLine()).events == scenario.run(FairLine()).events


def test_a_policy_is_told_what_it_may_know() -> None:
    """Predicted costs in all and by stage, and how many inferences."""
    policy: Policy = create("justitia")
    line = PolicyLine(policy)
    plan = Plan(0, (((0, 1),), ((0, 2), (0, 1))), 2, predicted=(4, 10))
    line.arrive(0, plan)
    assert policy.tag("a0") == 7
    assert str(Item(3, 1, 2)) == "a3/1.2"
