"""Workloads made to fit."""

from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.scaling import most_tokens, scaled_to
from justitia.workloads import AgentSpec, InferenceSpec
from tests.engines.build import make_agent


def lengths(spec: AgentSpec) -> list[tuple[int, int, int | None]]:
    return [(i.prompt_tokens, i.decode_tokens, i.max_tokens) for i in spec.inferences]


def test_all_lengths_shrink_by_the_factor_that_the_longest_needs() -> None:
    agents = [make_agent("a", (700, 300), (100, 0)), make_agent("b", (0, 40))]
    fitted = scaled_to(agents, 250)
    assert fitted.scale == 0.25
    assert [lengths(spec) for spec in fitted.agents] == [
        [(175, 75, None), (25, 1, None)],
        [(1, 10, None)],
    ]


def test_what_fits_stays_as_it_is_but_for_a_token_at_least() -> None:
    agents = [make_agent("a", (0, 0), (7, 9), at=3, cancel_after=4)]
    fitted = scaled_to(agents, 16)
    assert fitted.scale == 1
    assert lengths(fitted.agents[0]) == [(1, 1, None), (7, 9, None)]
    assert fitted.agents[0].arrival == agents[0].arrival
    assert fitted.agents[0].cancel_after == agents[0].cancel_after


def test_the_longest_output_that_is_allowed_counts() -> None:
    fitted = scaled_to([make_agent("a", (10, 10), longest=90)], 50)
    assert fitted.scale == 0.5
    assert lengths(fitted.agents[0]) == [(5, 5, 45)]


def test_no_agents_need_no_factor() -> None:
    assert scaled_to([], 10).scale == 1
    assert scaled_to([make_agent("a")], 10).scale == 1


INFERENCES = st.builds(
    lambda p, d, more: InferenceSpec(
        p, d, max_tokens=None if more is None else d + more
    ),
    st.integers(0, 5000),
    st.integers(0, 5000),
    st.none() | st.integers(0, 100),
)


@given(st.lists(INFERENCES, min_size=1), st.integers(2, 600))
def test_everything_fits_as_far_as_tokens_are_whole(
    inferences: list[InferenceSpec], room: int
) -> None:
    fitted = scaled_to([AgentSpec("a", tuple(inferences))], room)
    for one in fitted.agents[0].inferences:
        assert one.prompt_tokens >= 1
        assert one.decode_tokens >= 1
        assert one.prompt_tokens + most_tokens(one) <= room + 1
