"""Cases from the field, through the verbs of the policies."""

import json
from collections.abc import Callable
from copy import deepcopy
from fractions import Fraction
from typing import Any

import pytest

from justitia.policy import (
    Agent,
    AgentOrder,
    Inference,
    Policy,
    PolicyError,
    SelectivePampering,
    Step,
    create,
)
from justitia.policy.exact import Number
from justitia.policy.ledger import Account
from tests.policy.builders import (
    VARIANTS,
    Anything,
    agent,
    decode,
    drain,
    inference,
    line,
    make,
    queue,
    state,
    victims,
)
from tests.policy.history import dispatch_log


def justitia(**options: Any) -> SelectivePampering:  # noqa: ANN401
    policy = create("justitia", **options)
    assert isinstance(policy, SelectivePampering)
    return policy


def paper(*agents: Agent, runs: int = 1, p: int = 3, d: int = 2) -> SelectivePampering:
    """Make a policy with the paper's options and something of each agent in line."""
    policy = justitia()
    queue(policy, *agents, runs=runs, p=p, d=d)
    return policy


def deliver(policy: Policy, who: str, work: int) -> None:
    """Let an agent get `work` token-steps, by an inference that leaves no trace."""
    policy.submit(Inference("burst", who, work - 1, 1))
    policy.start("burst")
    policy.serve(decode(burst=1))
    policy.finish("burst")
    policy._check()


# The paper --------------------------------------------------------------------


def test_paper_example() -> None:
    """M=100: A's ten inferences, then B and C at t=1; B, C, the rest of A."""
    policy = paper(agent("A", 200), runs=10, p=19, d=1)
    for index in range(5):
        policy.start(f"A/{index}")
    policy.serve(Step(decode={f"A/{index}": 1 for index in range(5)}))
    assert policy.clock.value == 100
    queue(policy, agent("B", 30), agent("C", 40))
    assert [policy.tag(who) for who in "ABC"] == [200, 130, 140]
    assert line(policy) == ["B/0", "C/0", *(f"A/{n}" for n in range(5, 10))]
    assert victims(policy) == [f"A/{n}" for n in (4, 3, 2, 1, 0)]


def test_the_paper_in_compute_tokens() -> None:
    policy = create("justitia-c")
    queue(policy, agent("A", 200), p=100, d=5)
    queue(policy, agent("B", 150))
    policy.start("A/0")
    policy.serve(Step({"A/0": 100}, {"A/0": 3}))  # 106 compute tokens
    assert isinstance(policy, SelectivePampering)
    assert policy.clock.value == 53
    assert repr(policy.cost_model) == "ComputeTokens()"


# Virtual time -----------------------------------------------------------------


def test_B01_tags_count_the_agents_of_the_reference() -> None:
    policy = paper(agent("A", 100), agent("B", 400))
    deliver(policy, "B", 400)  # all of it really to B; A departs in the reference
    policy.arrive(agent("D", 150))
    assert (policy.clock.value, policy.tag("D")) == (300, 450)
    policy.submit(inference("D/0"))
    assert line(policy) == ["A/0", "B/0", "D/0"]


def test_B03_cancelled_with_nothing_delivered() -> None:
    policy = paper(agent("A", 1000), agent("B", 1000))
    deliver(policy, "A", 200)
    assert policy.leave("B")
    deliver(policy, "A", 300)
    assert policy.clock.value == 400
    queue(policy, agent("D", 650))
    assert policy.tag("D") == 1050
    assert line(policy) == ["A/0", "D/0"]
    assert len(policy.clock) == 2


def test_B04_done_early_is_settled() -> None:
    policy = paper(agent("A", 10**6), agent("B", 1000))
    deliver(policy, "A", 100)
    assert policy.leave("A")
    assert policy.clock.active == 2  # A is owed the other half
    deliver(policy, "B", 1000)
    assert policy.clock.value == 1000
    assert len(policy.clock) == 1  # A was forgotten when it departed
    policy.arrive(agent("D", 10))
    assert [policy.tag(who) for who in "BD"] == [1000, 1010]


