"""What the paper of the virtual token counter promises, and our copy of it does."""

import csv
from collections import Counter, deque
from copy import deepcopy
from fractions import Fraction
from itertools import combinations
from pathlib import Path

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


# The line, walked lazily ----------------------------------------------------------


@given(
    prompts=st.lists(
        st.lists(st.integers(0, 9), min_size=1, max_size=4), min_size=1, max_size=6
    ),
    events=st.lists(
        st.tuples(
            st.sampled_from(["start", "serve", "back", "end"]), st.integers(0, 9)
        ),
        max_size=20,
    ),
    weights=st.lists(st.sampled_from([1, 2, Fraction(1, 3)]), min_size=6, max_size=6),
)
def test_the_line_is_what_pop_gives_however_outdated_it_is(
    prompts: list[list[int]], events: list[tuple[str, int]], weights: list[Fraction]
) -> None:
    """A walk takes agents from a line in which their counters are old ones."""
    policy = create("vtc")
    for number, (sizes, weight) in enumerate(zip(prompts, weights, strict=False)):
        policy.arrive(agent(f"{number}", weight=weight))
        for index, p in enumerate(sizes):
            policy.submit(Inference(f"{number}/{index}", f"{number}", p, 5))
    for what, index in events:
        waiting = [item.id for item in policy.order()]
        running = [item.id for item in policy.victims()]
        if what == "start" and waiting:
            policy.start(waiting[index % len(waiting)])
        elif what == "serve":
            policy.serve(Step(decode=dict.fromkeys(running, 1 + index % 3)))
        elif what == "back" and running:
            policy.requeue(running[index % len(running)])
        elif what == "end" and running:
            policy.finish(running[index % len(running)])
        assert line(policy) == drain(deepcopy(policy))


def test_a_look_at_the_head_does_not_disturb_a_walk() -> None:
    policy = queue("vtc", agent("A"), agent("B"), agent("C"), runs=3, p=5)
    policy.start("A/0")
    policy.serve(decode(A__0=3))
    walk, ids = policy.order(), []
    for item in walk:
        assert policy.peek() is not None
        ids.append(item.id)
    assert ids == line(policy)


# Its own trace --------------------------------------------------------------------

TRACE = Path(__file__).parents[2].parent / "shared" / "data" / "vtc" / "real_trace.csv"


def test_on_its_own_trace_the_backlogged_get_the_same_service() -> None:
    """Agents that were backlogged together for a while were served alike meanwhile.

    The paper's bound for any such while, 2 max(w_p L, w_q M): L the longest prompt, and
    M the tokens in a batch at most.
    """
    slots = 8  # so that most agents are backlogged most of the time
    if not TRACE.is_file():
        pytest.skip("VTC's trace is not beside this checkout")
    with TRACE.open(newline="") as file:
        rows = list(csv.DictReader(file))
    calls = [
        Inference(
            r["req_id"], r["adapter_dir"], int(r["prompt_len"]), int(r["output_len"])
        )
        for r in rows
    ]
    policy = create("vtc")
    for who in sorted({call.agent for call in calls}):
        policy.arrive(agent(who))
    coming = deque(zip((float(r["req_time"]) for r in rows), calls, strict=True))
    left: dict[str, int] = {}
    waiting: Counter[str] = Counter()
    service: Counter[str] = Counter()
    since: dict[tuple[str, str], int] = {}  # service apart when both began to wait
    now, worst, held = 0.0, 0, 0
    while coming or left or waiting.total():
        while coming and coming[0][0] <= now:
            call = coming.popleft()[1]
            policy.submit(call)
            waiting[call.agent] += 1
        while len(left) < slots and (head := policy.pop()) is not None:
            waiting[head.agent] -= 1
            left[head.id] = head.decode_tokens
            service[head.agent] += head.prompt_tokens
        batch = [(calls[int(name)], more) for name, more in left.items()]
        held = max(
            held, sum(c.prompt_tokens + c.decode_tokens - more + 1 for c, more in batch)
        )
        policy.serve(Step(decode=dict.fromkeys(left, 1)))
        for name in list(left):
            service[rows[int(name)]["adapter_dir"]] += 2
            left[name] -= 1
            if left[name] <= 0:
                del left[name]
                policy.finish(name)
        now += 0.05
        backlogged = sorted(who for who, count in waiting.items() if count)
        pairs = set(combinations(backlogged, 2))
        since = {pair: since[pair] for pair in since if pair in pairs}
        for one, other in pairs:
            apart = service[one] - service[other]
            worst = max(worst, abs(apart - since.setdefault((one, other), apart)))
    assert 0 < worst <= 2 * max(*(call.prompt_tokens for call in calls), 2 * held)
