"""How long a decision takes."""

from typing import TYPE_CHECKING

from justitia.experiments import paper
from justitia.experiments.cells import Cell, cell
from justitia.experiments.drawing import colour, dash, marker, outside_legend
from justitia.experiments.scope import Scope
from justitia.experiments.section import Experiment, Figure, Outcomes, Section
from justitia.experiments.table import Column, Table, Value, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

SHOWN = 1_000
"""Waiting inferences of the findings."""


def _sizes(scope: Scope) -> tuple[int, ...]:
    return (100, 1_000, 10_000) if scope.quick else (100, 1_000, 10_000, 100_000)


def _cell(policy: str, waiting: int) -> Cell:
    return cell("decide", size=waiting, policy=policy, waiting=waiting)


def _cells(scope: Scope) -> list[Cell]:
    return [
        _cell(scheduler.name, waiting)
        for waiting in _sizes(scope)
        for scheduler in paper.SCHEDULERS
    ]


def _section(scope: Scope, outcomes: Outcomes) -> Section:
    columns = [
        Column("policy", "policy", "text"),
        Column("paper_ms", "paper, ms", "count", paper=True),
    ]
    columns += [
        Column(f"decision_{size}", f"{size:,} wait, µs") for size in _sizes(scope)
    ]
    columns.append(Column("step", "a step of 64, µs"))
    rows: list[dict[str, Value]] = []
    for scheduler in paper.SCHEDULERS:
        times = {
            size: outcomes[_cell(scheduler.name, size)]["timings"]
            for size in _sizes(scope)
        }
        rows.append(
            {
                "policy": scheduler.name,
                "paper_ms": paper.DECISION_MS.get(scheduler.name),
                **{f"decision_{n}": t["decision_us"] for n, t in times.items()},
                "step": times[SHOWN]["step_us"],
            }
        )
    return Section(
        name="overhead",
        title="Time of a decision",
        about=(
            "A decision: an agent of one inference arrives and is put in line, and "
            "the head of the line is found and started. The paper gives below 10 ms "
            "for Justitia, about 5 ms for VTC and about 55 ms for SJF, its prediction "
            "included; predicting is timed in its own section."
        ),
        findings=(
            "Ours are microseconds where the paper has milliseconds: the policy is "
            "told of events and keeps its line sorted, it does not sort it anew for "
            "each step. A step of these presets takes 12 to 45 ms, so a decision is a "
            "small part of one whatever the policy. The figures are this machine's "
            "and differ from run to run; benchmarks/ has them as ratios.",
        ),
        tables=(
            Table(
                name="overhead",
                title="Microseconds of a decision, median of 1,000",
                columns=columns,
                rows=rows,
                note="By how many inferences wait, in agents of ten. a step of 64: "
                "telling the policy of one engine step with 64 running, "
                f"{SHOWN:,} waiting.",
                timed=True,
            ),
        ),
        figures=(_figure(scope, rows),),
    )


def _figure(scope: Scope, rows: list[dict[str, Value]]) -> Figure:
    def draw(figure: "Drawing") -> None:
        axes = figure.subplots()
        for row in rows:
            name = str(row["policy"])
            axes.plot(
                _sizes(scope), [number(row[f"decision_{n}"]) for n in _sizes(scope)],
                color=colour(name), linestyle=dash(name), marker=marker(name),
                markersize=4.5, label=name,
            )  # fmt: skip
        axes.set(xscale="log", xlabel="inferences waiting", ylabel="µs a decision")
        axes.set_ylim(0)
        outside_legend(axes)

    return Figure("overhead", "Time of a decision by what waits.", draw, timed=True)


EXPERIMENT = Experiment("overhead", "Time of a decision", _cells, _section)
