"""What a watched policy counts, and that it stays the policy that it watches."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.serving.watch import (
    MOST_KINDS,
    MOST_STARTS,
    OTHER,
    Histogram,
    MeteredClock,
    Watched,
)
from justitia.policy import Agent, Inference, Policy, Step, create, names
from justitia.policy.exact import Exact


class Time:
    """A clock that is set."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def watched(name: str = "justitia", **options: object) -> tuple[Watched, Time]:
    time = Time()
    return Watched(create(name, **options), now=time), time


def enter(
    policy: Policy, agent: str, cost: int, requests: int = 1, kind: str = ""
) -> None:
    policy.arrive(Agent(agent, cost, kind=kind))
    for number in range(requests):
        policy.submit(Inference(f"{agent}/{number}", agent, 10, 5))


def run(policy: Policy, request: str, tokens: int = 5) -> None:
    policy.start(request)
    policy.serve(Step({request: 10}, {request: tokens}))
    policy.finish(request)


# The histogram ----------------------------------------------------------------------


def test_a_value_on_a_bound_is_in_its_bucket() -> None:
    histogram = Histogram((1, 2))
    for value in (0.5, 1, 1.5, 2, 3):
        histogram.observe(value)
    assert histogram.told() == {"bounds": (1, 2), "counts": [2, 2, 1], "sum": 8.0}


# The clock ---------------------------------------------------------------------------


def sums(clock: MeteredClock) -> tuple[float, float]:
    clock._check()
    return clock.slack.total, clock.lag.total


def test_slack_is_told_when_the_reference_has_finished_the_agent() -> None:
    clock = MeteredClock()
    clock.arrive("A", 100)
    clock.arrive("B", 30)
    clock.arrive("C", 60)
    clock.started("B")
    clock.serve(10)
    clock.started("B")
    assert sums(clock) == (0, 0)
    clock.serve(140)  # B is through when each of three has 30
    assert sums(clock) == (90 + 80, 0)
    clock.started("B")
    assert sums(clock) == (170, 150 - 90)
    clock.started("C")  # which has just been finished
    assert sums(clock) == (170, 60)
    assert sum(clock.slack.counts) == 3


def test_an_agent_that_grows_again_has_slack_again() -> None:
    clock = MeteredClock()
    clock.arrive("A", 10)
    clock.serve(25)  # 15 of it for nobody
    clock.started("A")
    assert sums(clock) == (0, 15)
    clock.revise("A", 40)
    clock.started("A")
    clock.serve(7)
    clock.revise("A", 11)  # which it has had
    assert sums(clock) == (7, 15)
    clock.started("A")
    clock.serve(3)
    clock.started("A")
    assert sums(clock) == (7, 18)


def test_of_an_agent_that_leaves_the_slack_so_far_counts() -> None:
    clock = MeteredClock()
    clock.arrive("A", 100)
    clock.started("A")
    clock.serve(20)
    clock.leave("A")
    assert sums(clock) == (20, 0)
    assert not clock.leave("A")
    clock.started("A")  # of whom it knows nothing
    assert sums(clock) == (20, 0)


@given(
    st.lists(
        st.tuples(st.integers(1, 50), st.integers(1, 4), st.integers(0, 60)),
        min_size=1,
        max_size=12,
    )
)
def test_every_start_is_counted_once_and_truly(
    agents: list[tuple[int, int, int]],
) -> None:
    clock, starts, goals = MeteredClock(), [], dict[object, Exact]()
    delivered = 0
    for number, (cost, weight, work) in enumerate(agents):
        clock.arrive(number, cost, weight)
        for agent in range(number + 1):
            clock.started(agent)
            starts.append((agent, delivered))
        for agent_, at in clock.serve(work):
            goals[agent_] = delivered + at
        delivered += work
        clock._check()
    for agent_, at in clock.serve(10**6):
        goals[agent_] = delivered + at
    lags = [float(at - goals[agent]) for agent, at in starts]
    assert clock.lag.total == pytest.approx(sum(max(0, lag) for lag in lags))
    assert clock.slack.total == pytest.approx(sum(max(0, -lag) for lag in lags))
    assert clock.lag.largest == pytest.approx(max(0, *lags))
    assert sum(clock.lag.counts) == sum(lag > 0 for lag in lags)
    assert sum(clock.slack.counts) == sum(lag <= 0 for lag in lags)


def test_an_agent_of_endless_starts_takes_no_endless_memory() -> None:
    clock = MeteredClock()
    clock.arrive("A", 10**9)
    for _ in range(MOST_STARTS + 5):
        clock.started("A")
    clock._check()
    assert clock.unmeasured == 5
    clock.serve(10**9)
    assert sum(clock.slack.counts) == MOST_STARTS


def test_enormous_costs_have_finite_sums() -> None:
    clock = MeteredClock()
    clock.arrive("A", 1e150, 1e-150)
    clock.arrive("B", 1e150, 1e-149)
    clock.started("A")
    clock.serve(Fraction(1, 3))
    for _ in range(3):
        clock.serve(1e150)
        clock.started("B")
    assert sums(clock) == (1e18, 2e18)


# The policy -------------------------------------------------------------------------


def counts(policy: Watched) -> tuple[int, int]:
    assert policy.clock is not None
    policy._check()
    policy.clock._check()
    return sum(policy.clock.slack.counts), sum(policy.clock.lag.counts)