def test_B04_mirror_an_agent_that_outgrows_its_prediction() -> None:
    def mice_pass(growth: Number | None) -> bool:
        policy = queue(justitia(growth=growth), agent("A", 1), runs=2, p=9)
        policy.start("A/0")
        for number in range(4):
            policy.serve(decode(A__0=10))
            queue(policy, agent(f"mouse{number}", 12))
        policy._check()
        head = policy.peek()
        assert head is not None
        return head.agent.startswith("mouse")

    assert mice_pass(growth=2)
    assert not mice_pass(growth=None)  # its one tag is its place to its end


def test_B04_growth_doubles_what_was_delivered() -> None:
    policy = queue(justitia(growth=2), agent("A", 10), runs=2, p=9)
    policy.pop()
    policy.serve(decode(A__0=1))  # 10 of 10: not outgrown
    assert policy.tag("A") == 10
    policy.serve(decode(A__0=1))  # 21
    assert policy.tag("A") == 10 + (42 - 10)
    policy.serve(decode(A__0=1))  # 33 of 42
    assert policy.tag("A") == 42


def test_settling_takes_what_was_delivered_and_no_more_than_predicted() -> None:
    policy = paper(agent("A", 30), agent("B", 1000))
    deliver(policy, "A", 90)  # 45 each, but A wants only 30 in all
    assert policy.clock.value == 60
    assert policy.leave("A")
    assert len(policy.clock) == 1


def test_an_id_comes_again_while_its_first_bearer_is_owed() -> None:
    policy = paper(agent("A", 50), agent("B", 1000))
    deliver(policy, "A", 40)
    policy.leave("A")
    queue(policy, agent("A", 7))
    assert (policy.clock.active, len(policy.clock)) == (3, 3)
    assert policy.tag("A") == 20 + 7
    policy._check()
    deliver(policy, "B", 21)  # 7 each
    assert (policy.clock.value, policy.clock.active) == (27, 2)
    assert policy.leave("A")
    policy._check()
    deliver(policy, "B", 100)
    assert len(policy.clock) == 1
    assert policy.tag("B") == 1000


def test_B06_no_rebase() -> None:
    policy = justitia()
    policy.arrive(agent("old", 10**12))
    deliver(policy, "old", 10**12)
    queue(policy, *(agent(f"q{extra}", extra) for extra in (3, 1, 2)))
    assert [policy.tag(f"q{n}") for n in (1, 2, 3)] == [10**12 + n for n in (1, 2, 3)]
    queue(policy, agent("new", 10))
    assert line(policy) == ["q1/0", "q2/0", "q3/0", "new/0"]


def test_B07_ties_go_by_arrival_then_submission() -> None:
    policy = paper(agent("z", 10), agent("a", 10), runs=2)
    policy.submit(inference("a/9"))
    policy.submit(inference("a/8"))
    assert line(policy) == ["z/0", "z/1", "a/0", "a/1", "a/9", "a/8"]


@pytest.mark.parametrize("variant", VARIANTS)
def test_B07_the_order_inside_a_step_is_nothing(variant: str) -> None:
    assert dispatch_log(variant) == dispatch_log(variant, backwards=True)


def test_B09a_prefill_only_agents_pay_for_their_prompts() -> None:
    runs = 1000
    policy = paper(agent("A", runs * 8000), runs=runs, p=8000, d=0)
    assert policy.tag("A") == 8_000_000
    queue(policy, agent("B", 8000 * 10))
    assert line(deepcopy_head(policy, 3)) == ["B/0", "A/0", "A/1"]
    policy.start("A/0")
    policy.serve(Step({"A/0": 4000}))
    assert policy.clock.value == 0  # half a prompt is nothing yet
    policy.serve(Step({"A/0": 4000}, {"A/0": 0}))
    assert policy.clock.value == 4000
    policy.serve(Step({}, {"A/0": 0}))  # told twice, delivered once
    assert policy.clock.value == 4000


