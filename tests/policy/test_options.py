"""What each option does, what the defaults are, and that both names pass them on."""

from fractions import Fraction
from typing import Any

import pytest

from justitia.policy import (
    Agent,
    AgentOrder,
    ComputeTokens,
    Inference,
    KVTokenTime,
    Policy,
    SelectivePampering,
    Step,
    VirtualClock,
    create,
)
from justitia.policy.exact import SMALLEST
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


def pampering(name: str = "justitia", **options: Any) -> SelectivePampering:  # noqa: ANN401
    policy = create(name, **options)
    assert isinstance(policy, SelectivePampering)
    return policy


def filled(
    policy: SelectivePampering, *agents: Agent, p: int = 9
) -> SelectivePampering:
    """Let agents arrive, each with an inference in line."""
    queue(policy, *agents, p=p)
    return policy


# Shortest job first -----------------------------------------------------------


def three_jobs(policy: Policy) -> Policy:
    """Put in line: few tokens of a long prompt, many of none, some of a short one."""
    policy.arrive(agent("A"))
    for name, p, d in (("long prompt", 90, 2), ("many", 0, 9), ("some", 5, 4)):
        policy.submit(Inference(name, "A", p, d))
    return policy


def test_sjf_goes_by_decode_tokens() -> None:
    for policy in (create("sjf"), create("sjf", by="decode")):
        assert line(three_jobs(policy)) == ["long prompt", "some", "many"]


def test_sjf_by_cost_goes_by_token_time() -> None:
    # 90*2 + 3 = 183; 9*10/2 = 45; 5*4 + 4*5/2 = 30
    policy = three_jobs(create("sjf", by="cost"))
    assert line(policy) == ["some", "many", "long prompt"]
    assert drain(policy) == ["some", "many", "long prompt"]
    assert victims(policy) == ["long prompt", "many", "some"]


# Shortest remaining job first -------------------------------------------------


def test_srjf_holds_what_is_outgrown_for_done() -> None:
    policy = queue("srjf", agent("one", 1), agent("A", 5), runs=2)
    policy.start("A/0")
    policy.serve(decode(A__0=2))  # 9 of 5: nothing remains, less than the one's 1
    assert line(policy) == ["A/1", "one/0", "one/1"]


# VTC --------------------------------------------------------------------------


def counter(policy: Anything, name: str) -> object:
    return policy._accounts[name].counter


def test_vtc_charges_one_for_a_prompt_token_and_two_for_a_produced_one() -> None:
    policy = queue("vtc", agent("A"), p=7)
    policy.pop()
    assert counter(policy, "A") == 7
    policy.serve(Step({"A/0": 7}, {"A/0": 1}))
    assert counter(policy, "A") == 9
    policy.serve(decode(A__0=3))
    assert counter(policy, "A") == 15


def test_vtc_divides_by_the_weight() -> None:
    policy = queue(
        create("vtc", prompt_price=3, decode_price=Fraction(1, 2)),
        agent("A", weight=4),
        agent("B", weight=0.5),
        p=8,
    )
    drain(policy)
    assert [counter(policy, who) for who in "AB"] == [6, 48]
    policy.serve(decode(A__0=4, B__0=4))
    assert [counter(policy, who) for who in "AB"] == [Fraction(13, 2), 52]


def test_vtc_takes_back_the_charge_of_a_start_on_top_of_others() -> None:
    policy = queue("vtc", agent("A"), agent("B"), runs=3, p=10)
    policy.start("A/0")
    policy.start("A/1")
    assert counter(policy, "A") == 20
    policy.requeue("A/1")
    assert counter(policy, "A") == 10
    policy._check()
    policy.start("A/1")  # which is charged again
    assert counter(policy, "A") == 20
    policy.serve(Step({"A/1": 1}))
    policy.requeue("A/1")  # and was served: it stays
    assert counter(policy, "A") == 20
    policy.serve(decode(A__0=1))
    policy.requeue("A/0")
    assert counter(policy, "A") == 22
    assert line(policy) == ["B/0", "B/1", "B/2", "A/0", "A/1", "A/2"]


def test_vtc_a_prompt_of_nothing_costs_nothing() -> None:
    policy = queue("vtc", agent("A"), agent("B"), runs=2, p=0)
    assert line(policy) == ["A/0", "A/1", "B/0", "B/1"]
    policy.pop()
    policy._check()
    assert counter(policy, "A") == 0


