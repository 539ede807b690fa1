"""Every experiment on few agents, and the folder that comes of it."""

import csv
import io
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from justitia.experiments import (
    EXPERIMENTS,
    Column,
    Scope,
    Section,
    Store,
    Table,
    contents,
    drawing,
    paper,
    run,
)
from justitia.experiments.cells import Cell, Outcome
from justitia.policy import names
from tests.experiments.small import scope

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FAST = ("main", "cost", "noise", "density")
"""Those whose runs take a tenth of a second with few agents."""


def made(
    chosen: Sequence[str], size: Scope, folder: Path, jobs: int = 1
) -> list[Section]:
    """Run experiments, what they have in common once."""
    needed = [one for name in chosen for one in EXPERIMENTS[name].cells(size)]
    found = run(needed, Store(folder, "1"), jobs=jobs)
    return [EXPERIMENTS[name].section(size, found) for name in chosen]


def files(sections: Sequence[Section], size: Scope) -> dict[str, bytes]:
    """Return the folder's files by name."""
    return dict(contents(sections, size, version="1", command="justitia experiment x"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """The folder of the fast experiments."""
    return files(made(FAST, scope(), tmp_path_factory.mktemp("cells")), scope())


def test_every_policy_has_its_row_beside_the_papers_figures() -> None:
    assert {scheduler.name for scheduler in paper.SCHEDULERS} == set(names())
    assert paper.BY_NAME["sjf"].gain == pytest.approx(0.443, abs=5e-4)
    assert paper.BY_NAME["justitia"].gain == pytest.approx(0.575, abs=5e-4)
    assert paper.BY_NAME["agent-fcfs"].gain == pytest.approx(-0.068, abs=5e-4)
    assert paper.MEAN_JCT["justitia-c"] / paper.MEAN_JCT["justitia"] - 1 == (
        pytest.approx(paper.COMPUTE_WORSE, abs=1e-3)
    )


def test_the_folder_has_what_is_named(folder: dict[str, bytes]) -> None:
    assert {"results.json", "report.html", "jct-cdf.svg", "jct-cdf.png"} <= set(folder)
    results = json.loads(folder["results.json"])
    assert list(results["experiments"]) == list(FAST)
    for experiment in results["experiments"].values():
        for name, table in experiment["tables"].items():
            rows = list(csv.DictReader(io.StringIO(folder[f"{name}.csv"].decode())))
            assert len(rows) == len(table["rows"])
    assert not [name for name in folder if name.startswith("timings")]


def test_the_same_runs_give_the_same_bytes(tmp_path: Path) -> None:
    """With another number of processes, too, and once more from the store."""
    chosen = ("cost", "noise")
    alone = files(made(chosen, scope(), tmp_path / "one"), scope())
    for _ in range(2):
        sections = made(chosen, scope(), tmp_path / "two", jobs=2)
        assert files(sections, scope()) == alone


def test_figures_are_the_mean_of_what_was_run(tmp_path: Path) -> None:
    size = scope(seeds=2)
    (section,) = made(["noise"], size, tmp_path)
    cells = EXPERIMENTS["noise"].cells(size)
    store = Store(tmp_path, "1")
    jcts = []
    for cell in cells:
        if cell.given["policy"] == "srjf" and "predictor" not in cell.given:
            outcome = store.load(cell)
            assert outcome is not None
            jcts.append(outcome["result"]["jct"])
    assert len(jcts) == 2
    row = next(r for r in section.tables[0].rows if r["policy"] == "srjf")
    assert row["mean"].mean == pytest.approx(  # type: ignore[union-attr]
        sum(sum(one) / len(one) for one in jcts) / 2
    )


def test_the_report_needs_nothing_from_outside(folder: dict[str, bytes]) -> None:
    page = folder["report.html"].decode()
    assert not re.search(r"<(script|link|img|iframe|object)\b", page)
    assert not re.search(r"@import|url\((?!#)", page)
    # Names of XML's own vocabularies are no addresses that anybody visits.
    for place in re.findall(r'(?:src|href)="([^"]*)"', page):
        assert place.startswith("#")
    ids = re.findall(r'\bid="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    for target in re.findall(r'href="#([^"]+)"', page):
        assert target in ids


def test_what_is_given_is_escaped() -> None:
    table = Table("t", "<b>", [Column("a", "<i>", "text")], [{"a": "</td><script>"}])
    section = Section("x", "X & Y", "<u>", ("<s>",), (table,))
    page = files([section], scope())["report.html"].decode()
    for tag in ("<b>", "<i>", "<u>", "<s>", "<script>"):
        assert tag not in page
    assert "X &amp; Y" in page


def timed(cell: Cell) -> Outcome:
    """Return what a task that measures time could have come to."""
    if cell.task == "decide":
        took = {"decision_us": 4.5, "decision_p99_us": 9.0, "step_us": 30.0}
        return {"result": {"waiting": 1, "running": 1}, "timings": took}
    result = {"agents": 1, "inferences": 1_000, "mean_jct": 5.0, "ratio": 0.5}
    took = dict.fromkeys(("build_s", "run_s", "policy_s", "decision_us"), 2.0)
    return {
        "result": result,
        "timings": took | {"peak_mib": 99.0, "policy_mib": 1.0},
    }


def test_every_scheduler_can_be_told_without_colours() -> None:
    every = [scheduler.name for scheduler in paper.SCHEDULERS]
    assert len({str(drawing.dash(name)) for name in every}) == len(every)
    assert len({drawing.marker(name) for name in every}) == len(every)


def test_an_axis_of_less_than_a_decade_has_numbers() -> None:
    def fill(figure: "Figure") -> None:
        axes = figure.subplots()
        axes.plot([1_000, 10_000], [25, 49])
        axes.set(xscale="log", yscale="log")
        drawn.append(axes)

    drawn: list[Axes] = []
    drawing.render(fill, "svg")
    low, high = drawn[0].get_ylim()
    assert sum(low <= at <= high for at in drawn[0].get_yticks()) >= 2


def test_times_are_apart(tmp_path: Path) -> None:
    """Two runs that differ in their times only give the same results."""
    store = Store(tmp_path, "1")
    chosen, size = ("overhead", "scale"), scope()

    def once(factor: float) -> dict[str, bytes]:
        for name in chosen:
            for cell in EXPERIMENTS[name].cells(size):
                if cell.task in ("decide", "grow"):
                    outcome = timed(cell)
                    times = {k: factor * v for k, v in outcome["timings"].items()}
                    store.save(cell, {"result": outcome["result"], "timings": times})
        return files(made(chosen, size, tmp_path), size)

    one, other = once(1.0), once(3.0)
    differing = {name for name in one if one[name] != other[name]}
    assert {"timings.json", "timings-overhead.csv", "timings-scale.csv"} <= differing
    assert all(
        name.startswith("timings") or name == "report.html" for name in differing
    )
    assert json.loads(one["timings.json"])["experiments"]["scale"]


def test_a_predictor_is_not_asked_for_where_it_is_not_installed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("justitia.predictors.extra.LIBRARIES", ("nowhere_to_be_found",))
    assert "justitia[predictors]" in EXPERIMENTS["predictor"].missing()
