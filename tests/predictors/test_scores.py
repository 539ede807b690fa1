"""Scores of predictions, by hand and beside scipy."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.predictors.scores import rank_correlation, score
from tests.predictors import extra  # noqa: F401 - skips where scipy is not

costs = st.lists(
    st.tuples(st.floats(1, 1e9), st.floats(1, 1e9)), min_size=1, max_size=30
)


def test_by_hand() -> None:
    real, predicted = [100.0, 100.0, 100.0, 200.0], [50.0, 200.0, 201.0, 200.0]
    found = score(real, predicted, [100.0, 99.0, 300.0, 200.0], fallbacks=2)
    assert (found.agents, found.fallbacks) == (4, 2)
    assert found.mean_relative_error == pytest.approx((0.5 + 1 + 1.01 + 0) / 4)
    assert found.median_relative_error == pytest.approx(0.75)
    assert (found.within_factor_2, found.coverage_90) == (0.75, 0.75)


def test_what_has_no_value_is_none() -> None:
    one = score([5.0], [5.0])
    assert (one.coverage_90, one.rank_correlation) == (None, None)
    assert score([5.0, 6.0], [5.0, 5.0]).rank_correlation is None
    assert score([5.0, 6.0], [5.0, 5.0], [5.0, None]).coverage_90 is None


@given(costs)
def test_a_truth_that_is_told_has_no_error(pairs: list[tuple[float, float]]) -> None:
    real = [pair[0] for pair in pairs]
    found = score(real, real, real)
    assert (found.mean_relative_error, found.median_relative_error) == (0, 0)
    assert (found.within_factor_2, found.coverage_90) == (1, 1)
    assert found.rank_correlation in (None, pytest.approx(1))


@given(costs)
def test_rank_correlation_asks_for_order_only(pairs: list[tuple[float, float]]) -> None:
    one, other = [a for a, _ in pairs], [b for _, b in pairs]
    found = rank_correlation(one, other)
    if found is not None:
        assert -1 - 1e-9 <= found <= 1 + 1e-9
        places = {value: float(n) for n, value in enumerate(sorted(set(one)))}
        ranked = [places[value] for value in one]
        assert rank_correlation(ranked, other) == pytest.approx(found)
        assert rank_correlation(other, one) == pytest.approx(found)
