"""The ridge that stands beside the models."""

from math import isfinite

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.predictors import extra  # noqa: F401 - skips where scikit-learn is not

# After it: this loads scikit-learn.
from justitia.predictors.ridge import Ridges  # isort: skip


def test_it_learns_what_words_and_length_say() -> None:
    texts = [f"{'long ' * n}{word} text" for n in range(1, 30) for word in ("a1", "b2")]
    costs = [len(text) ** 1.5 * (5 if "b2" in text else 1) for text in texts]
    ridges = Ridges().fit(["K"] * len(texts), texts, costs)
    found = ridges.predict(["K"] * len(texts), texts)
    pairs = zip(found, costs, strict=True)
    errors = sorted(abs(a - b) / b for a, b in pairs)
    assert errors[len(errors) // 2] < 0.3


def test_without_words_it_is_the_geometric_mean() -> None:
    ridges = Ridges().fit(["A", "A", "B"], ["", "", "x y"], [1.0, 100.0, 1000.0])
    assert ridges.predict(["A", "C"], ["what is it", "no class"]) == [
        pytest.approx(10),
        pytest.approx((1.0 * 100 * 1000) ** (1 / 3)),
    ]


@given(st.lists(st.tuples(st.text(), st.floats(1, 1e15)), min_size=1), st.text())
def test_any_text_gets_a_cost(rows: list[tuple[str, float]], text: str) -> None:
    ridges = Ridges().fit(["K"] * len(rows), [t for t, _ in rows], [c for _, c in rows])
    (found,) = ridges.predict(["K"], [text])
    assert found > 0
    assert isfinite(found)