def deepcopy_head(policy: Policy, count: int) -> Policy:
    """Return a copy with only the first `count` of the line, to look at it quickly."""
    twin = deepcopy(policy)
    for item in list(twin.order())[count:]:
        twin.finish(item.id)
    return twin


def test_B09b_an_agent_without_inferences_leaves_no_trace() -> None:
    policy = paper(agent("A", 100))
    before = (policy.clock.value, policy.clock.active, policy.tag("A"))
    policy.arrive(agent("B", 5, inferences=0))
    assert policy.leave("B")
    assert (policy.clock.value, policy.clock.active, policy.tag("A")) == before
    by_stage = justitia(tags="stage")
    by_stage.arrive(agent("B", 5))
    assert (by_stage.tag("B"), len(by_stage.clock)) == (None, 0)
    by_stage.revise("B", 6)
    by_stage._check()
    assert by_stage.leave("B")


def test_B11_blocks_or_tokens_give_one_order() -> None:
    costs = {"A": 1600, "B": 640, "C": 800}

    def run(unit: int) -> tuple[list[str], list[Any]]:
        policy = paper(*(agent(n, Fraction(c, unit)) for n, c in costs.items()))
        return line(policy), policy.clock.serve(Fraction(3040, unit))

    tokens, blocks = run(1), run(16)
    assert tokens[0] == blocks[0] == ["B/0", "C/0", "A/0"]
    assert tokens[1] == [(who, work * 16) for who, work in blocks[1]]


def test_B12_a_clock_that_is_set_back() -> None:
    policy = justitia(clock="nominal", capacity=100)
    policy.advance(86_400)  # a day with nobody there
    assert policy.clock.value == 0
    queue(policy, agent("A", 10**4))
    values = []
    for seconds in (10, -5, 1, 5):
        policy.advance(seconds)
        values.append(policy.clock.value)
    assert values == [1000, 1000, 1100, 1600]
    deliver(policy, "A", 50)
    assert policy.clock.value == 1600  # time drives it, not service


def test_the_nominal_clock_shares_its_capacity_every_step() -> None:
    policy = justitia(clock="nominal", capacity=100, step_seconds=Fraction(1, 50))
    queue(policy, agent("A", 10**6), agent("B", 10**6))
    policy.advance(Fraction(1, 10))
    assert policy.clock.value == 250


# Coming and going -------------------------------------------------------------


@pytest.mark.parametrize("variant", VARIANTS)
def test_B19_preempted_and_resumed(variant: str) -> None:
    policy = queue(make(variant), agent("A", 100), agent("B", 100), runs=2)
    before = line(policy)
    first = policy.pop()
    assert first is not None
    policy.serve(Step({first.id: 3}, {first.id: 1}))
    tags = [policy.tag(who) for who in "AB"]
    policy.requeue(first.id)
    assert [policy.tag(who) for who in "AB"] == tags
    again = state_of_books(policy)
    policy.serve(Step({first.id: 3}, {first.id: 1}))  # late news of what waits
    assert state_of_books(policy) == again
    policy.start(first.id)
    policy.serve(Step({first.id: 4}))  # computed again, and nothing new
    policy.requeue(first.id)
    assert state_of_books(policy) == again
    if policy.static_order:
        assert line(policy) == before
    policy._check()


def state_of_books(policy: Policy) -> object:
    accounts = policy._accounts  # type: ignore[attr-defined]
    return (
        line(policy),
        [(a.service, getattr(a, "counter", 0)) for a in accounts.values()],
        state(getattr(policy, "clock", None)),
    )


