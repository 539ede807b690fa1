"""The virtual clock, for all whole costs and work (see proofs/crosshair.md).

The clock sorts tags by their doubles, and where two doubles are equal by the tags
themselves. A solver knows no doubles, so here all doubles are equal. The order is the
same: to take the nearest double does not turn two numbers around.
"""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy import VirtualClock, clock
from tests.crosshair.backend import decide

costs = st.integers(min_value=1, max_value=2**40)
works = st.integers(min_value=0, max_value=2**40)


@pytest.fixture(autouse=True)
def _no_doubles(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(clock, "float", lambda tag: 0, raising=False)


def test_one_agent_departs_when_it_has_its_cost() -> None:
    @given(costs, works)
    def prop(cost: int, work: int) -> None:
        one = VirtualClock()
        assert one.arrive("A", cost) == cost
        departed = one.serve(work)
        assert one.value == min(work, cost)
        assert departed == ([("A", cost)] if work >= cost else [])

    assert decide(prop) == "confirmed"


def test_what_two_agents_get_is_what_was_served() -> None:
    @given(costs, costs, works)
    def prop(a: int, b: int, work: int) -> None:
        two = VirtualClock()
        two.arrive("A", a)
        two.arrive("B", b)
        two.serve(work)
        assert min(two.value, a) + min(two.value, b) == min(work, a + b)

    assert decide(prop) == "confirmed"


def test_what_three_agents_get_is_what_was_served() -> None:
    @given(costs, costs, costs, works)
    def prop(a: int, b: int, c: int, work: int) -> None:
        three = VirtualClock()
        for name, cost in (("A", a), ("B", b), ("C", c)):
            three.arrive(name, cost)
        three.serve(work)
        got = sum((min(three.value, cost) for cost in (a, b, c)), Fraction(0))
        assert got == min(work, a + b + c)

    assert decide(prop) == "confirmed"


def test_agents_of_weights_two_and_three_get_what_was_served() -> None:
    # Multiples of 30, so that no fraction comes up: with them there are too many paths.
    @given(costs, costs, works)
    def prop(a: int, b: int, work: int) -> None:
        two = VirtualClock()
        first, second = two.arrive("A", 30 * a, 2), two.arrive("B", 30 * b, 3)
        assert (first, second) == (15 * a, 10 * b)
        two.serve(30 * work)
        got = 2 * min(two.value, first) + 3 * min(two.value, second)
        assert got == 30 * min(work, a + b)

    assert decide(prop) == "confirmed"


def test_agents_depart_in_the_order_of_tag_and_arrival() -> None:
    @given(costs, costs, works)
    def prop(a: int, b: int, work: int) -> None:
        two = VirtualClock()
        two.arrive("A", a)
        two.arrive("B", b)
        departed = [name for name, _ in two.serve(work)]
        assert departed == (["A", "B"] if a <= b else ["B", "A"])[: len(departed)]
        assert ("A" in departed) == (a <= two.value)
        assert ("B" in departed) == (b <= two.value)

    assert decide(prop) == "confirmed"


def test_a_later_agent_is_tagged_from_where_the_clock_is_and_time_never_goes_back() -> (
    None
):
    @given(costs, costs, works, works)
    def prop(a: int, b: int, work: int, more: int) -> None:
        two = VirtualClock()
        two.arrive("A", a)
        two.serve(work)
        then = two.value
        assert then == min(work, a)
        assert two.arrive("B", b) == then + b
        two.serve(more)
        assert two.value >= then
        got = min(two.value, a) - then + min(two.value, then + b) - then
        assert got == min(more, a - then + b)

    assert decide(prop) == "confirmed"


def test_to_serve_twice_is_to_serve_the_sum() -> None:
    @given(costs, costs, works, works)
    def prop(a: int, b: int, work: int, more: int) -> None:
        parts, whole = VirtualClock(), VirtualClock()
        for one in (parts, whole):
            one.arrive("A", a)
            one.arrive("B", b)
        parts.serve(work)
        parts.serve(more)
        whole.serve(work + more)
        assert parts.value == whole.value
        assert parts.active == whole.active

    assert decide(prop) == "confirmed"


def test_revise_moves_one_tag_by_the_difference() -> None:
    @given(costs, costs, works, costs)
    def prop(a: int, b: int, work: int, revised: int) -> None:
        two = VirtualClock()
        two.arrive("A", a)
        two.arrive("B", b)
        two.serve(work)
        then = two.value
        tag = two.revise("A", revised)
        base = max(then, a) if revised > a else a
        assert tag == base + revised - a
        assert two.value == then
        assert two.tag("B") == b
        assert two.active == (tag > then) + (b > then)

    assert decide(prop) == "confirmed"