def test_first_starts_are_early_or_late() -> None:
    policy, _ = watched()
    enter(policy, "agent/long", 1000, requests=2)
    enter(policy, "agent/short", 65)
    run(policy, "agent/short/0", tokens=5)
    run(policy, "agent/long/0", tokens=9)  # by then both have had 65
    assert counts(policy) == (1, 0)
    assert policy.clock is not None
    assert policy.clock.slack.total == 130
    enter(policy, "agent/late", 1)
    run(policy, "agent/long/1", tokens=40)
    run(policy, "agent/late/0")
    assert counts(policy) == (3, 1)
    # The reference had finished it at 2 after its arrival.
    assert policy.clock.lag.total == 40 * 10 + 40 * 41 / 2 - 2


def test_what_is_put_back_in_the_same_step_did_not_start() -> None:
    policy, _ = watched()
    enter(policy, "a", 100)
    policy.start("a/0")
    policy.requeue("a/0")
    policy.serve(Step({}, {}))
    assert not policy.clock._starts  # type: ignore[union-attr]
    assert policy.preemptions == 0
    assert (policy.waiting, policy.running) == (1, 0)
    policy.start("a/0")
    policy.serve(Step({"a/0": 10}, {"a/0": 1}))
    assert policy.preemptions == 0
    policy.requeue("a/0")
    policy.start("a/0")
    policy.serve(Step({"a/0": 11}, {"a/0": 1}))
    assert policy.preemptions == 1
    assert (policy.waiting, policy.running) == (0, 1)
    policy.serve(Step({}, {"a/0": 10}))
    assert counts(policy) == (1, 0)  # not twice


def test_an_agent_completes_with_its_last_request_and_not_with_its_oblivion() -> None:
    policy, time = watched()
    enter(policy, "agent/a", 100, requests=2, kind="MRS")
    time.now = 3.0
    run(policy, "agent/a/0")
    time.now = 7.0
    run(policy, "agent/a/1")
    time.now = 67.0
    policy.leave("agent/a")
    assert policy.completions["MRS"].total == 7.0
    policy._check()


def test_who_is_sent_away_or_never_ran_has_not_completed() -> None:
    policy, _ = watched()
    enter(policy, "agent/a", 100, requests=2)
    run(policy, "agent/a/0")
    policy.leave("agent/a")  # with a request in line
    enter(policy, "agent/b", 100)
    policy.finish("agent/b/0")  # aborted in line
    policy.leave("agent/b")
    policy.arrive(Agent("agent/c", 1))
    policy.leave("agent/c")
    assert not policy.completions
    assert not policy.leave("agent/c")
    assert not policy.finish("agent/b/0")
    policy._check()


def test_kinds_are_bounded_b35() -> None:
    policy, _ = watched()
    for number in range(MOST_KINDS + 5):
        enter(policy, f"agent/{number}", 100, kind=f"kind {number}")
        run(policy, f"agent/{number}/0")
        policy.leave(f"agent/{number}")
    enter(policy, "agent/last", 100, kind="kind 0")
    run(policy, "agent/last/0")
    policy.leave("agent/last")
    assert len(policy.completions) == MOST_KINDS + 1
    assert sum(policy.completions[OTHER].counts) == 5
    assert sum(policy.completions["kind 0"].counts) == 2


def test_agents_without_a_kind_and_requests_without_an_agent_have_names() -> None:
    policy, _ = watched()
    for agent in ("agent/a", "request/1"):
        enter(policy, agent, 100)
        run(policy, f"{agent}/0")
        policy.leave(agent)
    assert set(policy.completions) == {"unnamed", "request"}


@pytest.mark.parametrize("name", names())
def test_a_watched_policy_orders_as_it_would_alone(name: str) -> None:
    alone = create(name)
    policy, _ = watched(name)
    heads: list[list[str]] = []
    for one in (alone, policy):
        for number in range(6):
            enter(one, f"a{number}", 300 - 40 * number, requests=3)
        mine = []
        while (head := one.peek()) is not None:
            assert next(one.order()) == head
            mine.append(head.id)
            run(one, head.id, tokens=1 + len(mine) % 5)
            one.advance(1)
            one._check()
        heads.append(mine)
    assert heads[0] == heads[1]
    assert (policy.name, policy.cost_model) == (alone.name, alone.cost_model)
    assert list(policy.victims()) == []


def test_a_policy_without_a_reference_has_no_slack() -> None:
    policy, _ = watched("fcfs")
    enter(policy, "a", 100)
    run(policy, "a/0")
    assert policy.clock is None


def test_with_a_tag_a_stage_it_is_the_stage_that_counts() -> None:
    policy, _ = watched("justitia", tags="stage")
    policy.arrive(Agent("a", 300, stage_costs=(100, 200)))
    policy.submit(Inference("a/0", "a", 10, 5))
    run(policy, "a/0", tokens=9)
    assert counts(policy) == (1, 0)
    policy.submit(Inference("a/1", "a", 10, 5, stage=1))
    run(policy, "a/1", tokens=15)
    assert policy.clock is not None
    assert counts(policy) == (2, 0)
    assert policy.clock.slack.total == 100 + 200


def test_nothing_is_kept_of_those_that_left() -> None:
    policy, _ = watched()
    for number in range(1_000):
        enter(policy, f"a{number}", 100, requests=2)
        if number % 3 == 0:
            run(policy, f"a{number}/0")
        if number % 3 == 1:
            policy.start(f"a{number}/1")
        policy.leave(f"a{number}")
    policy._check()
    assert policy.waiting == policy.running == 0
    kept = [len(getattr(policy, name)) for name in ("_lives", "_fresh", "_starting")]
    assert kept == [0, 0, 0]
    assert policy.clock is not None
    assert len(policy.clock) == 0
    policy.clock._check()


def test_the_rest_of_a_policy_is_in_reach() -> None:
    policy, _ = watched("justitia", tags="stage")
    assert policy.by_stage is True
    with pytest.raises(AttributeError):
        _ = policy.nothing_like_it