def test_vtc_one_that_has_something_waiting_is_not_lifted() -> None:
    policy = queue("vtc", agent("A"), agent("B"), runs=3, p=10)
    policy.start("B/0")
    policy.submit(inference("A/3"))
    assert [counter(policy, who) for who in "AB"] == [0, 10]
    policy.submit(inference("B/3"))
    assert [counter(policy, who) for who in "AB"] == [0, 10]


# Selective pampering ----------------------------------------------------------


def test_the_defaults() -> None:
    for name, model in (("justitia", KVTokenTime()), ("justitia-c", ComputeTokens())):
        assert vars_of(pampering(name)) == vars_of(
            pampering(
                name,
                tags="agent",
                cost=model,
                growth=None,
                clock="delivered",
                capacity=None,
                step_seconds=1,
            )
        )
        assert pampering(name).cost_model == model


OPTIONS: tuple[dict[str, Any], ...] = (
    {},
    {"tags": "stage"},
    {"cost": "kv"},
    {"cost": "reserved"},
    {"growth": 2},
    {"growth": Fraction(3, 2), "tags": "stage"},
    {"clock": "nominal", "capacity": 7},
    {"clock": "nominal", "capacity": 7, "step_seconds": 3},
    {"clock": "nominal", "capacity": 7, "step_seconds": 0.25, "growth": 4},
)


def vars_of(policy: Policy) -> object:
    return state(vars(policy))


@pytest.mark.parametrize("options", OPTIONS, ids=repr)
def test_justitia_c_is_justitia_in_compute_tokens(options: dict[str, Any]) -> None:
    ours = pampering("justitia-c", **options)
    same = pampering("justitia", **{"cost": "compute", **options})
    assert vars_of(ours) == vars_of(same)
    if options:
        assert vars_of(ours) != vars_of(pampering("justitia-c"))
    log = []
    for policy in (ours, same):
        policy.arrive(agent("A", 30, stage_costs=(10, 20)))
        for stage in (0, 1):
            policy.submit(inference(f"A/{stage}", stage=stage))
        queue(policy, agent("B", 3))
        policy.start("A/0")
        policy.serve(Step({"A/0": 3}, {"A/0": 20}))
        policy.advance(2)
        policy._check()
        log.append((line(policy), [policy.tag(who) for who in "AB"], vars_of(policy)))
    assert log[0] == log[1]


def test_a_second_is_one_step_unless_said_otherwise() -> None:
    for name in ("justitia", "justitia-c"):
        for seconds, value in ((None, 14), (1, 14), (2, 7), (Fraction(1, 4), 56)):
            given = {} if seconds is None else {"step_seconds": seconds}
            policy = pampering(name, clock="nominal", capacity=7, **given)
            policy.arrive(agent("A", 1000))
            policy.advance(2)
            assert policy.clock.value == value


def test_parts_of_a_second_count_and_a_clock_set_back_does_not() -> None:
    policy = pampering(clock="nominal", capacity=8)
    policy.arrive(agent("A", 1000))
    values = []
    for seconds in (Fraction(1, 4), 0.5, 0, -3, -0.5, 1):
        policy.advance(seconds)
        values.append(policy.clock.value)
    assert values == [2, 6, 6, 6, 6, 14]


def test_what_a_policy_promises_of_its_order() -> None:
    promises = {
        variant: (make(variant).static_order, make(variant).additive)
        for variant in VARIANTS
    }
    for variant, (static, additive) in promises.items():
        grows = "growth" in variant
        by_service = variant in ("srjf", "vtc", "vtc-priced")
        by_time = variant.startswith(("mlfq", "fairserve"))
        assert static is (not grows and not by_service and not by_time)
        assert additive is (not grows and not variant.startswith("mlfq"))


@pytest.mark.parametrize("name", ["justitia", "justitia-c"])
def test_growth(name: str) -> None:
    policy = filled(pampering(name, growth=3), agent("A", 10), agent("B", 100))
    policy.start("A/0")
    policy.serve(decode(A__0=5))
    work = policy.cost_model(9, 5)
    tag = policy.tag("A")
    assert tag is not None
    assert tag == max(10, policy.clock.value) + 3 * work - 10
    plain = filled(pampering(name), agent("A", 10))
    plain.start("A/0")
    plain.serve(decode(A__0=5))
    assert plain.tag("A") == 10


def test_nothing_is_delivered_before_the_first_token() -> None:
    policy = filled(pampering(), agent("A", 1000))
    policy.start("A/0")
    policy.serve(Step({"A/0": 9}, {"A/0": 0}))
    assert policy.clock.value == 0
    policy.serve(decode(A__0=1))
    assert policy.clock.value == 10
    policy.serve(decode(A__0=0))
    assert policy.clock.value == 10


