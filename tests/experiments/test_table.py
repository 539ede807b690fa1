"""Tables: what people read, and what a CSV holds."""

import csv
import io

import pytest

from justitia.experiments.estimate import Estimate, estimate
from justitia.experiments.table import Column, Table, Value


@pytest.mark.parametrize(
    ("form", "value", "written"),
    [
        ("text", "vtc", "vtc"),
        ("number", None, "-"),
        ("number", 35.27, "35.3"),
        ("number", 1234.5, "1,234"),
        ("number", Estimate(35.27, 2.137, 5), "35.3 ± 2.1"),
        ("number", Estimate(35.27, None, 1), "35.3"),
        ("count", 1_000_000, "1,000,000"),
        ("percent", 0.187, "18.7 %"),
        ("percent", 0.9999, "100 %"),
        ("percent", Estimate(12.345, 0.5, 2), "1,234 ± 50.0 %"),
        ("change", -0.019, "-1.9 %"),
        ("change", Estimate(0.36, 0.01, 3), "+36.0 ± 1.0 %"),
        ("mega", 9_370_000, "9.37"),
        ("ratio", -0.0001, "0.00"),
    ],
)
def test_how_a_value_is_written(form: str, value: Value, written: str) -> None:
    assert Column("key", "heading", form).written(value) == written


def table() -> Table:
    return Table(
        "made",
        "Made up",
        [Column("policy", "policy", "text"), Column("mean", "mean JCT, s")],
        [
            {"policy": "a, b", "mean": Estimate(2.0, 0.5, 3)},
            {"policy": "vtc", "mean": Estimate(1.0, None, 1)},
            {"policy": "none", "mean": None},
        ],
        best={"mean": "low"},
    )


def test_a_csv_has_an_estimate_in_two_columns() -> None:
    rows = list(csv.DictReader(io.StringIO(table().csv())))
    assert [row["mean"] for row in rows] == ["2.0", "1.0", ""]
    assert [row["mean_half"] for row in rows] == ["0.5", "", ""]
    assert rows[0]["policy"] == "a, b"


def test_the_best_of_a_column_is_marked() -> None:
    assert table().best_rows() == {"mean": 1}


def test_an_interval_is_students() -> None:
    found = estimate([1.0, None, 2.0, 3.0, 4.0])
    assert found is not None
    assert (found.mean, found.runs) == (2.5, 4)
    # t of 3 degrees of freedom at 97.5 % is 3.1824; the deviation is 1.2910.
    assert found.half == pytest.approx(3.1824 * 1.2910 / 2, rel=1e-4)


def test_nothing_is_estimated_from_nothing() -> None:
    assert estimate([None]) is None
    assert estimate([]) is None


def test_a_figure_of_the_paper_is_written_as_the_paper_has_it() -> None:
    for value, written in ((412.5, "412.5"), (2.16, "2.16"), (164.2, "164.2")):
        assert Column("mean", "paper", paper=True).written(value) == written


def test_a_change_that_is_none_has_no_minus() -> None:
    assert Column("gain", "gain", "change").written(-0.0003) == "+0.0 %"
