"""What the paper of the virtual token counter promises, and our copy of it does."""

from copy import deepcopy
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy import Inference, Policy, Step, create
from justitia.policy.vtc import VTC
from tests.policy.builders import agent, decode, drain, inference, line, queue


def counters(policy: Policy) -> dict[str, object]:
    assert isinstance(policy, VTC)
    return {n: a.counter for n, a in policy._accounts.items()}  # type: ignore[attr-defined]


@given(
    sizes=st.lists(
        st.tuples(st.integers(1, 20), st.integers(1, 8)), min_size=4, max_size=12
    ),
    slots=st.integers(1, 4),
    weight=st.sampled_from([1, 2, Fraction(1, 3)]),
)
def test_backlogged_agents_get_the_same_service(
    sizes: list[tuple[int, int]], slots: int, weight: Fraction
) -> None:
    """Theorem of the paper: no further apart than 2 max(prompt charge, a batch's)."""
    policy = create("vtc")
    policy.arrive(agent("A", weight=weight))
    policy.arrive(agent("B", weight=weight))
    for number in range(40):
        p, d = sizes[number % len(sizes)]
        policy.submit(Inference(f"A/{number}", "A", p, d))
        policy.submit(Inference(f"B/{number}", "B", 21 - p, 9 - d))
    bound = 2 * max(20, 2 * slots * 8)
    left: dict[str, int] = {}
    service = {"A": Fraction(0), "B": Fraction(0)}
    waiting = {"A": 40, "B": 40}
    while all(waiting.values()):
        while len(left) < slots and (head := policy.pop()) is not None:
            waiting[head.agent] -= 1
            left[head.id] = head.decode_tokens
            service[head.agent] += head.prompt_tokens
        policy.serve(Step(decode=dict.fromkeys(left, 1)))
        for name in list(left):
            service[name[0]] += 2
            left[name] -= 1
            if not left[name]:
                del left[name]
                policy.finish(name)
        assert abs(service["A"] - service["B"]) <= bound
        assert counters(policy) == {n: s / weight for n, s in service.items()}


def test_a_heavier_agent_gets_more() -> None:
    policy = queue("vtc", agent("A", weight=3), agent("B"), runs=8, p=6)
    assert line(policy)[:8] == [
        "A/0", "B/0", "A/1", "A/2", "A/3", "B/1", "A/4", "A/5"
    ]  # fmt: skip


def test_the_line_knows_that_a_start_costs() -> None:
    policy = queue("vtc", agent("A"), agent("B"), runs=3, p=5)
    assert line(policy) == ["A/0", "B/0", "A/1", "B/1", "A/2", "B/2"]
    policy.start("B/2")
    assert line(policy) == ["A/0", "A/1", "B/0", "A/2", "B/1"]


def test_prompts_and_tokens_have_prices() -> None:
    policy = queue(create("vtc", prompt_price=3, decode_price=5), agent("A"), p=7)
    policy.pop()
    assert counters(policy) == {"A": 21}
    policy.serve(Step({"A/0": 7}, {"A/0": 2}))
    assert counters(policy) == {"A": 31}
    policy.serve(Step({"A/0": 7}))
    assert counters(policy) == {"A": 31}
    policy.finish("A/0")
    assert counters(policy) == {"A": 31}


def test_a_newcomer_is_lifted_to_the_least_of_the_waiting() -> None:
    policy = queue("vtc", agent("A"), agent("B"), runs=4, p=10)
    for name in ("A/0", "A/1", "B/0"):
        policy.start(name)
    queue(policy, agent("C"), runs=2, p=10)
    assert counters(policy) == {"A": 20, "B": 10, "C": 10}
    assert line(policy)[:3] == ["B/1", "C/0", "A/2"]


def test_one_that_was_away_saved_nothing_up() -> None:
    policy = queue("vtc", agent("A"), p=1)
    policy.pop()
    queue(policy, agent("B"), runs=9, p=10)
    for _ in range(4):
        policy.pop()
    policy.finish("A/0")
    assert counters(policy) == {"A": 1, "B": 41}  # lifted to A's 1 at first
    policy.submit(inference("A/1"))
    policy.submit(inference("A/2"))  # lifted once
    assert counters(policy) == {"A": 41, "B": 41}