def test_one_that_got_what_the_reference_gave_it_is_forgotten_when_it_leaves() -> None:
    policy = filled(pampering(), agent("A", 1000), agent("B", 1000))
    policy.start("A/0")
    policy.start("B/0")
    policy.serve(decode(A__0=1, B__0=1))
    assert policy.clock.value == 10  # to each what it really got
    policy.leave("A")
    assert (len(policy.clock), policy.clock.active) == (1, 1)
    policy._check()


def test_one_that_is_owed_the_smallest_cost_there_is_stays_for_it() -> None:
    policy = filled(pampering(), agent("A", SMALLEST, weight=SMALLEST))
    policy.arrive(agent("B", 10**6, weight=1000))
    policy.start("A/0")
    policy.serve(decode(A__0=1))
    assert policy.clock.value < 1 == policy.tag("A")
    policy.leave("A")
    assert (len(policy.clock), policy.clock.active) == (2, 2)
    policy._check()


def test_stages_run_and_give_way_on_their_own() -> None:
    policy = pampering(tags="stage")
    policy.arrive(agent("A", 60, stage_costs=(10, 50)))
    policy.submit(inference("A/late", stage=1))
    policy.submit(inference("A/early"))
    policy.arrive(agent("B", 20))
    policy.submit(inference("B/0"))
    # The stage that came first has the first tag, 50; the other 60.
    assert line(policy) == ["B/0", "A/late", "A/early"]
    for name in ("A/early", "A/late", "B/0"):
        policy.start(name)
        policy._check()
    assert victims(policy) == ["A/early", "A/late", "B/0"]
    policy.requeue("A/early")
    policy.requeue("A/late")
    policy._check()
    assert line(policy) == ["A/late", "A/early"]


# Lines of one's own -----------------------------------------------------------


class ByCostPerStage(AgentOrder):
    """Stages of all agents, cheap agents first; costs that are revised move them."""

    by_stage = True

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (account.cost * (stage + 1),)


def test_a_revision_moves_every_stage_that_waits() -> None:
    policy = queue(ByCostPerStage(), agent("A", 10), agent("B", 25))
    policy.submit(inference("A/1", stage=1))
    policy.submit(inference("A/2", stage=2))
    assert line(policy) == ["A/0", "A/1", "B/0", "A/2"]
    policy.revise("A", 30)
    policy._check()
    assert line(policy) == ["B/0", "A/0", "A/1", "A/2"]
    policy.revise("A", 1)
    policy._check()
    assert line(policy) == ["A/0", "A/1", "A/2", "B/0"]


# A walk that is interrupted ---------------------------------------------------


def interrupted(policy: Policy, verb: str, *arguments: Anything) -> None:
    """Walk the line up to its first, call a verb, and see the walk end."""
    walk = policy.order()
    next(walk)
    getattr(policy, verb)(*arguments)
    with pytest.raises(RuntimeError, match="changed"):
        next(walk)


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_walk_notices_each_of_many_changes(variant: str) -> None:
    policy = queue(make(variant), agent("A", 50), agent("B", 60), runs=4)
    for index in (4, 5, 6):
        interrupted(policy, "submit", inference(f"A/{index}"))
    for index in (0, 1, 2):
        interrupted(policy, "start", f"A/{index}")
    for index in (0, 1, 2):
        interrupted(policy, "requeue", f"A/{index}")
    for index in (0, 1, 2):
        interrupted(policy, "finish", f"A/{index}")
    policy._check()


@pytest.mark.parametrize("variant", ["agent-fcfs", "srjf", "justitia", "justitia-c"])
def test_a_walk_notices_revisions(variant: str) -> None:
    policy = queue(make(variant), agent("A", 50), agent("B", 60))
    for cost in (70, 40, 80, 30, 90):
        interrupted(policy, "revise", "A", cost)
    policy._check()


@pytest.mark.parametrize("variant", ["srjf", "vtc"])
def test_a_walk_notices_service_that_changes_the_order(variant: str) -> None:
    policy = queue(make(variant), agent("A", 5000), agent("B", 6000), runs=3)
    policy.start("A/0")
    for _ in range(4):
        interrupted(policy, "serve", decode(A__0=1))
    policy._check()


# The clock --------------------------------------------------------------------


def test_a_weight_is_one_unless_said_otherwise() -> None:
    clock = VirtualClock()
    assert clock.arrive("A", 30) == 30
    assert clock.arrive("B", 30, 2) == 15
    assert clock.weight == 3
    assert type(clock.weight) is int
    assert agent("a").weight == 1
