"""Arrivals: order, windows, traces, and traces that are broken."""

import gzip
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.workloads import (
    WorkloadError,
    burst,
    from_trace,
    normalised,
    poisson,
    read_stamps,
)
from tests.workloads.builders import DATA, NO_DATA

stamps = st.lists(st.integers(0, 10**6), min_size=1, max_size=30)
seeds = st.integers(0, 2**32)
windows = st.floats(2.0**-30, 1e6)


@given(st.integers(0, 50), windows, seeds)
def test_poisson_arrivals_are_sorted_and_inside(n: int, w: float, seed: int) -> None:
    times = poisson(n, w, seed)
    assert len(times) == n
    assert times == sorted(times) == poisson(n, w, seed)
    assert all(0 <= t < w for t in times)
    assert [t * 2 for t in poisson(n, w / 2, seed)] == times


def test_poisson_is_uniform() -> None:
    times = poisson(4000, 1.0, seed=1)
    for k in range(4):
        inside = sum(k / 4 <= t < (k + 1) / 4 for t in times)
        assert inside == pytest.approx(1000, abs=110)


def test_burst() -> None:
    assert burst(3) == [0.0, 0.0, 0.0]
    assert burst(0) == []


def test_b56_unsorted_stamps() -> None:
    assert normalised([5000, 0, 3000]) == [0.0, 3.0, 5.0]


def test_b56_offset_start_is_normalised() -> None:
    assert normalised([1_700_000_003_000, 1_700_000_000_000]) == [0.0, 3.0]


@given(stamps, st.integers(0, 60), windows, seeds)
def test_b56_trace_doubling_density_halves_gaps(
    trace: list[int], n: int, w: float, seed: int
) -> None:
    times = from_trace(trace, n, w, seed)
    assert len(times) == n
    assert times == sorted(times)
    assert all(0 <= t <= w for t in times)
    assert [2 * t for t in from_trace(trace, n, w / 2, seed)] == times


@given(stamps, st.integers(0, 60), seeds, st.integers(0, 10**12))
def test_b56_trace_does_not_depend_on_order_or_start(
    trace: list[int], n: int, seed: int, start: int
) -> None:
    times = from_trace(trace, n, 100.0, seed)
    assert from_trace(sorted(trace), n, 100.0, seed) == times
    assert from_trace([s + start for s in reversed(trace)], n, 100.0, seed) == times


def test_trace_is_spread_inside_its_grid() -> None:
    grid = [3000 * (k // 10) for k in range(100)]
    times = from_trace(grid, 100, 30.0, seed=4)
    assert len(set(times)) == 100
    for k in range(10):
        assert sum(3 * k <= t < 3 * k + 3 for t in times) == 10


def test_trace_keeps_its_shape() -> None:
    dense_then_sparse = [*range(0, 50_000, 100), *range(50_000, 100_000, 1000)]
    times = from_trace(dense_then_sparse, 200, 10.0, seed=2)
    early = sum(t < 5 for t in times)
    assert early == pytest.approx(200 * 500 / 550, abs=15)


def test_more_arrivals_than_stamps() -> None:
    assert len(from_trace([0, 1000], 7, 2.0, seed=0)) == 7


def test_fine_stamps_are_not_moved() -> None:
    assert from_trace([0, 0.25, 1000], 3, 1.0, seed=0) == [0.0, 0.00025, 1.0]


def test_one_moment_is_a_burst() -> None:
    assert from_trace([500, 500], 2, 9.0, seed=0) == [0.0, 0.0]


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), None, "3", True])
def test_b56_wrong_stamp_names_the_row(wrong: object) -> None:
    with pytest.raises(WorkloadError, match="timestamp of row 2"):
        from_trace([0, wrong], 1, 1.0, 0)  # type: ignore[list-item]
    with pytest.raises(WorkloadError, match="timestamp of row 2"):
        normalised([0, wrong])  # type: ignore[list-item]


@pytest.mark.parametrize("wrong", [-1, float("nan"), float("inf"), None, "3"])
def test_wrong_window_is_refused(wrong: float) -> None:
    with pytest.raises(WorkloadError, match="window of arrivals"):
        poisson(1, wrong, 0)
    with pytest.raises(WorkloadError, match="window of arrivals"):
        from_trace([0], 1, wrong, 0)


@pytest.mark.parametrize("wrong", [-1, 2.0, None, True])
def test_wrong_number_is_refused(wrong: int) -> None:
    with pytest.raises(WorkloadError, match="number of arrivals"):
        poisson(wrong, 1.0, 0)
    with pytest.raises(WorkloadError, match="number of arrivals"):
        burst(wrong)
    with pytest.raises(WorkloadError, match="number of arrivals"):
        from_trace([0], wrong, 1.0, 0)


def test_empty_trace() -> None:
    assert from_trace([], 0, 1.0, 0) == normalised([]) == []
    with pytest.raises(WorkloadError, match="trace of no stamps"):
        from_trace([], 1, 1.0, 0)


def test_read_mooncake_stamps(tmp_path: Path) -> None:
    file = tmp_path / "t.jsonl.gz"
    file.write_bytes(gzip.compress(b'{"timestamp": 3000}\r\n\n{"timestamp": 0}\n'))
    assert read_stamps(file) == [3000, 0]


def test_read_vtc_stamps(tmp_path: Path) -> None:
    file = tmp_path / "t.csv"
    file.write_text("req_id,req_time\n0,0.0\n1,0.25\n")
    assert read_stamps(file) == [0.0, 250.0]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('{"timestamp": 0}\n{"t": 1}\n', "line 2: timestamp: is missing"),
        ('{"timestamp": 0}\n\n{"timestamp": -3}\n', "line 3: timestamp: it must be"),
        ('{"timestamp": NaN}\n', "line 1: timestamp: it must be a finite number"),
        ('{"timestamp": 1e999}\n', "line 1: timestamp: it must be a finite number"),
        ('{"timestamp": "0"}\n', "line 1: timestamp: it must be a finite number"),
        ('{"timestamp": true}\n', "line 1: timestamp: it must be a finite number"),
        ('{"timestamp": null}\n', "line 1: timestamp: it must be a finite number"),
        ("req_time\n0\n\nnan\n", "line 4: req_time: must be a finite number"),
        ("req_time\n-1\n", "line 2: req_time: must be a finite number"),
        ("req_time\n1e999\n", "line 2: req_time: must be a finite number"),
        ("a,req_time\n1,\n", "line 2: req_time: must be a finite number"),
        ("a,req_time\n1\n", "line 2: has 1 cells, not 2"),
        ("a,b\n1,2\n", "line 1: not a trace"),
        ("", "there are no time stamps"),
        ("req_time\n", "there are no time stamps"),
    ],
)
def test_b56_wrong_row_names_file_row_and_field(
    tmp_path: Path, text: str, says: str
) -> None:
    file = tmp_path / "trace"
    file.write_text(text)
    with pytest.raises(WorkloadError) as error:
        read_stamps(file)
    assert str(file) in str(error.value)
    assert says in str(error.value)


@pytest.mark.skipif(not DATA.is_dir(), reason=NO_DATA)
def test_recorded_traces() -> None:
    mooncake = read_stamps(DATA / "mooncake" / "conversation_trace.jsonl")
    assert len(mooncake) == 12_031
    times = from_trace(mooncake, 300, 600.0, seed=7)
    assert len(set(times)) == 300
    assert times[-1] == pytest.approx(600, rel=0.1)
    assert len(read_stamps(DATA / "vtc" / "real_trace.csv")) == 1500
