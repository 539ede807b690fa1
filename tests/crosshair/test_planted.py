"""Faults that a random search does not meet: the solver finds them."""

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from justitia.policy import VirtualClock, clock
from justitia.policy.costs import KVTokenTime
from justitia.policy.exact import Exact, advanced
from tests.crosshair.backend import decide

FAR = 0x5EED_C0FFEE
numbers = st.integers(min_value=1, max_value=2**60)


class OffByOne(KVTokenTime):
    """Counts a token too many where p is 7 times n and 12,345 more."""

    def delivered(self, prompt_tokens: int, produced: int, decode_tokens: int) -> int:
        work = super().delivered(prompt_tokens, produced, decode_tokens)
        if prompt_tokens == 7 * produced + 12_345:
            work += 1
        return work


def each_token_delivers_what_it_holds(p: int, n: int) -> None:
    cost = OffByOne()
    assert cost(p, n + 1) - cost(p, n) == p + n + 1


def test_a_cost_that_is_off_by_one_along_a_line() -> None:
    with pytest.raises(AssertionError):
        decide(given(numbers, numbers)(each_token_delivers_what_it_holds))


def test_random_search_does_not_find_it() -> None:
    @settings(
        backend="hypothesis",
        max_examples=1_000,
        derandomize=True,
        database=None,
        deadline=None,
        phases=[Phase.generate],
    )
    @given(numbers, numbers)
    def prop(p: int, n: int) -> None:
        each_token_delivers_what_it_holds(p, n)

    prop()


def test_a_tag_that_is_off_by_one_from_some_cost_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(value: Exact, work: Exact, weight: Exact) -> Exact:
        return advanced(value, work + (work > FAR), weight)

    monkeypatch.setattr(clock, "float", lambda tag: 0, raising=False)
    monkeypatch.setattr(clock, "advanced", wrong)

    @given(numbers, numbers)
    def prop(a: int, b: int) -> None:
        two = VirtualClock()
        two.arrive("A", a)
        two.serve(b)
        assert two.value <= b

    with pytest.raises(AssertionError):
        decide(prop)


def test_a_clock_that_is_wrong_for_one_amount_of_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Wrong(VirtualClock):
        def serve(self, work: int) -> list[tuple[object, Exact]]:  # type: ignore[override]
            return super().serve(work + (work == 2 * FAR + 1))

    monkeypatch.setattr(clock, "float", lambda tag: 0, raising=False)

    @given(numbers, numbers, numbers)
    def prop(a: int, b: int, work: int) -> None:
        two = Wrong()
        two.arrive("A", a)
        two.arrive("B", b)
        two.serve(work)
        assert min(two.value, a) + min(two.value, b) == min(work, a + b)

    with pytest.raises(AssertionError):
        decide(prop)
