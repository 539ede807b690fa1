"""Costs, quotients and sums, for all whole numbers (see proofs/crosshair.md)."""

from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy import exact
from justitia.policy.costs import (
    ComputeTokens,
    KVTokenTime,
    PaperKVTokenTime,
    ReservedTokenTime,
)
from justitia.policy.errors import PolicyError
from justitia.policy.exact import Number, advanced, exactly, quotient
from tests.crosshair.backend import confirmed, decide

counts = st.integers(min_value=0)  # no upper limit
some = st.integers(min_value=1)
kv = KVTokenTime()
reserved = ReservedTokenTime()
compute = ComputeTokens()


# --- costs ----------------------------------------------------------------------------
@confirmed
@given(counts)
def test_the_first_token_holds_the_prompt_and_itself(p: int) -> None:
    assert kv(p, 1) == p + 1


@confirmed
@given(counts, some)
def test_each_further_token_delivers_what_it_holds(p: int, n: int) -> None:
    # With the one above, by induction: cost(p, n) = (p + 1) + ... + (p + n).
    assert kv.delivered(p, n + 1, n + 1) - kv.delivered(p, n, n + 1) == p + n + 1


@confirmed
@given(counts)
def test_the_closed_form_is_the_sum(p: int) -> None:
    for n in range(1, 33):
        assert kv(p, n) == sum(p + i for i in range(1, n + 1))


@confirmed
@given(counts, some, some)
def test_kv_work_grows(p: int, n: int, m: int) -> None:
    if n <= m:
        assert 0 < kv(p, n) <= kv(p, m)


@confirmed
@given(counts, some, some, some)
def test_what_steps_deliver_sums_up_to_the_cost(
    p: int, n: int, m: int, rest: int
) -> None:
    d = n + m + rest
    got = kv.delivered(p, n, d)
    got += kv.delivered(p, n + m, d) - kv.delivered(p, n, d)
    got += kv.delivered(p, d, d) - kv.delivered(p, n + m, d)
    assert got == kv(p, d)


@confirmed
@given(counts, some, some)
def test_reserved_work_is_the_peak_for_every_token(p: int, n: int, d: int) -> None:
    if n <= d:
        assert reserved.delivered(p, n, d) == (p + d) * n


@confirmed
@given(counts, counts, some)
def test_reserved_work_grows_also_beyond_the_prediction(p: int, n: int, d: int) -> None:
    assert 0 < reserved.delivered(p, n, d) <= reserved.delivered(p, n + 1, d)


@confirmed
@given(counts, some)
def test_reserved_work_is_less_than_twice_kv_work(p: int, d: int) -> None:
    assert kv(p, d) <= reserved(p, d) < 2 * kv(p, d)


@confirmed
@given(counts, counts)
def test_compute_work_is_two_a_token(p: int, n: int) -> None:
    assert compute(p, n) > 0
    assert compute(p, n + 1) - compute(p, n) == 2 or p == n == 0


@confirmed
@given(counts)
def test_nothing_is_free(p: int) -> None:
    assert kv(p, 0) == reserved(p, 0) == (p or 1)
    assert compute(p, 0) == (p or 1)
    assert PaperKVTokenTime()(p, 0) > 0


# --- quotients and sums ---------------------------------------------------------------
@pytest.mark.parametrize("weight", [1, 2, 3, 5, 7, 12])
def test_a_quotient_is_exact_and_an_int_where_it_comes_out_even(weight: int) -> None:
    @given(counts)
    def prop(work: int) -> None:
        result = quotient(work, weight)
        assert result * weight == work
        assert (type(result) is int) == (work % weight == 0)

    assert decide(prop) == "confirmed"


@pytest.mark.parametrize(
    ("denominator", "weight"), [(1, 1), (1, 3), (1, 7), (2, 3), (3, 1), (3, 2), (10, 1)]
)
def test_a_sum_is_exact_and_grows(denominator: int, weight: int) -> None:
    @given(counts, some)
    def prop(numerator: int, work: int) -> None:
        value = exactly(quotient(numerator, denominator))
        total = advanced(value, work, weight)
        assert total > value
        assert (total - value) * weight == work

    assert decide(prop) == "confirmed"


# --- what is let in -------------------------------------------------------------------
@pytest.fixture
def _terse(monkeypatch: pytest.MonkeyPatch) -> None:
    """Show no values in messages: CrossHair would go through all their digits."""
    monkeypatch.setattr(exact, "shown", lambda value: "a value")


def accepted(validate: str, value: int) -> Number | None:
    try:
        return cast("Number", getattr(exact, validate)(value, "it"))
    except PolicyError:
        return None


@pytest.mark.usefixtures("_terse")
@pytest.mark.parametrize(
    ("validate", "least", "most"),
    [
        ("positive", 1, int(exact.LARGEST)),
        ("not_negative", 0, int(exact.LARGEST)),
        ("finite", -int(exact.LARGEST), int(exact.LARGEST)),
        ("tokens", 0, exact.MOST_TOKENS),
    ],
)
def test_an_int_is_let_in_as_it_is_or_refused(
    validate: str, least: int, most: int
) -> None:
    @given(st.integers())
    def prop(value: int) -> None:
        result = accepted(validate, value)
        assert (result is not None) == (least <= value <= most)
        assert result is None or result == value

    assert decide(prop) == "confirmed"
