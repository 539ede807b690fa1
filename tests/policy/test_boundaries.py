"""The edges: numbers just allowed, keys that are equal, the first, last and only."""

from collections.abc import Callable
from copy import copy
from fractions import Fraction
from typing import Any

import pytest

from justitia.policy import (
    COST_MODELS,
    Agent,
    Inference,
    Policy,
    SelectivePampering,
    Step,
    VirtualClock,
    create,
    exact,
)
from justitia.policy.exact import (
    DENOMINATOR_BITS,
    LARGEST,
    MOST_TOKENS,
    SMALLEST,
    advanced,
    exactly,
    quotient,
)
from justitia.policy.ledger import Account, Entry, Group
from justitia.policy.line import Line
from tests.policy.builders import (
    VARIANTS,
    Anything,
    ForeignInt,
    ForeignReal,
    agent,
    decode,
    inference,
    make,
    queue,
    victims,
)
from tests.policy.test_checks import books, entry

# Values -----------------------------------------------------------------------

VALUES = (
    Agent("a", 5),
    Agent("b", 5),
    Agent("a", 6),
    Agent("a", 5, 2),
    Agent("a", 5, 1, "k"),
    Agent("a", 5, 1, "", (5,)),
    Agent("a", 5, 1, "", (), 1),
    Inference("i", "a", 1, 2),
    Inference("j", "a", 1, 2),
    Inference("i", "b", 1, 2),
    Inference("i", "a", 2, 2),
    Inference("i", "a", 1, 1),
    Inference("i", "a", 1, 2, 1),
)


def test_values_that_differ_in_anything_have_hashes_of_their_own() -> None:
    assert len(set(VALUES)) == len(VALUES)
    assert len({hash(value) for value in VALUES}) == len(VALUES)
    for value in VALUES:
        assert value == value.__replace__()
        assert hash(value) == hash(value.__replace__())
        assert value != None  # noqa: E711 - __eq__ is what is tested
        assert value != value._values()


def test_cost_models_that_differ_have_hashes_of_their_own() -> None:
    models = [model() for model in COST_MODELS.values()]
    assert len({hash(model) for model in models}) == len(models)
    for model in models:
        assert hash(model) == hash(type(model)())
        assert model != None  # noqa: E711 - __eq__ is what is tested


def test_each_field_can_be_replaced_and_the_others_stay() -> None:
    whole = Agent("a", 5, 2, "k", (5,), 1)
    changes: dict[str, Anything] = {
        "id": "b", "cost": 6, "weight": 3, "kind": "l", "stage_costs": (6, 7),
        "inferences": 2,
    }  # fmt: skip
    for name, value in changes.items():
        changed = whole.__replace__(**{name: value})
        for field in Agent.__slots__:
            expected = value if field == name else getattr(whole, field)
            assert getattr(changed, field) == expected
    assert repr(whole) == (
        "Agent(id='a', cost=5, weight=2, kind='k', stage_costs=(5,), inferences=1)"
    )
    assert repr(Step({"i": 1})) == "Step(prefill={'i': 1}, decode={})"


# Numbers ----------------------------------------------------------------------


@pytest.mark.parametrize("count", [0, 1, MOST_TOKENS - 1, MOST_TOKENS])
def test_counts_that_are_just_allowed(count: int) -> None:
    assert Agent("a", 1, inferences=count).inferences == count
    foreign: Anything = ForeignInt(count)
    assert Agent("a", 1, inferences=foreign).inferences == count
    for made in (
        Inference("i", "a", count, count, count),
        Inference("i", "a", foreign, foreign, foreign),
    ):
        assert made._values() == ("i", "a", count, count, count)
    for name in ("fcfs", "justitia", "vtc"):
        policy = queue(name, agent("a"))
        policy.start("a/0")
        policy.serve(Step({"a/0": count}, {"a/0": count}))
        policy._check()


