"""What is added to a prediction, and why just that."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.predictors import extra  # noqa: F401 - skips where numpy is not

import numpy as np  # isort: skip

from justitia.predictors.intervals import margin, shift  # isort: skip

RESIDUALS = st.lists(st.floats(-5, 5), min_size=1, max_size=40).map(np.array)


@given(st.lists(st.floats(-5, 5), min_size=11, max_size=40, unique=True))
def test_the_margin_covers_nine_in_ten_whatever_the_errors_are(
    residuals: list[float],
) -> None:
    # Exchangeable: each of them is the new one as often as any other.
    covered = sum(
        new <= margin(np.array(residuals[:k] + residuals[k + 1 :]))
        for k, new in enumerate(residuals)
    )
    count = len(residuals)
    assert 0.9 <= covered / count <= 0.9 + 1 / count + 1e-9


def test_few_residuals_give_the_largest() -> None:
    assert margin(np.array([3.0, -1.0])) == 3


@given(RESIDUALS, st.floats(-6, 6))
def test_the_shift_is_where_the_mean_relative_error_is_least(
    residuals: np.ndarray, other: float
) -> None:
    def error(added: float) -> float:
        return float(np.abs(1 - np.exp(added - residuals)).mean())

    assert error(shift(residuals)) <= error(other) * (1 + 1e-9)


@given(RESIDUALS, st.floats(-100, 100))
def test_both_move_with_the_residuals(residuals: np.ndarray, by: float) -> None:
    assert margin(residuals + by) == pytest.approx(margin(residuals) + by, abs=1e-9)
    assert float(np.abs(1 - np.exp(shift(residuals + by) - by - residuals)).mean()) == (
        pytest.approx(float(np.abs(1 - np.exp(shift(residuals) - residuals)).mean()))
    )