def test_B19_three_run_and_one_must_go() -> None:
    policy = queue("justitia", agent("A", 30), agent("B", 10), agent("C", 20))
    for _ in range(3):
        policy.pop()
    assert victims(policy) == ["A/0", "C/0", "B/0"]
    policy.requeue("A/0")
    assert (line(policy), victims(policy)) == (["A/0"], ["C/0", "B/0"])


def test_a_preempted_inference_stands_before_later_ones_of_its_agent() -> None:
    policy = queue("agent-fcfs", agent("A"), runs=5)
    for name in ("A/0", "A/1", "A/2", "A/4"):
        policy.start(name)
    for name in ("A/1", "A/4", "A/0", "A/2"):
        policy.requeue(name)
        policy._check()
    assert line(policy) == [f"A/{n}" for n in range(5)]


@pytest.mark.parametrize("variant", VARIANTS)
def test_B20_nothing_that_runs_gives_way_to_what_waits(variant: str) -> None:
    policy = queue(make(variant), agent("elephant", 10**6))
    running = policy.pop()
    queue(policy, agent("mouse", 1))
    waiting = policy.peek()
    assert running is not None
    assert waiting is not None
    assert policy.preempts(waiting, running) is False


@pytest.mark.parametrize("bad", [None, -1, 131_072.5])
def test_B29_lengths_that_are_refused(bad: Anything) -> None:
    with pytest.raises(PolicyError, match="decode_tokens"):
        Inference("i", "a", 1, bad)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_cancelled_start_leaves_the_line_as_if_it_had_never_been(
    variant: str,
) -> None:
    policy = queue(make(variant), agent("A", 20), agent("B", 20), runs=3)
    for _ in range(3):
        policy.pop()
    before = (line(policy), victims(policy))
    head = policy.pop()
    assert head is not None
    policy.requeue(head.id)
    assert (line(policy), victims(policy)) == before


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_thousand_agents_leave_nothing_behind(variant: str) -> None:
    policy = make(variant)
    for number in range(300):
        queue(policy, agent("A", 10, stage_costs=(4, 6)), runs=2)
        policy.pop()
        if number % 3:
            policy.serve(Step({"A/0": 3}, {"A/0": 2}))
            policy.advance(5)
        if number % 2:
            policy.finish("A/0")
        policy.leave("A")
    policy._check()
    queue(policy, agent("B", 10**6))
    policy.pop()
    policy.serve(decode(B__0=10**6))
    policy.advance(10**6)
    policy._check()
    held = json.dumps(state(policy), default=str)
    assert len(held) < 5000


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_walk_notices_that_the_line_has_changed(variant: str) -> None:
    policy = queue(make(variant), agent("A"), agent("B"), runs=2)
    verbs: tuple[Callable[[], object], ...] = (
        policy.pop,
        lambda: policy.submit(inference("A/9")),
        lambda: policy.finish("B/1"),
        lambda: policy.requeue("A/0"),
    )
    for verb in verbs:
        walk = policy.order()
        next(walk)
        verb()
        with pytest.raises(RuntimeError, match="changed while it was walked"):
            next(walk)
    policy._check()


def test_the_running_can_end_during_a_walk() -> None:
    policy = queue("justitia", agent("A"), agent("B"), runs=2)
    policy.start("B/1")
    walk = policy.order()
    next(walk)
    policy.finish("B/1")
    assert [item.id for item in walk] == ["A/1", "B/0"]


# Stages -----------------------------------------------------------------------


def test_a_stage_gets_its_tag_when_it_becomes_ready() -> None:
    policy = justitia(tags="stage")
    policy.arrive(agent("A", 30, stage_costs=(10, 20)))
    policy.arrive(agent("B", 100))
    assert policy.tag("A") is None
    policy.submit(inference("A/0"))
    assert policy.tag("A") == 10
    policy.submit(inference("B/0"))
    deliver(policy, "B", 40)  # A's stage is through at V=10, B alone from there
    assert policy.clock.value == 30
    policy.submit(inference("A/1", stage=1))
    assert policy.tag("A") == 50  # V + 20
    policy.submit(inference("A/2", stage=1))
    assert policy.tag("A") == 50  # the same stage
    assert line(policy) == ["A/0", "A/1", "A/2", "B/0"]