def test_a_lift_never_lowers() -> None:
    policy = queue("vtc", agent("A"), agent("B"), runs=2, p=10)
    policy.start("A/0")
    policy.start("A/1")
    policy.submit(inference("A/2"))
    assert counters(policy) == {"A": 20, "B": 0}


def test_into_an_empty_line_one_comes_at_the_counter_of_the_last_that_left() -> None:
    policy = queue("vtc", agent("A"), agent("B"), p=10)
    assert drain(policy) == ["A/0", "B/0"]
    policy.serve(decode(A__0=50, B__0=1))
    queue(policy, agent("C"))
    assert counters(policy) == {"A": 110, "B": 12, "C": 12}
    # Whoever it was may have left for good.
    empty = queue("vtc", agent("A"), p=10)
    empty.pop()
    empty.leave("A")
    queue(empty, agent("B"))
    assert counters(empty) == {"B": 10}
    first = queue("vtc", agent("A"))
    assert counters(first) == {"A": 0}


def test_a_lift_sees_counters_that_have_just_grown() -> None:
    policy = queue("vtc", agent("A"), agent("B"), runs=2, p=10)
    policy.start("A/0")
    policy.start("B/0")
    policy.serve(decode(A__0=9, B__0=5))
    queue(policy, agent("C"))
    assert counters(policy) == {"A": 28, "B": 20, "C": 20}


def test_a_start_that_was_not_served_is_taken_back() -> None:
    policy = queue("vtc", agent("A"), agent("B"), p=10)
    before = line(policy)
    policy.start("A/0")
    policy.requeue("A/0")
    assert (line(policy), counters(policy)) == (before, {"A": 0, "B": 0})
    policy.start("A/0")
    policy.serve(Step({"A/0": 1}))
    policy.requeue("A/0")
    assert counters(policy) == {"A": 10, "B": 0}
    policy.start("A/0")  # charged once in its life
    policy.requeue("A/0")
    assert counters(policy) == {"A": 10, "B": 0}


@given(
    st.lists(st.integers(0, 5), min_size=1, max_size=12),
    st.floats(0.01, 100),
    st.floats(0.01, 100),
)
def test_what_is_taken_back_leaves_nothing_behind_in_floats(
    order: list[int], weight: float, price: float
) -> None:
    policy = create("vtc", prompt_price=price)
    queue(policy, agent("A", weight=weight), runs=6, p=7)
    running: list[str] = []
    for index in order:
        name = f"A/{index}"
        if name in running:
            policy.requeue(name)
            running.remove(name)
        else:
            policy.start(name)
            running.append(name)
        policy._check()
    for name in running:
        policy.requeue(name)
    assert counters(policy) == {"A": 0}
    assert line(policy) == [f"A/{n}" for n in range(6)]


def test_counters_stay_bounded_with_any_weights() -> None:
    policy = create("vtc")
    primes = [
        p for p in range(2, 4000) if all(p % q for q in range(2, int(p**0.5) + 1))
    ]
    for number, prime in enumerate(primes):
        name = f"{number}"
        policy.arrive(agent(name, weight=Fraction(prime, 3)))
        policy.submit(Inference(f"{name}/0", name, 1, 1))
        policy.submit(Inference(f"{name}/1", name, 1, 1))
        policy.start(f"{name}/0")
        if number:
            policy.leave(f"{number - 1}")
    counter = max(counters(policy).values())  # type: ignore[type-var]
    assert isinstance(counter, Fraction)
    assert 1000 < counter.denominator.bit_length() <= 4096 + 128


@pytest.mark.parametrize("starts", range(4))
def test_the_line_after_some_starts(starts: int) -> None:
    policy = queue("vtc", agent("A"), agent("B", weight=2), agent("C"), runs=4, p=3)
    for _ in range(starts):
        policy.pop()
    twin = deepcopy(policy)
    assert line(policy) == drain(twin)
