"""Streams cut anywhere: the same bytes, the same counts."""

import json
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.gateway import events
from justitia.gateway.events import Splitter, Tally

RECORDED = "".join(
    [
        ": a comment\n\n",
        'data: {"choices": [], "model": "m"}\n\n',
        'data: {"choices": [{"index": 0, "delta": {"role": "assistant"}}]}\n\n',
        'event: x\ndata: {"choices": [{"index": 0, "delta": {"content": "é 中"}}]}\n\n',
        'data: {"choices": [{"index": 1, "delta": {"content": "🙂\\n data:"}}]}\n\n',
        'data: {"choices": [{"index": 0,\ndata:  "text": "two lines"}]}\n\n',
        "data: no json\n\n",
        'data: {"choices": [{"delta": {"tool_calls": [{"id": null}]}, "x": 1}]}\n\n',
        'data: {"choices": [], "usage": {"completion_tokens": 9}}\n\n',
        "\n\n\n",
        "data: [DONE]",
    ]
)
FORMS = [
    RECORDED.replace("\n", end).encode() + last
    for end in ("\n", "\r\n", "\r")
    for last in (b"", end.encode(), end.encode() * 2)
]


def read(parts: list[bytes]) -> tuple[bytes, Counter[int], Tally, int]:
    splitter, tally = Splitter(), Tally()
    passed, tokens, alone = b"", Counter[int](), 0
    for part in [*parts, None]:
        found = [splitter.rest()] if part is None else list(splitter.feed(part))
        for event in found:
            counted, usage_alone = tally.event(event)
            tokens.update(counted)
            alone += usage_alone
            passed += event
    return passed, tokens, tally, alone


@pytest.mark.parametrize("stream", FORMS)
def test_a_stream_cut_at_every_byte_is_the_same_b42(stream: bytes) -> None:
    for offset in range(len(stream) + 1):
        passed, tokens, tally, alone = read([stream[:offset], stream[offset:]])
        assert passed == stream
        assert tokens == {0: 3, 1: 1}
        assert tally.count("completion_tokens") == 9
        assert (tally.ended, alone) == (True, 1)


@pytest.mark.property
@given(st.sampled_from(FORMS), st.lists(st.integers(0, 900)))
def test_a_stream_cut_anywhere_is_the_same_b42(stream: bytes, cuts: list[int]) -> None:
    places = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    parts = [stream[a:b] for a, b in pairwise(places)]
    passed, tokens, _, alone = read(parts)
    assert (passed, tokens, alone) == (stream, {0: 3, 1: 1}, 1)


@pytest.mark.property
@given(st.lists(st.binary(max_size=40)))
def test_whatever_comes_goes_on_b51(parts: list[bytes]) -> None:
    passed, *_ = read(parts)
    assert passed == b"".join(parts)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["choices", "usage", "delta", "index", "text", "message"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@pytest.mark.property
@given(json_values)
def test_no_answer_of_an_engine_raises(value: object) -> None:
    tally = Tally()
    tally.event(b"data: " + json.dumps(value).encode() + b"\n\n")
    tally.whole(json.dumps(value).encode())
    count = tally.count("completion_tokens")
    assert count is None or count >= 0


def test_an_event_without_end_does_not_fill_the_memory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(events, "LARGEST_EVENT", 100)
    splitter = Splitter()
    for _ in range(50):
        list(splitter.feed(b"x" * 60))
        assert len(splitter._held) <= 100
