"""Integers for tags: in order, in range, or an error."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.serving.priorities import (
    SGLANG,
    VLLM,
    OutOfPriorities,
    Priorities,
    Range,
)
from justitia.policy import PolicyError
from justitia.policy.exact import Number

INT32 = Range(-(2**31), 2**31 - 1, smaller_first=False, grain=2**16)


def test_stock_engines_take_the_smaller_first_and_another_may_not_b15() -> None:
    for range, reverse in ((VLLM, False), (SGLANG, False), (INT32, True)):
        priorities = Priorities(range)
        given = {tag: priorities.give(tag) for tag in (140, 130, 200)}
        in_order = sorted(given, key=lambda tag: given[tag], reverse=reverse)
        assert in_order == [130, 140, 200]


def test_fractions_do_not_become_one_b16() -> None:
    priorities = Priorities()
    low, high = priorities.give(130.2), priorities.give(130.7)
    assert low < priorities.give(Fraction(1305, 10)) < high


@pytest.mark.parametrize("range", [VLLM, INT32], ids=["int64", "int32"])
def test_large_tags_keep_their_order_b16(range: Range) -> None:
    priorities = Priorities(range)
    tags: list[Number] = [
        2**63 + 1, 130.2, 2_304_128_000, 2**31, 2**63, 2**31 - 1, 2.0**70, 130, 0,
        2**63 - 1, 1e150, Fraction(1, 3), 2_304_128_000.5,
    ]  # fmt: skip
    given = {tag: priorities.give(tag) for tag in tags}
    priorities._check()
    sign = 1 if range.smaller_first else -1
    assert sorted(tags) == sorted(tags, key=lambda tag: sign * given[tag])
    assert len(set(given.values())) == len(tags)
    assert all(range.least <= one <= range.most for one in given.values())


def test_equal_tags_share_an_integer_however_they_are_written() -> None:
    priorities = Priorities()
    assert priorities.give(130) == priorities.give(130.0)
    assert priorities.give(Fraction(260, 2)) == priorities.give(130)
    assert len(priorities) == 1
    for _ in range(4):
        assert len(priorities) == 1
        priorities.free(130)
    assert len(priorities) == 0


def test_a_full_range_says_so_and_changes_nothing_b16() -> None:
    priorities = Priorities(Range(0, 9))
    tags = [Fraction(number, 7) for number in range(40)]
    given = [priorities.give(tag) for tag in tags[:3]]
    with pytest.raises(OutOfPriorities, match="no priority is left for tag"):
        given.extend(priorities.give(tag) for tag in tags[3:])
    priorities._check()
    assert given == sorted(set(given))
    assert all(0 <= one <= 9 for one in given)
    for tag in tags[: len(given)]:
        priorities.free(tag)
    assert len(priorities) == 0
    priorities.give(10**9)  # idle, it starts anew


@pytest.mark.parametrize("tag", [float("nan"), float("inf"), "130", None, True])
def test_what_is_no_tag_is_refused_b08(tag: object) -> None:
    priorities = Priorities()
    with pytest.raises(PolicyError):
        priorities.give(tag)  # type: ignore[arg-type]
    with pytest.raises(PolicyError):
        priorities.free(tag)  # type: ignore[arg-type]
    assert len(priorities) == 0


def test_what_is_not_in_use_cannot_be_freed() -> None:
    with pytest.raises(PolicyError, match="not in use"):
        Priorities().free(7)


def test_a_range_must_have_room() -> None:
    with pytest.raises(PolicyError, match="no room"):
        Range(0, 1)
    with pytest.raises(PolicyError, match="grain must be"):
        Range(0, 100, grain=0)


@pytest.mark.parametrize("range", [VLLM, INT32], ids=["int64", "int32"])
def test_a_year_of_continuous_load_stays_in_range(range: Range) -> None:
    """V grows and no moment is without a request; each new tag is a cost above it."""
    priorities = Priorities(range)
    value, number, live = 0, 0, []
    while value < 2e14:
        number += 1
        value += (
            10**10 + number
        )  # in all a year at 40,960 tokens and 100 steps a second
        tag = value + number * 7919 % 10**6
        live.append((tag, priorities.give(tag)))
        if len(live) > 50:
            priorities.free(live.pop(0)[0])
    order = [one for _, one in sorted(live)]
    assert order == sorted(order, reverse=not range.smaller_first)
    priorities._check()


numbers = st.one_of(st.integers(0, 2**64), st.fractions(0, 10**6), st.floats(0, 1e150))


@given(
    st.lists(st.tuples(st.booleans(), numbers), max_size=60),
    st.sampled_from([VLLM, INT32, Range(0, 40)]),
)
def test_integers_are_in_the_order_of_the_tags(
    events: list[tuple[bool, Number]], range: Range
) -> None:
    priorities = Priorities(range)
    live: list[tuple[Number, int]] = []
    for ends, tag in events:
        if ends and live:
            priorities.free(live.pop(int(tag) % len(live))[0])
        else:
            with suppress(OutOfPriorities):
                live.append((tag, priorities.give(tag)))
        priorities._check()
    for tag, one in live:
        for other, another in live:
            if range.smaller_first:
                assert (tag < other) == (one < another)
            else:
                assert (tag < other) == (one > another)
