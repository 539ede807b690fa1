"""What Hypothesis draws in the tests of the policies: numbers that stay exact."""

from fractions import Fraction

from hypothesis import strategies as st

costs = st.one_of(
    st.integers(1, 60),
    st.fractions(Fraction(1, 8), 40, max_denominator=8),
)
weights = st.one_of(
    st.just(1),
    st.integers(1, 4),
    st.sampled_from([Fraction(1, 2), Fraction(3, 2), Fraction(2, 3)]),
)
works = st.one_of(
    st.integers(0, 80), st.fractions(0, 60, max_denominator=6), st.just(0)
)
picks = st.integers(0, 10**6)
"""An index into what happens to be there, taken modulo its length."""