def test_a_ready_stage_follows_on_its_agents_last_tag() -> None:
    policy = justitia(tags="stage")
    policy.arrive(agent("A", 30, weight=2, stage_costs=(10, 20)))
    policy.submit(inference("A/0"))
    policy.submit(inference("A/1", stage=1))  # while the first is not through
    assert policy.tag("A") == 15
    queue(policy, agent("B", 7))
    assert line(policy) == ["A/0", "B/0", "A/1"]


def test_stages_without_costs_cost_what_their_inferences_do() -> None:
    policy = queue(justitia(tags="stage"), agent("A", 50), runs=2)
    assert policy.tag("A") == 50
    policy.submit(inference("A/2", p=3, d=2, stage=1))
    assert policy.tag("A") == 50 + 9
    policy.submit(inference("A/3", p=0, d=1, stage=1))
    assert policy.tag("A") == 50 + 9 + 1
    assert line(policy) == ["A/0", "A/1", "A/2", "A/3"]


def test_stages_may_become_ready_in_any_order() -> None:
    policy = justitia(tags="stage")
    policy.arrive(agent("A", 60, stage_costs=(10, 20, 30)))
    for stage, tag in ((2, 30), (0, 40), (1, 60)):
        policy.submit(inference(f"A/{stage}", stage=stage))
        policy._check()
        assert policy.tag("A") == tag
    assert line(policy) == ["A/2", "A/0", "A/1"]
    policy.revise("A", 120)  # twice as much: of the latest, 20
    policy._check()
    assert policy.tag("A") == 80


def test_inferences_beyond_the_plan_in_any_order() -> None:
    policy = justitia(tags="stage")
    policy.arrive(agent("A", 10, stage_costs=(10,)))
    for name, stage in (("A/0", 0), ("A/1", 5), ("A/2", 3), ("A/3", 5)):
        policy.submit(inference(name, p=1, d=1, stage=stage))
        policy._check()
    assert policy.tag("A") == 16


def test_a_revision_scales_the_latest_stage_and_those_to_come() -> None:
    policy = justitia(tags="stage")
    policy.arrive(agent("A", 40, stage_costs=(10, 30)))
    policy.submit(inference("A/0"))
    for _ in range(3):  # once or thrice is the same
        policy.revise("A", 80)
        assert policy.tag("A") == 20
    policy.submit(inference("A/1", stage=1))
    assert policy.tag("A") == 80
    policy.submit(inference("A/2", p=5, d=1, stage=2))  # beyond the plan: as predicted
    assert policy.tag("A") == 86
    policy.revise("A", 40)  # the stages before the latest keep what they have
    assert policy.tag("A") == 86
    policy._check()


def test_stage_costs_given_as_floats_add_up_exactly() -> None:
    policy = justitia(tags="stage")
    policy.arrive(agent("A", 1e17, stage_costs=(1e17, 1.0)))
    policy.submit(inference("A/0"))
    policy.submit(inference("A/1", stage=1))
    assert policy.tag("A") == 10**17 + 1


def test_a_revision_moves_what_waits() -> None:
    for name in ("justitia", "srjf"):
        policy = queue(name, agent("A", 10), agent("B", 20), runs=2)
        policy.revise("A", 30)
        assert line(policy) == ["B/0", "B/1", "A/0", "A/1"]
        policy.revise("B", 40)
        assert line(policy) == ["A/0", "A/1", "B/0", "B/1"]


