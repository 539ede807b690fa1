"""FairServe: what a call costs, who is lifted, who is throttled, and when."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy import Inference, Policy, PolicyError, Step, create
from justitia.policy.fairserve import MOST_KINDS, FairServe
from tests.policy.builders import (
    NOT_COUNTS,
    NOT_POSITIVE,
    NOT_WORK,
    Anything,
    agent,
    drain,
    inference,
    label,
    line,
    queue,
)


def fairserve(**options: Anything) -> FairServe:
    """Make one with small limits: two calls of an agent, five of a kind, in 10 s."""
    given = {"user_limit": 2, "app_limit": 5, "window": 10, **options}
    policy = create("fairserve", **given)
    assert isinstance(policy, FairServe)
    return policy


def counters(policy: Policy) -> dict[str, object]:
    assert isinstance(policy, FairServe)
    return {n: a.counter for n, a in policy._accounts.items()}  # type: ignore[attr-defined]


def done(policy: Policy, name: str, produced: int = 2) -> None:
    """Let a call run to its end."""
    prompt = policy.start(name).prompt_tokens
    policy.serve(Step({name: prompt}, {name: produced}))
    assert policy.finish(name)
    policy._check()


# What a call costs ----------------------------------------------------------------


@given(
    kinds=st.dictionaries(
        st.text(max_size=3),
        st.lists(st.tuples(st.integers(1, 99), st.integers(1, 99)), min_size=1),
        min_size=1,
        max_size=4,
    ),
    copies=st.integers(1, 3),
)
def test_a_usual_agent_of_any_kind_costs_as_many_as_it_has_calls(
    kinds: dict[str, list[tuple[int, int]]], copies: int
) -> None:
    """Each stage of a kind has a length of its own, and its calls have all that."""
    policy = create("fairserve")
    for copy in range(copies):
        for number, (kind, stages) in enumerate(kinds.items()):
            name = f"{number}-{copy}"
            policy.arrive(agent(name, kind=kind))
            before = counters(policy)[name]
            for stage, (p, d) in enumerate(stages):
                call = f"{name}/{stage}"
                policy.submit(Inference(call, name, p, d, stage))
                if not stage:
                    before = counters(policy)[name]
                done(policy, call, d)
            assert counters(policy)[name] == before + len(stages)  # type: ignore[operator]


def test_a_call_costs_what_it_is_over_what_is_usual() -> None:
    policy = queue(fairserve(), agent("A", kind="k"), p=10)
    done(policy, "A/0", 5)  # work 20, the first of its kind: 1
    queue(policy, agent("B", kind="k"), p=20)
    done(policy, "B/0", 20)  # work 60, where 40 is usual by now
    queue(policy, agent("C", kind="other"), p=999)
    done(policy, "C/0", 1)
    assert counters(policy) == {
        "A": 1, "B": 1 + Fraction(3, 2), "C": 1 + Fraction(3, 2) + 1
    }  # fmt: skip


def test_tokens_have_weights_and_so_have_agents() -> None:
    policy = fairserve(prompt_weight=3, decode_weight=Fraction(1, 2))
    queue(policy, agent("A", kind="k"), p=10)
    done(policy, "A/0", 20)  # 40
    queue(policy, agent("B", kind="k", weight=4), p=20)
    done(policy, "B/0", 40)  # 80 of 60
    assert counters(policy) == {"A": 1, "B": 1 + Fraction(80, 60) / 4}


def test_a_call_is_charged_when_it_ends_and_for_what_it_was_served() -> None:
    policy = queue(fairserve(), agent("A"), runs=4, p=10)
    queue(policy, agent("B"), p=10)
    for number in range(4):
        policy.start(f"A/{number}")
    policy.serve(Step({"A/0": 10, "A/1": 5}, {"A/0": 5}))
    assert counters(policy) == {"A": 0, "B": 0}
    policy.requeue("A/0")
    policy.start("A/0")
    policy.serve(Step({"A/0": 15}))  # computed again, paid once
    policy.finish("A/0")
    assert counters(policy)["A"] == 1
    policy.finish("A/1")  # its prompt only: 10, and 15 is usual now
    assert counters(policy)["A"] == 1 + Fraction(2, 3)
    policy.finish("A/2")  # never in a step
    policy.finish("A/3")
    assert counters(policy)["A"] == 1 + Fraction(2, 3)
    assert line(policy) == ["B/0"]


# Who goes first -------------------------------------------------------------------


def test_the_least_counter_first_and_of_equal_ones_who_has_begun() -> None:
    policy = queue(create("fairserve"), agent("A"), agent("B"), agent("C"), runs=3)
    assert line(policy)[0] == "A/0"
    policy.start("B/0")
    assert line(policy)[0] == "B/1"
    policy.serve(Step({"B/0": 3}, {"B/0": 1}))
    policy.requeue("B/0")
    assert line(policy)[:3] == ["B/0", "B/1", "B/2"]  # it was served: it has begun
    done(policy, "B/0")
    assert line(policy)[:3] == ["A/0", "A/1", "A/2"]
    assert line(policy)[-2:] == ["B/1", "B/2"]


def test_one_that_was_away_saved_nothing_up() -> None:
    policy = queue(create("fairserve"), agent("A"))
    policy.start("A/0")
    queue(policy, agent("B"), runs=9)
    for number in range(5):
        done(policy, f"B/{number}")
    assert counters(policy) == {"A": 0, "B": 5}
    policy.submit(inference("A/1"))
    policy.submit(inference("A/2"))
    assert counters(policy) == {"A": 5, "B": 5}
    queue(policy, agent("C"))
    assert counters(policy)["C"] == 5
    policy.leave("C")
    drain(policy)
    queue(policy, agent("D"))  # nobody waits: as the last that left the line
    assert counters(policy)["D"] == 5


def test_a_lift_never_lowers_nor_lifts_who_is_there() -> None:
    policy = queue(create("fairserve"), agent("A"), agent("B"), runs=2)
    done(policy, "A/0")
    policy.submit(inference("B/9"))
    policy.submit(inference("A/9"))
    assert counters(policy) == {"A": 1, "B": 0}


# Who is throttled -----------------------------------------------------------------


def crowded(**options: Anything) -> FairServe:
    """Let A and B wait, A with a call more than its limit, and C run."""
    policy = fairserve(**options)
    queue(policy, agent("C", kind="c"), p=9)
    policy.start("C/0")
    queue(policy, agent("A", kind="a"), runs=3)
    queue(policy, agent("B", kind="b"), runs=2)
    return policy


FREE = ["A/0", "A/1", "A/2", "B/0", "B/1"]
HELD = ["B/0", "B/1", "A/0", "A/1", "A/2"]


def test_nobody_is_throttled_while_there_is_room() -> None:
    policy = crowded()
    assert line(policy) == FREE
    policy.refuse("A/0")
    assert line(policy) == HELD


def test_nobody_is_throttled_within_the_limits() -> None:
    policy = crowded(user_limit=3)
    policy.refuse("A/0")
    assert line(policy) == FREE
    policy.submit(inference("A/3"))
    assert line(policy) == [*HELD, "A/3"]


def test_no_limit_is_none() -> None:
    policy = crowded(user_limit=None, app_limit=None)
    policy.refuse("A/0")
    assert line(policy) == FREE


@pytest.mark.parametrize("served", [False, True])
def test_nobody_is_throttled_in_the_middle_of_an_interaction(served: bool) -> None:
    policy = crowded()
    policy.refuse("A/0")
    policy.start("A/1")
    assert line(policy) == ["A/0", "A/2", "B/0", "B/1"]
    if served:
        policy.serve(Step({"A/1": 1}))
    policy.requeue("A/1")
    assert line(policy) == (FREE if served else HELD)


def test_what_has_begun_stays_so_when_its_call_has_ended() -> None:
    policy = crowded()
    policy.refuse("A/0")
    done(policy, "A/0")
    policy.refuse("B/0")
    assert counters(policy)["A"] == 1
    policy.submit(inference("A/3"))
    done(policy, "B/0")
    assert line(policy) == ["A/1", "A/2", "A/3", "B/1"]  # by counter and arrival


def test_too_many_calls_of_a_kind_throttle_all_of_it_that_have_not_begun() -> None:
    policy = fairserve(user_limit=None)
    queue(policy, *(agent(name, kind="k") for name in "ABC"), runs=2)
    queue(policy, agent("D", kind="other"))
    policy.start("B/0")
    policy.refuse("B/1")
    assert line(policy) == ["B/1", "D/0", "A/0", "A/1", "C/0", "C/1"]
    queue(policy, agent("E", kind="k"))
    queue(policy, agent("F", kind="third"))
    assert line(policy)[:3] == ["B/1", "D/0", "F/0"]
    assert line(policy)[-1] == "E/0"


def test_the_call_that_passes_a_kinds_limit_throttles_those_that_came_before() -> None:
    policy = fairserve(user_limit=None)
    queue(policy, agent("A", kind="k"), runs=5)
    queue(policy, agent("B", kind="other"))
    policy.refuse("A/0")
    assert line(policy)[0] == "A/0"
    queue(policy, agent("C", kind="k"))
    assert line(policy) == ["B/0", *(f"A/{n}" for n in range(5)), "C/0"]


def test_the_overload_is_over_after_a_while_without_a_refusal() -> None:
    policy = crowded(overload_seconds=2)
    policy.refuse("A/0")
    policy.advance(Fraction(3, 2))
    policy.refuse("B/0")
    policy.advance(Fraction(3, 2))
    assert line(policy) == HELD
    policy.advance(Fraction(1, 2))
    assert line(policy) == FREE
    policy.submit(inference("A/7"))
    assert line(policy) == ["A/0", "A/1", "A/2", "A/7", "B/0", "B/1"]


def test_calls_leave_the_window() -> None:
    policy = fairserve(overload_seconds=100)
    queue(policy, agent("A"), runs=2)
    policy.advance(4)
    queue(policy, agent("B"))
    policy.submit(inference("A/2"))
    policy.refuse("A/0")
    assert line(policy) == ["B/0", "A/0", "A/1", "A/2"]
    policy.advance(Fraction(599, 100))
    assert line(policy)[0] == "B/0"
    policy.advance(Fraction(1, 100))  # ten seconds old is no more in the last ten
    assert line(policy) == ["A/0", "A/1", "A/2", "B/0"]


def test_where_only_throttled_ones_wait_they_may_start() -> None:
    """With room for one the engine is not overloaded."""
    policy = queue(fairserve(), agent("A"), runs=3)
    policy.refuse("A/0")
    assert line(policy) == ["A/0", "A/1", "A/2"]


def test_who_has_no_kind_left_in_memory_is_counted_anew() -> None:
    policy = fairserve(user_limit=None, app_limit=2)
    queue(policy, agent("A", kind="k"), runs=2)
    for number in range(MOST_KINDS + 10):
        queue(policy, agent("Z", kind=f"{number}"), p=number + 1)
        done(policy, "Z/0")
        policy.leave("Z")
    queue(policy, agent("B", kind="k"))
    policy.refuse("A/0")
    assert line(policy)[0] == "A/0"
    policy.submit(inference("A/2"))
    assert line(policy)[0] == "B/0"
    policy._check()


def test_the_kinds_that_came_last_are_remembered() -> None:
    """What is usual of one that comes again and again is known however many others."""
    told = []
    for others in (1, MOST_KINDS - 1):
        policy = fairserve()
        for kind, p in [("k", 10), *[(f"{n}", 7) for n in range(others)], ("k", 30)]:
            queue(policy, agent("Z", kind=kind), p=p)
            done(policy, "Z/0")
            policy.leave("Z")
        for kind, p in [("one more", 7), ("k", 80)]:
            queue(policy, agent("Z", kind=kind), p=p)
            user = policy._accounts["Z"]
            before = user.counter  # type: ignore[attr-defined]
            done(policy, "Z/0")
            told.append(user.counter - before)  # type: ignore[attr-defined]
            policy.leave("Z")
    assert told[:2] == told[2:]
    assert told[1] != 1  # it is not usual


# Settings -------------------------------------------------------------------------


@pytest.mark.parametrize("bad", NOT_WORK, ids=label)
@pytest.mark.parametrize("option", ["prompt_weight", "decode_weight"])
def test_weights_that_are_refused(option: str, bad: Anything) -> None:
    with pytest.raises(PolicyError, match=option):
        fairserve(**{option: bad})


def test_one_of_the_weights_may_be_nothing() -> None:
    fairserve(prompt_weight=0)
    fairserve(decode_weight=0)
    with pytest.raises(PolicyError, match="must not both be 0"):
        fairserve(prompt_weight=0, decode_weight=0)


@pytest.mark.parametrize("bad", NOT_POSITIVE, ids=label)
@pytest.mark.parametrize("option", ["window", "overload_seconds"])
def test_seconds_that_are_refused(option: str, bad: Anything) -> None:
    with pytest.raises(PolicyError, match=option):
        fairserve(**{option: bad})


@pytest.mark.parametrize("option", ["user_limit", "app_limit"])
def test_limits_that_are_refused(option: str) -> None:
    for bad in (*NOT_COUNTS, 0, 10**6 + 1):
        if bad is not None:
            with pytest.raises(PolicyError, match=option):
                fairserve(**{option: bad})
    with pytest.raises(PolicyError, match=r"from 1 to 1,000,000, or None, not 0"):
        fairserve(**{option: 0})
    fairserve(**{option: 1})
    fairserve(**{option: 10**6})