@pytest.mark.parametrize("size", [SMALLEST, LARGEST, Fraction(SMALLEST), int(LARGEST)])
def test_sizes_that_are_just_allowed(size: Anything) -> None:
    made = Agent("a", size, size, stage_costs=[size])
    assert (made.cost, made.weight, made.stage_costs) == (size, size, (size,))
    clock = VirtualClock()
    assert clock.arrive("A", size, size) == 1
    assert clock.revise("A", size) == 1
    create("justitia", clock="nominal", capacity=size, step_seconds=size)
    foreign: Anything = ForeignReal(float(size))
    assert Agent("a", foreign).cost == float(size)


@pytest.mark.parametrize("work", [0, 0.0, SMALLEST, 5e-324, LARGEST, int(LARGEST)])
def test_work_that_is_just_allowed(work: Anything) -> None:
    VirtualClock().serve(work)
    for price in ("prompt_price", "decode_price"):
        policy = queue(create("vtc", **{price: work}), agent("A"), p=1)
        policy.pop()
        policy.serve(decode(A__0=1))
        policy._check()


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("seconds", [LARGEST, -LARGEST, 0, -1, 5e-324])
def test_seconds_that_are_just_allowed(variant: str, seconds: Anything) -> None:
    policy = queue(make(variant), agent("A"))
    policy.advance(seconds)
    policy._check()


def test_growth_may_be_one() -> None:
    for growth in (1, 1.0, Fraction(1), 1.5):
        policy = queue(create("justitia", growth=growth), agent("A", 10), p=9)
        policy.start("A/0")
        policy.serve(decode(A__0=2))
        assert policy.tag("A") == max(10, 21 * growth)


# What stays exact, and what is rounded ----------------------------------------


def test_quotients_are_ints_where_they_come_out_even() -> None:
    cases: tuple[tuple[Anything, Anything, Anything], ...] = (
        (6, 3, 2), (0, 7, 0), (-6, 3, -2), (7, 2, Fraction(7, 2)), (7.0, 2, 3.5),
        (7, 2.0, 3.5), (Fraction(1, 2), 2, Fraction(1, 4)),
    )  # fmt: skip
    for work, weight, result in cases:
        assert quotient(work, weight) == result
        assert type(quotient(work, weight)) is type(result)


def test_exactly_gives_ints_and_fractions() -> None:
    cases: tuple[tuple[Anything, Anything], ...] = (
        (3, 3), (3.0, 3), (0.0, 0), (0.5, Fraction(1, 2)), (-0.25, Fraction(-1, 4)),
        (0.1, Fraction(3602879701896397, 2**55)), (Fraction(1, 3), Fraction(1, 3)),
        (1e150, int(1e150)),
    )  # fmt: skip
    for value, result in cases:
        assert exactly(value) == result
        assert type(exactly(value)) is type(result)


def test_denominators_of_just_the_limit_stay_exact() -> None:
    longest = 2**DENOMINATOR_BITS - 1
    assert longest.bit_length() == DENOMINATOR_BITS
    assert advanced(0, 1, longest) == Fraction(1, longest)
    assert advanced(5, 7, longest) == 5 + Fraction(7, longest)
    longer = 2**DENOMINATOR_BITS + 1
    assert advanced(0, 1, longer) < Fraction(1, longer)


LONG = Fraction(1, 11**1200)
"""Added to anything with another denominator, it makes that too long."""


@pytest.mark.parametrize(
    ("work", "weight", "bits"),
    [
        (5, 3, 64),  # more than 1: down to a multiple of 2**-64
        (10**30, 7, 64),
        (2, 3, 64),
        (1, 7**10, 64 + 28),  # of 29 bits: 64 bits behind its first
        (3, 7**10, 64 + 27),
        (-5, 3, 64),
        (-1, 7**10, 64 + 28),
    ],
)
def test_what_is_too_long_is_rounded_down_to_its_grain(
    work: int, weight: int, bits: int
) -> None:
    total = advanced(LONG, work, weight)
    grains = (total - LONG) * 2**bits
    truth = Fraction(work, weight) * 2**bits
    assert grains.denominator == 1
    assert grains <= truth < grains + 1
    assert grains != truth
    assert (total > LONG) == (work > 0)


