"""The admission rules on their own."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines import EngineError
from justitia.engines.roster import Task
from justitia.engines.sim import RULES
from justitia.engines.sim.admission import Admission
from justitia.engines.sim.sequence import Sequence

EMPTY = 10**6
"""More free blocks than anybody needs."""


def make_sequence(
    prompt: int = 4,
    *,
    produced: int = 0,
    predicted: int = 6,
    longest: int = 9,
    blocks: int = 0,
    swapped: int = 0,
) -> Sequence:
    task = cast(Task, SimpleNamespace(told=SimpleNamespace(id="a/0")))
    return Sequence(
        task,
        prompt,
        decode=longest,
        predicted=predicted,
        longest=longest,
        produced=produced,
        blocks=blocks,
        swapped=swapped,
    )


@st.composite
def sequences(draw: st.DrawFn) -> Sequence:
    longest = draw(st.integers(0, 12))
    return make_sequence(
        draw(st.integers(0, 12)),
        longest=longest,
        produced=draw(st.integers(0, longest)),
    )


@dataclass
class Grower:
    known: int
    left: int


def most_at_once(sequences: list[Sequence]) -> int:
    """Let all decode to their longest, a token a step, and look at every step."""
    growers = [Grower(s.known, s.longest - s.produced) for s in sequences]
    most = 0
    while growers:
        most = max(most, sum(g.known for g in growers))
        growers = [Grower(g.known + 1, g.left - 1) for g in growers if g.left]
    return most


@given(
    head=sequences(),
    running=st.lists(sequences(), max_size=5),
    blocks=st.integers(1, 60),
)
def test_lookahead_sees_the_largest_occupancy(
    head: Sequence, running: list[Sequence], blocks: int
) -> None:
    room = Admission("lookahead", blocks, 1).room(head, running, EMPTY)
    assert room == (not running or most_at_once([*running, head]) <= blocks)


@given(
    head=sequences(),
    running=st.lists(sequences(), min_size=1, max_size=5),
    blocks=st.integers(1, 30),
    block_size=st.integers(2, 8),
)
def test_lookahead_allows_for_blocks_that_are_not_full(
    head: Sequence, running: list[Sequence], blocks: int, block_size: int
) -> None:
    """It may refuse for nothing, by less than a block a sequence; never the reverse."""
    rule = Admission("lookahead", blocks, block_size)
    growers = [Grower(s.known, s.longest - s.produced) for s in [*running, head]]
    most = 0
    while growers:
        most = max(most, sum(-(-g.known // block_size) for g in growers))
        growers = [Grower(g.known + 1, g.left - 1) for g in growers if g.left]
    if rule.room(head, running, EMPTY):
        assert most <= blocks
    else:
        everybody = [*running, head]
        waste = (block_size - 1) * len(everybody)
        assert most_at_once(everybody) + waste > blocks * block_size


@pytest.mark.parametrize("rule", RULES)
def test_all_known_tokens_need_free_blocks_in_any_case(rule: str) -> None:
    """However few of them the first chunk is (vLLM's scheduler_reserve_full_isl)."""
    admission = Admission(rule, 10, 4)
    head = make_sequence(4, produced=5, longest=9, swapped=3)
    assert admission.room(head, [], free=3)
    assert not admission.room(head, [], free=2)


@pytest.mark.parametrize("rule", RULES)
def test_a_reservation_larger_than_the_cache_runs_alone(rule: str) -> None:
    large = make_sequence(longest=500, predicted=500)
    admission = Admission(rule, 10, 4)
    assert admission.room(large, [], free=10)
    if rule not in ("none", "prompt"):
        assert not admission.room(large, [make_sequence()], free=10)


@pytest.mark.parametrize(
    ("rule", "most"), [("prompt", 4), ("predicted", 4 + 6), ("max", 4 + 9)]
)
def test_what_is_reserved_is_rounded_up_to_blocks(rule: str, most: int) -> None:
    running = [make_sequence(), make_sequence()]
    need = 3 * -(-most // 4)
    for blocks, fits in [(need, True), (need - 1, False)]:
        admission = Admission(rule, blocks, 4)
        assert admission.room(make_sequence(), running, free=blocks) == fits


@pytest.mark.parametrize("rule", ["prompt", "predicted", "max"])
def test_what_outgrew_its_reservation_counts_as_it_is(rule: str) -> None:
    """20 tokens known, 6 blocks held; the head needs one block, or 3, or 4."""
    outgrown = make_sequence(4, produced=16, longest=16, predicted=2, blocks=6)
    head = make_sequence(4, predicted=8, longest=12)
    need = 6 + {"prompt": 1, "predicted": 3, "max": 4}[rule]
    for blocks, fits in [(need, True), (need - 1, False)]:
        admission = Admission(rule, blocks, 4)
        assert admission.room(head, [outgrown], free=blocks) == fits


def test_a_rule_that_is_none_is_named() -> None:
    with pytest.raises(EngineError, match="none, prompt, predicted, max, lookahead"):
        Admission("all", 10, 4)
