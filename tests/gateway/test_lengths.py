"""How long a request is thought to be."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.gateway.errors import GatewayError
from justitia.gateway.lengths import Prompt, Ratios, read_lengths


@pytest.mark.parametrize(
    ("body", "prompts"),
    [
        ({"prompt": "four"}, [(4, 0)]),
        ({"prompt": ["a", "bc"], "n": 2}, [(1, 0), (1, 0), (2, 0), (2, 0)]),
        ({"prompt": [1, 2, 3]}, [(0, 3)]),
        ({"prompt": [[1], [2, 3]], "best_of": 2}, [(0, 1), (0, 1), (0, 2), (0, 2)]),
    ],
)
def test_prompts_times_choices(
    body: dict[str, Any], prompts: list[tuple[int, int]]
) -> None:
    told = read_lengths(body, chat=False)
    each = [one for one in told.each for _ in range(told.choices)]
    assert [(one.characters, one.tokens) for one in each] == prompts


def test_all_of_a_chat_counts() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "x" * 50}]
    plain = read_lengths({"messages": messages}, chat=True).each[0].characters
    messages.append({"role": "user", "content": [{"type": "text", "text": "y" * 30}]})
    messages.append({"role": "assistant", "content": None, "tool_calls": [{"id": "z"}]})
    more = read_lengths({"messages": messages, "tools": [{"name": "f"}]}, chat=True)
    assert more.each[0].characters > plain + 30
    assert more.each[0].tokens == 12


def test_the_later_name_of_max_tokens_is_the_stronger() -> None:
    body = {"messages": [{}], "max_tokens": 5, "max_completion_tokens": 7}
    assert read_lengths(body, chat=True).most == 7
    assert read_lengths({"prompt": "", "max_tokens": 0}, chat=False).most == 0
    assert read_lengths({"prompt": "", "max_tokens": None}, chat=False).most is None


def test_beginnings_are_told_apart_by_model_and_text() -> None:
    def marks(prompt: str, model: str = "m") -> tuple[bytes, ...]:
        return read_lengths({"prompt": prompt, "model": model}, chat=False).marks

    long, other = "x" * 2000, "x" * 1500 + "y" * 500
    assert len(marks(long)) == 2
    assert marks(long) == marks(other)
    assert marks("x" * 300 + "y" * 900)[-1] == marks(long)[-1]
    assert marks(long) != marks(long, "k")
    assert marks("a") != marks("b")


junk = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["role", "content", "text", "tool_calls"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)
fields = st.sampled_from(
    ["prompt", "messages", "n", "best_of", "max_tokens", "max_completion_tokens",
     "model", "tools"]
)  # fmt: skip


@pytest.mark.property
@given(st.dictionaries(fields, junk), st.booleans())
def test_no_body_does_worse_than_400(body: dict[str, Any], chat: bool) -> None:
    refused: int | None = None
    try:
        told = read_lengths(body, chat=chat)
    except GatewayError as error:
        refused = error.status
    else:
        assert 1 <= len(told.each) * told.choices <= 128
        assert all(Ratios().tokens("m", one) >= 1 for one in told.each)
    assert refused in (None, 400)


def test_the_rate_of_tokens_is_learned_by_model() -> None:
    ratios = Ratios()
    prompt = Prompt(1000, 0)
    before = ratios.tokens("m", prompt)
    for _ in range(200):
        ratios.learn("m", [prompt], 900)
    assert before < 500
    assert abs(ratios.tokens("m", prompt) - 900) < 20
    assert ratios.tokens("k", prompt) == before
    for number in range(1000):
        ratios.learn(f"model {number}", [prompt], 300)
    assert len(ratios._counted) <= 64


@pytest.mark.property
@given(st.lists(st.tuples(st.integers(0, 10**7), st.integers(0, 10**9))))
def test_no_count_makes_a_rate_that_is_none(told: list[tuple[int, int]]) -> None:
    ratios = Ratios()
    for characters, counted in told:
        ratios.learn("m", [Prompt(characters, 3)], counted)
    assert 0.02 <= ratios.ratio("m") <= 4