def test_work_that_comes_out_even_reaches_a_tag_of_any_length(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact, "DENOMINATOR_BITS", 8)
    clock = VirtualClock()
    clock.arrive("B", 100, 2)
    tag = clock.arrive("A", 1, 729)
    assert Fraction(tag).denominator.bit_length() > 8
    clock.serve(Fraction(731, 10**4))
    assert 0 < clock.value < tag
    left = (tag - clock.value) * clock.weight
    assert clock.serve(left) == [("A", left)]
    assert clock.value == tag
    clock._check()


# The clock's heap -------------------------------------------------------------


def test_the_clock_sweeps_when_more_than_half_and_16_are_nobodys() -> None:
    clock = VirtualClock()
    clock.arrive("stays", 10**6)
    clock.arrive("moves", 10)
    heap = clock._heap
    for cost in range(11, 27):
        clock.revise("moves", cost)
    assert clock._heap is heap  # no sweep so far: each costs O(n)
    clock.leave("moves")
    assert clock._heap is heap
    assert len(heap) == 18 == 2 * clock.active + 16
    clock._check()
    clock.arrive("moves", 10)
    clock.revise("moves", 20)
    assert clock._heap is not heap
    assert len(clock._heap) == 2
    clock._check()
    assert clock.serve(10**7) == [("moves", 40), ("stays", 10**6 + 20)]


def three(*costs: int) -> VirtualClock:
    clock = VirtualClock()
    for name, cost in enumerate(costs):
        clock.arrive(name, cost)
    clock._check()
    return clock


def refused(check: Callable[[], None]) -> None:
    with pytest.raises(AssertionError):
        check()


def test_check_takes_any_heap_and_no_disorder() -> None:
    three(1, 2, 3, 4, 5, 6)
    three(1, 3, 2, 7, 8, 4, 5)
    clock = three(1, 2)
    clock._heap.reverse()
    refused(clock._check)
    clock = three(1, 2, 3, 4)  # the fourth below the second, its parent
    clock._heap[1], clock._heap[3] = clock._heap[3], clock._heap[1]
    refused(clock._check)
    clock = three(1, 2, 3, 4, 5, 6)  # the sixth below the third, its parent
    clock._heap[2], clock._heap[5] = clock._heap[5], clock._heap[2]
    refused(clock._check)


def test_check_counts_what_is_in_the_heap() -> None:
    for surplus, allowed in ((16, True), (17, False)):
        clock = three(1, 2)
        clock._heap += [clock._heap[1]] * (2 + surplus)
        assert len(clock._heap) == 2 * clock.active + surplus
        if allowed:
            clock._check()
        else:
            refused(clock._check)


@pytest.mark.parametrize("value", [float("inf"), float("nan"), -1, Fraction(-1, 9)])
def test_check_of_a_clock_with_nobody_in_it(value: Anything) -> None:
    clock = VirtualClock()
    clock._check()
    clock._value = value
    refused(clock._check)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("cost", 0),
        ("cost", -1),
        ("weight", 0),
        ("weight", -1),
        ("seq", -1),
        ("seq", 1),
        ("seq", 3),
        ("tag", 11),
        ("entry", ""),
        ("key", "Z"),
    ],
)
def test_check_of_one_that_has_departed(name: str, value: Anything) -> None:
    clock = three(1, 2, 30)
    clock.serve(7)
    assert (clock.active, clock._seq) == (1, 3)
    clock._check()
    member = clock._members[0]
    assert member.seq == 0
    setattr(member, name, value)
    refused(clock._check)


def test_check_of_numbers_taken_twice() -> None:
    clock = three(1, 2, 30)
    clock.serve(7)
    clock._members[1].seq = 0
    refused(clock._check)
    clock = three(1, 2)
    clock.serve(9)
    clock._members[1].seq = 2
    refused(clock._check)


def test_one_that_shrinks_to_what_it_has_had_departs() -> None:
    clock = three(10, 30)
    assert clock.serve(10) == []
    assert clock.revise(0, 5) == 5 == clock.value
    assert (clock.active, clock.weight) == (1, 1)
    clock._check()
    assert clock.serve(1) == []
    assert clock.value == 6