def test_B04_a_revision_of_what_the_reference_has_finished() -> None:
    policy = paper(agent("A", 10), agent("B", 100))
    deliver(policy, "B", 40)
    assert policy.clock.value == 30
    policy.revise("A", 15)  # from V on, not from its old tag
    assert policy.tag("A") == 35
    policy.revise("A", 11)
    assert policy.tag("A") == 31
    policy._check()


# Remaining --------------------------------------------------------------------


def test_srjf_goes_by_what_remains() -> None:
    policy = queue("srjf", agent("A", 30), agent("B", 25), runs=2)
    assert line(policy) == ["B/0", "B/1", "A/0", "A/1"]
    policy.start("A/0")
    policy.serve(decode(A__0=2))  # 9: 21 remain
    assert line(policy) == ["A/1", "B/0", "B/1"]
    policy.serve(decode(A__0=10))  # outgrown: nothing remains, not less
    queue(policy, agent("C", 1))
    policy.start("B/0")
    policy.serve(decode(B__0=20))  # outgrown by more, and so as near to its end as A
    assert line(policy) == ["A/1", "B/1", "C/0"]
    policy.revise("B", 1000)
    assert line(policy) == ["A/1", "C/0", "B/1"]


# A policy of one's own --------------------------------------------------------


class LongestFirst(AgentOrder):
    static_order = True

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (-account.cost,)


def test_a_line_of_ones_own_follows_revisions() -> None:
    policy = queue(LongestFirst(), agent("A", 10), agent("B", 20))
    assert line(policy) == ["B/0", "A/0"]
    policy.revise("A", 30)
    policy._check()
    assert line(policy) == ["A/0", "B/0"]
    assert policy.tag("A") is None


class Rising(AgentOrder):
    """The least served first, in a way that is told late; see `AgentOrder.outdate`."""

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (account.service,)

    def arrive(self, agent: Agent) -> None:
        super().arrive(agent)
        self.outdate(self._accounts[agent.id])  # has nothing in line: no matter

    def served(self, step: Step) -> None:
        for account in self.deliver(step):
            self.outdate(account)


def test_keys_that_have_grown_are_looked_at_when_it_matters() -> None:
    policy = queue(Rising(), *(agent(name) for name in "ABC"), runs=3)
    for name in "AB":
        policy.start(f"{name}/0")
    policy.serve(decode(A__0=2, B__0=1))
    policy._check()
    assert drain(policy) == ["C/0", "C/1", "C/2", "B/1", "B/2", "A/1", "A/2"]


def test_a_policy_may_write_every_verb_itself() -> None:
    class Lottery(Policy):
        """Not a lottery at all: the last submitted, whatever happens."""

        def __init__(self) -> None:
            self.items: list[Inference] = []

        def arrive(self, agent: Agent) -> None: ...

        def submit(self, inference: Inference) -> None:
            self.items.append(inference)

        def start(self, inference_id: str) -> Inference:
            return self.items.pop()

        def serve(self, step: Step) -> None: ...

        def requeue(self, inference_id: str) -> None: ...

        def finish(self, inference_id: str) -> bool:
            return False

        def leave(self, agent_id: str) -> bool:
            return False

        def revise(self, agent_id: str, cost: Number) -> None: ...

        def peek(self) -> Inference | None:
            return self.items[-1] if self.items else None

        def order(self) -> Any:  # noqa: ANN401
            return reversed(self.items)

        def victims(self) -> Any:  # noqa: ANN401
            return iter(())

    policy = queue(Lottery(), agent("A"), runs=2)
    # The defaults: no-ops, no tag, nothing preempted, nothing promised.
    policy.refuse("A/1")
    policy.advance(1)
    policy._check()
    assert policy.tag("A") is None
    assert (policy.static_order, policy.additive, policy.name) == (False, False, "")
    assert line(policy) == ["A/1", "A/0"]
    assert policy.preempts(inference(), inference()) is False
    with pytest.raises(TypeError):
        Policy()  # type: ignore[abstract]
