"""The line of keyed items against a sorted dict."""

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


def test_check_sees_a_corrupted_line() -> None:
    def fresh() -> Line:
        line: Line = Line()
        for item in "bac":
            line.push(item, (ord(item),))
        line._check()
        return line

    line = fresh()
    line._entries["z"] = (1, "z")
    with pytest.raises(AssertionError):
        line._check()
    line = fresh()
    line._entries["b"] = (ord("a"), "b")
    with pytest.raises(AssertionError):
        line._check()
    line = fresh()
    line._heap.sort(reverse=True)
    with pytest.raises(AssertionError):
        line._check()
    line = fresh()
    line._heap.insert(0, (0, "b"))  # nobody's, at the top
    with pytest.raises(AssertionError):
        line._check()
    line = fresh()
    line._heap += [(1000, "b")] * 20
    with pytest.raises(AssertionError):
        line._check()
