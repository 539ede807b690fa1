"""What runs come to: percentiles, and a run beside its baseline."""

from collections.abc import Sequence
from fractions import Fraction
from statistics import fmean, quantiles

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines import AgentRecord, InferenceRecord, Lag, RunRecord
from justitia.engines.records import Outcome
from justitia.engines.summary import compare, percentile, summarise

jcts = st.floats(0, 1e6)


def make_run(
    *times: float | None,
    policy: str = "fcfs",
    outcomes: Sequence[Outcome] = (),
    lag: Lag | None = None,
) -> RunRecord:
    """A run of agents a0, a1, … that arrive at 1, 2, … and take these times."""
    agents = tuple(
        AgentRecord(
            id=f"a{k}",
            kind="",
            arrival=0.0,
            finish=time,
            cost=1,
            predicted_cost=1,
            tag=None,
            reference_finish=None,
            outcome="cancelled" if time is None else "finished",
        )
        for k, time in enumerate(times)
    )
    inferences = tuple(
        InferenceRecord(f"i{k}", "a0", 0, outcome, None, None, None, None, 0)
        for k, outcome in enumerate(outcomes)
    )
    return RunRecord(policy, agents, inferences, 17, 0.25, 3, lag)


# Percentiles --------------------------------------------------------------------------


@given(st.lists(jcts, min_size=2, max_size=30), st.integers(1, 99))
def test_percentiles_are_those_of_the_standard_library(
    times: list[float], percent: int
) -> None:
    ordered = sorted(times)
    expected = quantiles(ordered, n=100, method="inclusive")[percent - 1]
    assert percentile(ordered, percent) == pytest.approx(expected, rel=1e-9)


@given(st.lists(jcts, min_size=1, max_size=30), st.floats(0, 100), st.floats(0, 100))
def test_percentiles_grow_from_the_least_to_the_most(
    times: list[float], one: float, other: float
) -> None:
    ordered = sorted(times)
    low = percentile(ordered, min(one, other))
    high = percentile(ordered, max(one, other))
    assert low is not None
    assert high is not None
    assert ordered[0] <= low <= high * (1 + 1e-12)
    assert high <= ordered[-1] * (1 + 1e-12)
    assert percentile(ordered, 0) == ordered[0]
    assert percentile(ordered, 100) == ordered[-1]


def test_percentiles_by_hand() -> None:
    assert percentile([], 50) is None
    assert percentile([3.0], 99) == 3.0
    assert percentile([1.0, 2.0], 50) == 1.5
    assert percentile([float(n) for n in range(101)], 99) == 99.0


# Beside a baseline --------------------------------------------------------------------


def test_who_is_later_by_hand() -> None:
    vtc = make_run(10.0, 100.0, 20.0, 40.0)
    run = make_run(15.0, 130.0, 20.0, 10.0)
    later = compare(run, vtc)
    assert later.share == 0.5
    # In proportion: 5 s of 10 are more than 30 s of 100.
    assert (later.worst, later.worst_seconds) == (0.5, 5.0)


def test_nobody_is_later_than_in_the_same_run() -> None:
    run = make_run(10.0, 0.0, None)
    later = compare(run, run)
    assert (later.share, later.worst, later.worst_seconds) == (0.0, 0.0, 0.0)


def test_who_finished_under_one_of_the_two_only_is_left_out() -> None:
    later = compare(make_run(15.0, None, 20.0), make_run(10.0, 10.0, None))
    assert (later.share, later.worst) == (1.0, 0.5)
    nobody = compare(make_run(15.0, None), make_run(None, 10.0))
    assert (nobody.share, nobody.worst, nobody.worst_seconds) == (None, None, None)


def test_later_than_in_no_time_is_no_proportion() -> None:
    later = compare(make_run(5.0, 5.0, 5.0), make_run(0.0, 4.0, 9.0))
    assert (later.share, later.worst, later.worst_seconds) == (2 / 3, 0.25, 1.0)
    later = compare(make_run(5.0), make_run(0.0))
    assert (later.share, later.worst, later.worst_seconds) == (1.0, 0.0, 0.0)


pairs = st.lists(st.tuples(st.none() | jcts, st.none() | jcts), min_size=1, max_size=12)


@given(pairs)
def test_comparing_two_runs(both: list[tuple[float | None, float | None]]) -> None:
    run = make_run(*[mine for mine, _ in both])
    baseline = make_run(*[other for _, other in both])
    later, sooner = compare(run, baseline), compare(baseline, run)
    done = [(m, o) for m, o in both if m is not None and o is not None]
    if not done:
        assert later.share is None
        return
    assert later.share is not None
    assert sooner.share is not None
    assert later.share + sooner.share <= 1 + 1e-12
    assert later.share * len(done) == pytest.approx(sum(m > o for m, o in done))
    assert later.worst is not None
    assert later.worst_seconds is not None
    assert later.worst >= 0
    assert (later.worst > 0) <= (later.worst_seconds > 0) <= (later.share > 0)


# Summaries ----------------------------------------------------------------------------


def test_a_summary_by_hand() -> None:
    lag = Lag(worst=Fraction(7, 2), allowed=3, excess=Fraction(1, 2), largest_cost=2)
    run = make_run(
        *(4.0, 1.0, 3.0, None),
        outcomes=["finished", "finished", "cancelled", "refused", "refused", "refused"],
        lag=lag,
    )
    summary = summarise(run, make_run(6.0, 2.0, 4.0, 9.0, policy="vtc"))
    assert summary.mean_jct == pytest.approx(8 / 3)
    assert (summary.p50_jct, summary.max_jct) == (3.0, 4.0)
    assert summary.p90_jct == pytest.approx(3.8)
    assert summary.p99_jct == pytest.approx(3.98)
    assert summary.gain_vs_vtc == pytest.approx(1 - (8 / 3) / (21 / 4))
    assert (summary.share_later, summary.worst_later) == (0.0, 0.0)
    assert (summary.utilisation, summary.preemptions, summary.steps) == (0.25, 3, 17)
    assert (summary.finished, summary.cancelled, summary.refused) == (2, 1, 3)
    assert (summary.max_lag, summary.max_lag_allowed) == (Fraction(7, 2), 3)
    assert summary.max_lag_ratio == 0.25


def test_nothing_finished() -> None:
    run = make_run(None, None)
    for baseline in (run, make_run(1.0, 2.0), None):
        summary = summarise(run, baseline)
        assert summary.mean_jct is summary.p50_jct is summary.max_jct is None
        assert summary.gain_vs_vtc is summary.share_later is None
        assert summary.max_lag is summary.max_lag_ratio is None
    assert summarise(make_run(1.0, 2.0), run).gain_vs_vtc is None


def test_without_a_baseline_nothing_is_compared() -> None:
    summary = summarise(make_run(1.0, 3.0), None)
    assert summary.mean_jct == 2.0
    assert summary.gain_vs_vtc is summary.share_later is None
    assert summary.worst_later is summary.worst_later_seconds is None


def test_a_baseline_that_took_no_time() -> None:
    summary = summarise(make_run(1.0, 3.0), make_run(0.0, 0.0))
    assert summary.gain_vs_vtc is None
    assert summary.share_later == 1.0


@given(st.lists(jcts, min_size=1, max_size=9))
def test_a_run_beside_itself(times: list[float]) -> None:
    run = make_run(*times)
    summary = summarise(run, run)
    assert summary.gain_vs_vtc == (0.0 if fmean(times) else None)
    assert summary.share_later == 0.0
