"""How densely agents arrive, from a load that an engine bears to three times that."""

from typing import TYPE_CHECKING, Any

from justitia.engines.summary import BASELINE
from justitia.experiments.cells import Cell
from justitia.experiments.compared import over_seeds
from justitia.experiments.drawing import STAGED, beside, colour, dash, marker
from justitia.experiments.estimate import Estimate
from justitia.experiments.scope import Scope
from justitia.experiments.section import Experiment, Figure, Outcomes, Section
from justitia.experiments.table import Column, Table, Value, number
from justitia.experiments.words import percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

RUNS: dict[str, tuple[str, dict[str, str]]] = {
    "justitia": ("justitia", {}),
    "justitia, stage tags": ("justitia", {"tags": "stage"}),
    "srjf": ("srjf", {}),
    "fcfs": ("fcfs", {}),
    "vtc": (BASELINE, {}),
}
COLUMNS = (
    Column("density", "density", "ratio"),
    Column("load", "load", "ratio"),
    Column("policy", "policy", "text"),
    Column("mean", "mean JCT, s"),
    Column("gain", "gain on VTC", "change"),
    Column("later", "later", "percent"),
    Column("worst", "worst", "percent"),
    Column("typical", "later by", "percent"),
)


def _densities(scope: Scope) -> tuple[float, ...]:
    return (1, 2, 3) if scope.quick else (1, 1.5, 2, 2.5, 3)


def _cells_of(scope: Scope, name: str, density: float) -> list[Cell]:
    policy, options = RUNS[name]
    given: dict[str, Any] = {"options": options} if options else {}
    return [
        scope.simulate(policy, seed, density=density, **given)
        for seed in scope.all_seeds
    ]


def _cells(scope: Scope) -> list[Cell]:
    return [
        one
        for density in _densities(scope)
        for name in RUNS
        for one in _cells_of(scope, name, density)
    ]


def _section(scope: Scope, outcomes: Outcomes) -> Section:
    rows: list[dict[str, Value]] = []
    for density in _densities(scope):
        for name in RUNS:
            row = over_seeds(
                outcomes,
                _cells_of(scope, name, density),
                _cells_of(scope, BASELINE, density),
            )
            load = row["load"]
            rows.append(
                {
                    **row,
                    "density": density,
                    "policy": name,
                    "load": None if load is None else load.mean,
                }
            )
    dense = next(
        row for row in rows if (row["density"], row["policy"]) == (3, "justitia")
    )
    staged = next(
        row
        for row in rows
        if (row["density"], row["policy"]) == (2, "justitia, stage tags")
    )
    later, typical = dense["later"], dense["typical"]
    plain = next(
        row for row in rows if (row["density"], row["policy"]) == (2, "justitia")
    )
    assert isinstance(later, Estimate)
    assert isinstance(typical, Estimate)
    return Section(
        name="density",
        title="How densely agents arrive",
        about=(
            "The same agents in a window of T, T/2 and T/3, as in the paper. Density "
            "alone says nothing: the load beside it is the agents' KV token-time over "
            "what a cache that is always full would deliver in the window. Prompts "
            "take time on top, so an engine is saturated well below a load of 1."
        ),
        findings=(
            f"At density 3 {percent(1 - later.mean)} of agents are no later than under "
            f"VTC, and those later are so by {percent(typical)} on average. The "
            "paper: 92 %, and under 10 %.",
            "A tag for each stage has the bound of Theorem B; one tag an agent, the "
            "paper's rule, has not. The price at density 2 is a gain of "
            f"{_gain(staged)} in place of {_gain(plain)}: an agent of many stages goes "
            "to the end of the line with each of them. So one tag an agent is the "
            "default, and the promise that comes with stage tags is there for those "
            "who need it.",
        ),
        tables=(
            Table(
                name="density",
                title="LLaMA-7B by density",
                columns=COLUMNS,
                rows=rows,
                note="Columns as in Every scheduler.",
            ),
        ),
        figures=(_figure(rows),),
    )


def _gain(row: dict[str, Value]) -> str:
    gain = row["gain"]
    assert isinstance(gain, Estimate)
    return f"{100 * gain.mean:.1f} %"


def _figure(rows: list[dict[str, Value]]) -> Figure:
    def draw(figure: "Drawing") -> None:
        figure.set_size_inches(7.2, 3.2)
        left, right = figure.subplots(1, 2)
        for place, (name, (policy, options)) in enumerate(RUNS.items()):
            mine = [row for row in rows if row["policy"] == name]
            style = {
                "color": STAGED if options else colour(policy),
                "linestyle": ":" if options else dash(policy),
                "marker": "s" if options else marker(policy),
                "markersize": 4, "capsize": 2, "elinewidth": 0.9, "label": name,
            }  # fmt: skip
            for axes, key, scale in ((left, "mean", 1), (right, "later", 100)):
                if key == "later" and name == BASELINE:
                    continue
                points = [
                    (number(row["density"]), value)
                    for row in mine
                    if isinstance(value := row[key], Estimate)
                ]
                axes.errorbar(
                    [x + beside(place, len(RUNS), 0.14) for x, _ in points],
                    [scale * y.mean for _, y in points],
                    yerr=[scale * (y.half or 0) for _, y in points],
                    **style,
                )
        left.set(xlabel="density", ylabel="mean JCT, s")
        right.set(xlabel="density", ylabel="agents later than under VTC, %")
        left.set_ylim(0, 1.35 * max(number(row["mean"]) for row in rows))
        right.set_ylim(0, 100)
        for axes in (left, right):
            axes.set_xticks(sorted({number(row["density"]) for row in rows}))
            axes.xaxis.set_major_formatter("{x:g}")
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=5)

    return Figure(
        "density",
        "Mean JCT, and agents later than under VTC, by density; 95 % intervals over "
        "seeds. Points of one density stand side by side.",
        draw,
    )


EXPERIMENT = Experiment("density", "How densely agents arrive", _cells, _section)