def test_costs_and_weights_below_one_are_nothing_special() -> None:
    clock = VirtualClock()
    clock.arrive("A", Fraction(1, 9), Fraction(1, 7))
    clock.arrive("B", 0.25, 0.125)
    clock._check()
    assert [who for who, _ in clock.serve(1)] == ["A", "B"]
    clock._check()
    for variant in VARIANTS:
        policy = queue(make(variant), agent("A", Fraction(1, 9)), agent("B", 0.25))
        policy._check()


# The line's heap --------------------------------------------------------------


def test_the_line_sweeps_when_more_than_half_and_16_are_nobodys() -> None:
    line = Line()
    line.push("fixed", (0, 0))
    heap = line._heap
    line.push("moves", (1, 0))
    for number in range(17):
        line.push("moves", (1, number))
    assert line._heap is heap  # no sweep so far: each costs O(n)
    line.discard("moves")
    assert line._heap is heap or len(line._heap) <= 18
    line._check()
    line = Line()
    line.push("fixed", (0, 0))
    heap = line._heap
    for number in range(17):
        line.push("moves", (1, number))
    line.discard("moves")
    assert line._heap is heap
    assert len(heap) == 18 == 2 * len(line) + 16
    line._check()
    line.push("moves", (1, 0))
    line.discard("moves")
    assert line._heap is not heap
    assert line._heap == [(0, 0, "fixed")]
    line._check()


def line_of(*keys: int) -> Line:
    line = Line()
    for name, key in enumerate(keys):
        line.push(f"item {name}", (5, key))
    line._check()
    return line


def swapped(line: Line, one: int, other: int) -> Line:
    heap = line._heap
    heap[one], heap[other] = heap[other], heap[one]
    return line


def test_check_of_lines() -> None:
    line_of()
    line_of(1)
    line_of(1, 2, 3, 4, 5, 6)
    line_of(1, 3, 2, 7, 8, 4, 5)
    refused(swapped(line_of(1, 2), 0, 1)._check)
    refused(swapped(line_of(1, 2, 3), 0, 1)._check)
    refused(swapped(line_of(1, 2, 3, 4), 1, 3)._check)
    refused(swapped(line_of(1, 2, 3, 4, 5, 6), 2, 5)._check)
    line = line_of(1, 2)
    for _ in range(3):
        line.push("item 1", (5, 2))  # where it is
        line._check()
    for surplus in (16, 17):
        line = line_of(1, 2)
        line._heap += [(9, 9, "nobody's")] * (2 + surplus)
        if surplus == 16:
            line._check()
        else:
            refused(line._check)


# Groups -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "order", [(1, 2, 3, 4), (4, 3, 2, 1), (1, 4, 2, 3), (2, 4, 3, 1), (3, 1, 4, 2)]
)
def test_a_group_is_in_order_of_submission(order: tuple[int, ...]) -> None:
    account = Account(agent("A"), 1)
    group = Group(account, 0)
    entries = {seq: Entry(inference(f"A/{seq}"), account, seq) for seq in order}
    for count, seq in enumerate(order, 1):
        group.add(entries[seq])
        group._check()
        there = sorted(order[:count])
        assert list(group.entries) == there
        assert list(group.entries.values()) == [entries[seq] for seq in there]
        assert group.first() is entries[there[0]]


# Books ------------------------------------------------------------------------


def replaced(policy: Anything, state: str, name: str) -> None:
    """Put another entry of the same inference in the place of one."""
    entries: dict[str, Entry] = getattr(policy, state)
    old = entries[name]
    new = Entry(old.inference, old.account, old.seq)
    for field in ("produced", "work", "prefilled", "charge"):
        setattr(new, field, getattr(old, field))
    entries[name] = new


