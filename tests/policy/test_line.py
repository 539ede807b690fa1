"""The line of keyed items against a sorted dict."""

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy.line import Line

moves = st.lists(
    st.tuples(st.sampled_from("abcdefgh"), st.one_of(st.none(), st.integers(0, 9))),
    max_size=60,
)


@given(moves)
def test_a_line_is_a_sorted_dict(history: list[tuple[str, int | None]]) -> None:
    line: Line = Line()
    model: dict[str, tuple[int, int]] = {}
    for number, (item, key) in enumerate(history):
        if key is None:
            line.discard(item)
            model.pop(item, None)
        else:
            line.push(item, (key, number))
            model[item] = (key, number)
        line._check()
        order = sorted(model, key=lambda i: model[i])
        assert list(line) == order
        assert line.peek() == (order[0] if order else None)
        assert len(line) == len(model)
        assert [i for i in "abcdefgh" if i in line] == sorted(model)


def test_moving_to_and_fro_costs_no_memory() -> None:
    line: Line = Line()
    line.push("fixed", (0,))
    for number in range(300):
        line.push("moves", (number + 1,))
        line._check()
    assert len(line._heap) <= 20
    for item in ("moves", "fixed", "fixed"):
        line.discard(item)
        line._check()
    assert not line
    assert line._heap == []


def test_an_item_may_keep_its_key() -> None:
    line: Line = Line()
    items = [object() for _ in range(3)]  # that cannot be compared
    for _ in range(3):
        for number, item in enumerate(items):
            line.push(item, (number,))
    assert list(line) == items


def lose_order(line: Line) -> None:
    line._heap[0], line._heap[1] = line._heap[1], line._heap[0]


CORRUPTIONS: dict[str, Callable[[Line], object]] = {
    "an item invented": lambda line: line._entries.update(z=(1, 1, "z")),
    "two of one key": lambda line: line._entries.update(b=(0, ord("a"), "b")),
    "the head and another swapped": lose_order,
    "backwards": lambda line: line._heap.sort(reverse=True),
    "nobody's entry at the top": lambda line: line._heap.insert(0, (0, 0, "b")),
    "nobody's entries without end": lambda line: line._heap.extend(
        [(1000, 0, "b")] * 20
    ),
}


@pytest.mark.parametrize("what", CORRUPTIONS)
def test_check_sees_a_corrupted_line(what: str) -> None:
    line = Line()
    for item in "bac":
        line.push(item, (0, ord(item)))
    line._check()
    CORRUPTIONS[what](line)
    with pytest.raises(AssertionError):
        line._check()
