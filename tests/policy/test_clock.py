"""The virtual clock against the fair reference, and the cases that clocks got wrong."""

from collections.abc import Hashable
from fractions import Fraction
from math import isclose
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from justitia.policy import PolicyError, VirtualClock, exact
from justitia.policy.exact import Number
from justitia.proofs.reference import FairReference, fair_finishes
from tests.policy.builders import (
    INF,
    NAN,
    NOT_POSITIVE,
    NOT_WORK,
    Anything,
    ForeignInt,
    ForeignRational,
    ForeignReal,
    label,
    pick,
    state,
)
from tests.policy.strategies import costs, picks, weights, works


def clock_of(*agents: tuple[str, Number]) -> VirtualClock:
    clock = VirtualClock()
    for name, cost in agents:
        clock.arrive(name, cost)
    return clock


class ClockAgainstReference(RuleBasedStateMachine):
    """Whatever happens, clock and reference agree, exactly."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = VirtualClock()
        self.fair = FairReference()
        self.number = 0
        self.tags: dict[int, Number] = {}
        self.costs: dict[int, Number] = {}
        self.before: Number = 0

    @rule(cost=costs, weight=weights)
    def arrive(self, cost: Number, weight: Number) -> None:
        self.number += 1
        self.fair.arrive(self.number, cost, weight)
        tag = self.clock.arrive(self.number, cost, weight)
        assert tag == self.clock.value + Fraction(cost) / Fraction(weight)
        self.tags[self.number] = tag
        self.costs[self.number] = cost

    @rule(work=works)
    def serve(self, work: Number) -> None:
        departed = self.clock.serve(work)
        # The clock tells of ties in order of (tag, arrival), the reference of arrival.
        assert departed == self.fair.serve(work)
        assert departed == sorted(departed, key=lambda d: (self.tags[int(str(d[0]))],))

    @precondition(lambda self: self.fair.wanting())
    @rule(index=picks)
    def serve_up_to_a_departure(self, index: int) -> None:
        """Work that ends where an agent departs: the edge that off-by-ones miss."""
        who = pick(self.fair.wanting(), index)
        fair = FairReference(
            [
                type(s)(s.agent, s.weight, s.cost, s.arrived, s.wanted)
                for s in self.fair.shares
            ]
        )
        total = sum((s.wanted for s in fair.shares), Fraction(0))
        work = dict(fair.serve(total))[who]
        assert who in dict(self.clock.serve(work))
        self.fair.serve(work)

    @precondition(lambda self: self.tags)
    @rule(index=picks, cost=costs)
    def revise(self, index: int, cost: Number) -> None:
        who = pick(self.tags, index)
        self.fair.revise(who, cost)
        self.tags[who] = self.clock.revise(who, cost)
        self.costs[who] = cost

    @precondition(lambda self: self.tags)
    @rule(index=picks, more=costs)
    def grow(self, index: int, more: Number) -> None:
        who = pick(self.tags, index)
        expected = max(self.clock.value, self.tags[who])
        cost = self.costs[who] + more
        self.fair.revise(who, cost)
        self.tags[who] = self.clock.revise(who, cost)
        assert self.tags[who] > expected
        self.costs[who] = cost

    @precondition(lambda self: self.tags)
    @rule(index=picks)
    def settle(self, index: int) -> None:
        who = pick(self.tags, index)
        got = min(self.fair.received(who), self.costs[who])
        if got:
            self.fair.revise(who, got)
            self.tags[who] = self.clock.revise(who, got)
            self.costs[who] = got

    @precondition(lambda self: self.tags)
    @rule(index=picks)
    def leave(self, index: int) -> None:
        who = pick(self.tags, index)
        self.fair.leave(who)
        assert self.clock.leave(who)
        assert not self.clock.leave(who)
        del self.tags[who], self.costs[who]

    @invariant()
    def agree(self) -> None:
        clock, fair = self.clock, self.fair
        clock._check()
        fair._check()
        assert clock.value == fair.level
        assert clock.value >= self.before
        self.before = clock.value
        wanting = fair.wanting()
        assert clock.active == len(wanting)
        assert clock.weight == sum(s.weight for s in fair.shares if s.wanted)
        assert len(clock) == len(fair.shares)
        for who, tag in self.tags.items():  # the others' never change
            assert who in clock
            assert clock.tag(who) == tag == fair.finish_level(who)
            assert not isinstance(tag, float)
            assert (tag > clock.value) == (who in wanting)

    def teardown(self) -> None:
        everything = sum((s.wanted for s in self.fair.shares), Fraction(0))
        order = [who for who, _ in self.clock.serve(everything)]
        assert order == [who for who, _ in self.fair.serve(everything)]
        assert order == sorted(order, key=lambda who: self.tags[int(str(who))])
        self.agree()
        assert self.clock.active == 0
        self.clock.serve(1)
        self.fair.serve(1)
        self.agree()


TestClockAgainstReference = ClockAgainstReference.TestCase


events = st.one_of(
    st.tuples(st.just("arrive"), st.floats(0.01, 1e6), st.floats(0.01, 100)),
    st.tuples(st.just("serve"), st.floats(0, 1e6), st.just(1.0)),
    st.tuples(st.just("revise"), st.floats(0.01, 1e6), picks.map(float)),
)


@given(st.lists(events, max_size=20))
def test_floats_follow_the_exact_reference(history: list[tuple[str, Any, Any]]) -> None:
    clock, fair, number = VirtualClock(), FairReference(), 0
    before: Number = 0
    scale = 1.0  # rounding is relative to the largest thing that was ever added
    for what, amount, other in history:
        scale = max(scale, float(clock.value), amount)
        if what == "arrive":
            clock.arrive(number, amount, other)
            fair.arrive(number, amount, other)
            number += 1
            scale = max(scale, amount / other)
        elif what == "serve":
            clock.serve(amount)
            fair.serve(amount)
        elif number:
            who = int(other) % number
            clock.revise(who, amount)
            fair.revise(who, amount)
            scale = max(scale, amount / 0.01)
        clock._check()
        assert clock.value >= before
        before = clock.value
        # A departure that rounding moves past the end of a step changes little, but
        # not relative to a level near 0.
        assert isclose(clock.value, fair.level, rel_tol=1e-9, abs_tol=1e-9 * scale)
        for who in range(number):
            tag, exactly = clock.tag(who), fair.finish_level(who)
            assert isclose(tag, exactly, rel_tol=1e-9, abs_tol=1e-9 * scale)


# The paper --------------------------------------------------------------------


def test_paper_example_tags_and_departures() -> None:
    clock = VirtualClock()
    assert clock.arrive("A", 200) == 200
    assert clock.serve(100) == []
    assert clock.value == 100
    assert clock.arrive("B", 30) == 130
    assert clock.arrive("C", 40) == 140
    assert clock.serve(170) == [("B", 90), ("C", 110), ("A", 170)]
    assert (clock.value, clock.active) == (200, 0)


def test_paper_example_reference_finish_times() -> None:
    jobs = [("A", 0, 200), ("B", 1, 30), ("C", 1, 40)]
    finishes = fair_finishes(jobs, rate=100)
    assert list(finishes.items()) == [
        ("B", Fraction(19, 10)),
        ("C", Fraction(21, 10)),
        ("A", Fraction(27, 10)),
    ]


def test_B59_reference_finish_times_of_the_clock() -> None:
    clock = clock_of(("A", 200))
    clock.serve(100)
    clock.arrive("B", 30)
    clock.arrive("C", 40)
    times = {who: 1 + Fraction(work) / 100 for who, work in clock.serve(1000)}
    assert times == {
        "B": Fraction(19, 10),
        "C": Fraction(21, 10),
        "A": Fraction(27, 10),
    }


def test_reference_takes_weights_and_any_order_of_jobs() -> None:
    jobs = [("late", 2, 6, 1), ("early", 0, 12, 2)]
    # early alone to t=2, then two thirds of 3: 6 left take 3; late has 3 left.
    assert fair_finishes(jobs, rate=3) == {"early": 5, "late": 6}


def test_reference_says_when_a_level_was_reached() -> None:
    fair = FairReference()
    fair.arrive("A", 10)
    fair.arrive("B", 30)
    fair.serve(30)
    assert [fair.reached(v) for v in (0, 5, 10, 15, 20)] == [0, 10, 20, 25, 30]
    assert fair.reached(21) is None
    assert fair.finish("A") == 20
    assert fair.finish("B") is None
    fair.serve(20)
    assert fair.lost == 10
    assert fair.reached(30) == 40


def test_reference_refuses_what_makes_no_sense() -> None:
    fair = FairReference()
    fair.arrive("A", 1)
    for wrong in (
        lambda: fair.arrive("A", 1),
        lambda: fair.arrive("B", 0),
        lambda: fair.arrive("B", 1, -1),
        lambda: fair.serve(-1),
        lambda: fair.revise("B", 1),
        lambda: fair.leave("B"),
    ):
        with pytest.raises(ValueError):
            wrong()
    fair._check()
    assert fair.wanting() == ["A"]


# Cases from the field ---------------------------------------------------------


def test_B01a_first_agent_ever() -> None:
    clock = VirtualClock()
    assert clock.serve(500) == []  # five seconds with nobody there
    assert clock.value == 0
    assert clock.arrive("C", 30) == 30


def test_B01b_departures_change_the_rate_where_they_happen() -> None:
    clock = clock_of(("A", 100), ("B", 400))
    clock.serve(400)  # four seconds at M=100; A departs after two of them
    assert clock.value == 300
    assert clock.arrive("D", 150) == 450
    assert clock.tag("B") == 400


@pytest.mark.parametrize("arrival_first", [False, True])
def test_B01c_arrival_and_departure_at_one_instant(arrival_first: bool) -> None:
    clock = VirtualClock()
    clock.arrive("A", 100)
    if arrival_first:
        clock.serve(99)
        clock.serve(1)
        assert clock.arrive("B", 50) == 150
    else:
        assert clock.serve(100) == [("A", 100)]
        assert clock.arrive("B", 50) == 150


def test_one_serve_across_several_departures() -> None:
    clock = clock_of(("A", 10), ("B", 20), ("C", 30), ("D", 30))
    # To 10: 4 x 10; to 20: 3 x 10; to 30: 2 x 10.
    assert clock.serve(1000) == [("A", 40), ("B", 70), ("C", 90), ("D", 90)]
    assert clock.value == 30


def test_serving_in_pieces_is_serving_at_once() -> None:
    whole = clock_of(("A", 10), ("B", 7), ("C", 29))
    parts = clock_of(("A", 10), ("B", 7), ("C", 29))
    whole.serve(38)
    for work in (1, Fraction(1, 3), 5, Fraction(2, 3), 31):
        parts.serve(work)
    assert state(whole.value) == state(parts.value)
    assert whole.active == parts.active


def test_an_idle_clock_stands_still_and_goes_on() -> None:
    clock = clock_of(("A", 10))
    assert clock.serve(25) == [("A", 10)]
    assert (clock.value, clock.active, clock.weight) == (10, 0, 0)
    assert clock.serve(10**9) == []
    assert clock.arrive("B", 5) == 15


def test_B08_nan_would_break_a_heap() -> None:
    clock = VirtualClock()
    for name, cost in enumerate((3, 1, 2, 0.5)):
        clock.arrive(name, cost)
        with pytest.raises(PolicyError):
            clock.arrive("nan", NAN)
    assert [who for who, _ in clock.serve(100)] == [3, 1, 2, 0]


def test_ties_depart_in_order_of_arrival() -> None:
    clock = clock_of(("b", 10), ("a", 10), ("c", 10))
    assert clock.serve(30) == [("b", 30), ("a", 30), ("c", 30)]
    clock = clock_of(("b", 10), ("a", 11))
    clock.revise("a", 10)  # a tie that came later
    assert [who for who, _ in clock.serve(100)] == ["b", "a"]


def test_revise_grows_from_the_tag_or_from_now() -> None:
    clock = clock_of(("A", 10), ("B", 100))
    assert clock.revise("A", 15) == 15
    clock.serve(40)  # A departs at V=15 after 30 units
    assert (clock.value, clock.active) == (25, 1)
    assert clock.revise("A", 16) == 26  # from V, not from its old tag
    assert clock.active == 2
    assert clock.revise("A", 14) == 24  # departs at once
    assert clock.active == 1
    assert clock.revise("A", 15) == 26  # from V again: it had departed
    assert clock.tag("B") == 100


def test_revise_divides_by_the_weight() -> None:
    clock = VirtualClock()
    clock.arrive("A", 10, weight=4)
    assert clock.tag("A") == Fraction(5, 2)
    assert clock.revise("A", 12) == 3
    assert clock.revise("A", 2) == Fraction(1, 2)
    assert clock.revise("A", 2.0) == Fraction(1, 2)  # the same cost: nothing to do


def test_revise_to_and_fro_leaves_no_trace() -> None:
    clock = clock_of(("A", 10), ("B", 20))
    for _ in range(100):
        assert clock.revise("A", 30) == 30
        assert clock.revise("A", 10) == 10
        clock._check()
    assert clock.serve(30) == [("A", 20), ("B", 30)]


def test_leave_gives_the_rest_to_the_others() -> None:
    clock = VirtualClock()
    clock.arrive("A", 10)
    clock.arrive("B", 100, weight=3)
    clock.serve(4)
    assert clock.leave("B")
    assert (clock.value, clock.active, clock.weight) == (1, 1, 1)
    assert "B" not in clock
    clock.serve(4)
    assert clock.value == 5
    assert not clock.leave("B")
    assert not clock.leave("never was")
    assert clock.arrive("B", 1) == 6  # an id may come again


def test_memory_does_not_grow_with_revisions_and_departures() -> None:
    clock = VirtualClock()
    clock.arrive("stays", 10**9)
    for number in range(500):
        clock.arrive(number, 10)
        clock.revise(number, 20)
        clock._check()
        clock.leave(number)
        clock._check()
    assert len(clock) == 1
    assert len(clock._heap) <= 18


# Numbers ----------------------------------------------------------------------


def test_ints_and_fractions_stay_exact_and_even_quotients_ints() -> None:
    clock = VirtualClock()
    assert type(clock.arrive("A", 10, weight=2)) is int
    assert clock.arrive("B", 10, weight=3) == Fraction(10, 3)
    clock.serve(1)
    assert clock.value == Fraction(1, 5)
    clock.serve(4)
    assert state(clock.value) == state(1)


def test_float_weights_add_up_without_drift() -> None:
    clock = VirtualClock()
    for name in range(10):
        clock.arrive(name, 100, weight=0.1)
    for name in range(10):
        clock.leave(name)
    assert clock.weight == 0
    clock.arrive("A", 1, weight=0.1)
    assert clock.weight == Fraction(0.1)


@given(st.lists(st.tuples(costs, weights), min_size=1), works, st.data())
def test_until_is_what_serve_takes_to_get_there(
    agents: list[tuple[Number, Number]], work: Number, data: st.DataObject
) -> None:
    clock = VirtualClock()
    for number, (cost, weight) in enumerate(agents):
        clock.arrive(number, cost, weight)
    clock.serve(work)
    number = data.draw(st.integers(0, len(agents) - 1))
    tag, value = clock.tag(number), clock.value
    need = clock.until(tag)
    departed = clock.serve(need)
    if tag <= value:
        assert (need, clock.value) == (0, value)
    else:
        assert clock.value == tag
        assert (number, need) in departed


def test_places_are_those_of_the_active() -> None:
    clock = clock_of(("a", 10), ("b", 30))
    clock.arrive("c", 20, weight=4)
    assert sorted(clock.places()) == [(5, 4), (10, 1), (30, 1)]
    clock.serve(45)
    assert clock.places() == [(30, 1)] == [(float(clock.tag("b")), clock.weight)]


def test_until_ends_with_the_last_agent() -> None:
    clock = clock_of(("a", 10), ("b", 30))
    assert [clock.until(tag) for tag in (0, 10, 20, 30, 99)] == [0, 20, 30, 40, 40]
    assert VirtualClock().until(5) == 0
    with pytest.raises(PolicyError, match="tag must be a finite number"):
        clock.until(NAN)


def test_B06_no_rebase() -> None:
    clock = clock_of(("old", 10**12))
    clock.serve(10**12)
    for extra in (1, 2, 3):
        clock.arrive(extra, extra)
    assert clock.arrive("new", 10) == 10**12 + 10
    assert [who for who, _ in clock.serve(100)] == [1, 2, 3, "new"]


def test_no_cost_and_no_work_vanishes_beside_a_large_value() -> None:
    clock = clock_of(("A", 1e20), ("B", 1e21))
    clock.serve(2e20)
    assert clock.value == 10**20
    assert clock.arrive("tiny", 1e-3) == 10**20 + Fraction(1e-3)
    assert clock.active == 2
    clock.serve(1e-9)
    assert clock.value == 10**20 + Fraction(1e-9) / 2
    clock._check()


def test_an_agent_of_tiny_weight_does_not_blur_the_tags_of_others() -> None:
    clock = VirtualClock()
    clock.arrive("evil", 20.0, weight=1e-30)
    clock.serve(20.0)
    assert clock.value > 10**30
    tags = [clock.arrive(name, cost) for name, cost in (("A", 3.5), ("B", 2), ("C", 2))]
    assert tags[0] > tags[1] == tags[2] > clock.value
    assert [who for who, _ in clock.serve(100)] == ["B", "C", "A"]


def test_an_agent_of_huge_weight_does_not_stop_the_clock(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(exact, "DENOMINATOR_BITS", 8)  # so that all is rounded
    clock = VirtualClock()
    for number in range(20):
        clock.arrive(number, 5, weight=Fraction(2 * number + 3, 7))
        clock.serve(1)
    clock.arrive("evil", 10, weight=1e150)
    clock.serve(9)
    assert clock.tag("evil") > clock.value
    assert "evil" in [who for who, _ in clock.serve(2)]


@pytest.mark.parametrize(
    ("start", "work"),
    [(Fraction(1, 3), 1e-30), (2**60 + 1, 1e-3), (Fraction(2**70, 3), 0.25)],
)
def test_value_never_goes_back_where_a_float_meets_an_exact_value(
    start: Number, work: float
) -> None:
    clock = clock_of(("A", start), ("B", 2**80))
    clock.serve(2 * start)
    assert clock.value == start
    clock.serve(work)
    assert clock.value >= start
    clock._check()
    assert clock.arrive("C", 1e-9) >= clock.value
    assert clock.revise("C", 1e9) > clock.value
    clock._check()


@given(st.lists(st.tuples(costs, weights, works), min_size=1, max_size=30))
def test_denominators_stay_bounded(history: list[tuple[Any, Any, Any]]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(exact, "DENOMINATOR_BITS", 8)
        clock, fair = VirtualClock(), FairReference()
        before: Number = 0
        for number, (cost, weight, work) in enumerate(history):
            clock.arrive(number, cost, weight)
            fair.arrive(number, cost, weight)
            clock.serve(work)
            fair.serve(work)
            clock._check()
            assert clock.value >= before
            before = clock.value
            assert isinstance(clock.value, int | Fraction)
            # An increment below 1 is rounded in parts of itself.
            assert clock.value.denominator.bit_length() <= 8 + 64 + 32
            # Each of the roundings so far lost less than a grain, and one that is
            # early or late by as much shifts the others by no more.
            error = abs(clock.value - fair.level)
            assert error <= Fraction(10 * (number + 1), 2**64) * (number + 1)


def test_rounding_keeps_to_the_stated_grain() -> None:
    long = exact.DENOMINATOR_BITS
    small = exact.advanced(0, 1, 3**3000)  # finer than a grain: in parts of itself
    assert 0 <= 1 - small * 3**3000 < Fraction(1, 2**62)
    assert small * 3**3000 != 1
    value = Fraction(1, 3**2580)
    assert value.denominator.bit_length() <= long
    total = exact.advanced(value, 1, 7**10)
    assert total != value + Fraction(1, 7**10)
    assert 0 <= value + Fraction(1, 7**10) - total < Fraction(1, 2**64)
    assert total > value
    assert exact.advanced(value, 5, 1) == value + 5
    less = exact.advanced(value, -1, 7**10)  # down as well
    assert 0 <= value - Fraction(1, 7**10) - less < Fraction(1, 2**64)


@given(
    value=st.one_of(costs, st.floats(0, 1e30)),
    work=st.one_of(works, st.floats(0, 1e30)),
    weight=st.one_of(weights, st.floats(1e-3, 1e3)),
)
def test_advanced_is_exact(value: Anything, work: Anything, weight: Anything) -> None:
    total = exact.advanced(*map(exact.exactly, (value, work, weight)))
    assert total == Fraction(value) + Fraction(work) / Fraction(weight)
    assert isinstance(total, int) == (Fraction(total).denominator == 1)


@given(work=st.integers(-1000, 1000), weight=st.integers(1, 50))
def test_quotient_is_exact_and_even_ones_are_ints(work: int, weight: int) -> None:
    result = exact.quotient(work, weight)
    assert result == Fraction(work, weight)
    assert isinstance(result, int) == (work % weight == 0)
    assert exact.quotient(float(work), weight) == work / weight


# Bad arguments ----------------------------------------------------------------


def refused(clock: VirtualClock, call: str, *arguments: object) -> None:
    before = state(clock)
    with pytest.raises(PolicyError):
        getattr(clock, call)(*arguments)
    assert state(clock) == before
    clock._check()


def some_clock() -> VirtualClock:
    clock = VirtualClock()
    clock.arrive("A", 10, 2)
    clock.arrive("B", 1)
    clock.serve(4)
    return clock


@pytest.mark.parametrize("bad", NOT_POSITIVE, ids=label)
def test_B08_costs_and_weights_that_are_refused(bad: object) -> None:
    clock = some_clock()
    refused(clock, "arrive", "C", bad)
    refused(clock, "arrive", "C", 1, bad)
    refused(clock, "revise", "A", bad)
    refused(clock, "revise", "B", bad)
    assert "C" not in clock


@pytest.mark.parametrize("bad", NOT_WORK, ids=label)
def test_B08_work_that_is_refused(bad: object) -> None:
    refused(some_clock(), "serve", bad)


@pytest.mark.parametrize("call", ["arrive", "revise", "leave", "tag"])
@pytest.mark.parametrize("bad", [[], {}, set(), ([],)], ids=repr)
def test_an_agent_that_cannot_be_a_key(call: str, bad: object) -> None:
    arguments = (1,) if call in {"arrive", "revise"} else ()
    refused(some_clock(), call, bad, *arguments)


def test_unknown_and_known_agents() -> None:
    clock = some_clock()
    refused(clock, "arrive", "A", 5)
    refused(clock, "arrive", "B", 5)  # departed, but remembered
    refused(clock, "revise", "C", 5)
    refused(clock, "tag", "C")
    refused(clock, "revise", None, 5)


@pytest.mark.parametrize(
    "foreign",
    [ForeignReal(2.5), ForeignRational(Fraction(5, 2))],
    ids=repr,
)
def test_numbers_of_other_libraries_become_pythons(foreign: Anything) -> None:
    clock = VirtualClock()
    tag = clock.arrive("A", foreign, foreign)
    assert tag == 1
    assert type(tag) in (int, float)
    clock.serve(ForeignInt(1))  # type: ignore[arg-type]
    assert clock.value == Fraction(2, 5)
    clock._check()


def test_numpy_scalars_where_numpy_is() -> None:
    numpy = pytest.importorskip("numpy")
    clock = VirtualClock()
    assert clock.arrive("A", numpy.int32(10)) == 10
    assert clock.arrive("B", numpy.float32(2.5), numpy.float64(0.5)) == 5.0
    assert {type(clock.tag("A")), type(clock.tag("B"))} == {int}
    refused(clock, "arrive", "C", numpy.float64("nan"))
    refused(clock, "arrive", "C", numpy.bool_(True))
    refused(clock, "arrive", "C", numpy.array([1, 2]))


def test_any_hashable_is_an_agent() -> None:
    clock = VirtualClock()
    names: list[Hashable] = [(1, "a"), 7, "7", None, frozenset()]
    for name in names:
        clock.arrive(name, 1)
    assert [who for who, _ in clock.serve(9)] == names


# _check -----------------------------------------------------------------------


def corrupted(clock: VirtualClock) -> None:
    with pytest.raises(AssertionError):
        clock._check()


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("_active", 7),
        ("_weight", 5),
        ("_value", 10**6),
        ("_value", INF),
        ("_value", NAN),
        ("_heap", []),
        ("_members", {}),
        ("_seq", 0),
    ],
)
def test_check_sees_a_corrupted_clock(name: str, value: object) -> None:
    clock = some_clock()
    clock.arrive("D", 50)
    clock._check()
    setattr(clock, name, value)
    corrupted(clock)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("tag", 999),
        ("tag", 0),
        ("weight", 9),
        ("weight", 0),
        ("cost", -1),
        ("entry", None),
        ("seq", 1),
        ("seq", 99),
        ("key", "Z"),
    ],
)
def test_check_sees_a_corrupted_member(name: str, value: object) -> None:
    clock = some_clock()
    setattr(clock._members["A"], name, value)
    corrupted(clock)


def test_check_sees_a_heap_in_disorder_and_one_too_long() -> None:
    clock = clock_of(("A", 1), ("B", 2), ("C", 3))
    clock._heap.reverse()
    corrupted(clock)
    clock = clock_of(("A", 1))
    clock._heap += [clock._heap[0]] * 18
    corrupted(clock)