LEDGERS: dict[str, Callable[[Anything], object]] = {
    "running replaced": lambda p: replaced(p, "_running", "A/0"),
    "waiting replaced": lambda p: replaced(p, "_waiting", "A/1"),
    "cost 0": lambda p: setattr(p._accounts["B"], "cost", 0),
    "cost negative": lambda p: setattr(p._accounts["B"], "cost", -1),
    "number of a running one 0": lambda p: setattr(entry(p, "A/0"), "seq", 0),
    "number of a running one negative": lambda p: setattr(entry(p, "A/0"), "seq", -1),
    "number not given out": lambda p: setattr(entry(p, "A/0"), "seq", p._seq + 1),
    "number of another agent's": lambda p: setattr(
        entry(p, "A/0"), "seq", entry(p, "B/0").seq
    ),
    "number of an agent": lambda p: setattr(
        entry(p, "A/0"), "seq", p._accounts["B"].seq
    ),
    "two agents of one number": lambda p: setattr(
        p._accounts["A"], "seq", p._accounts["B"].seq
    ),
    "produced -1": lambda p: setattr(entry(p, "B/0"), "produced", -1),
    "charge -1": lambda p: setattr(entry(p, "A/0"), "charge", -1),
    "prefilled unknown": lambda p: setattr(entry(p, "B/0"), "prefilled", None),
    "moves -1": lambda p: setattr(p, "_moves", -1),
}


@pytest.mark.parametrize("what", LEDGERS)
@pytest.mark.parametrize(
    "variant", ["fcfs", "agent-fcfs", "srjf", "vtc", "justitia", "justitia-stage"]
)
def test_books_that_are_wrong(variant: str, what: str) -> None:
    policy = books(variant)
    LEDGERS[what](policy)
    refused(policy._check)


@pytest.mark.parametrize("variant", ["justitia", "justitia-stage"])
def test_service_that_is_less_than_its_parts(variant: str) -> None:
    policy = books(variant)
    account = policy._accounts["A"]
    assert account.service == entry(policy, "A/0").work == 9
    for service, allowed in ((9, True), (10, True), (9 - 1e-12, True), (8, False)):
        account.service = service
        if allowed:
            policy._check()
        else:
            refused(policy._check)


@pytest.mark.parametrize("variant", VARIANTS)
def test_the_empty_and_the_single_are_sound(variant: str) -> None:
    policy = make(variant)
    policy._check()
    queue(policy, agent("A", 1))
    policy._check()
    policy.pop()
    policy._check()
    policy.serve(Step({"A/0": 3}))
    policy._check()
    policy.serve(decode(A__0=1))
    policy._check()
    policy.requeue("A/0")
    policy._check()
    policy.leave("A")
    policy._check()
    assert (policy.peek(), policy.pop(), victims(policy)) == (None, None, [])


def test_many_revisions_count_as_changes() -> None:
    policy = queue("justitia", agent("A", 10))
    for cost in range(20, 30):
        policy.revise("A", cost)
        policy._check()


# Lines of agents --------------------------------------------------------------


def test_a_place_that_is_too_early_is_wrong_unless_it_is_out_of_date() -> None:
    policy: Any = queue("agent-fcfs", agent("A"), agent("B"), runs=2)
    group = policy._accounts["A"].groups[0]
    policy._line.push(group, (0, 0))
    refused(policy._check)
    group.place = None  # as `outdate` leaves it
    policy._check()
    policy._line.push(group, (1, 0))  # where it belongs
    policy._check()
    policy._line.push(group, (1, 1))  # too late
    refused(policy._check)


def test_a_key_that_has_not_changed_may_be_looked_at_again() -> None:
    policy: Any = queue("agent-fcfs", agent("A"), agent("B"), runs=2)
    policy.outdate(policy._accounts["A"])
    policy._check()
    head = policy.peek()
    assert head.id == "A/0"
    policy._check()


def test_debts_that_are_paid_are_not_settled() -> None:
    policy: Policy = queue("justitia", agent("A", 100), agent("B", 1000))
    policy.start("A/0")
    policy.serve(decode(A__0=2))
    policy.leave("A")
    assert isinstance(policy, SelectivePampering)
    clock = policy.clock
    (seq,) = policy._settled
    policy._check()
    clock.serve((clock.tag(seq) - clock.value) * clock.weight)  # behind its back
    assert clock.value == clock.tag(seq)
    refused(policy._check)


def test_books_are_wrong_where_a_place_in_line_is_taken_twice() -> None:
    policy: Any = queue("fcfs", agent("A"), runs=2)
    twin = copy(policy._waiting["A/0"])
    policy._line.push(twin, (99,))
    refused(policy._check)
