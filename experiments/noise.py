"""Predictions that are wrong by a factor of up to λ."""

from typing import TYPE_CHECKING

from justitia.engines.summary import BASELINE
from justitia.experiments import paper
from justitia.experiments.cells import Cell
from justitia.experiments.compared import change, over_seeds
from justitia.experiments.drawing import INK, beside, colour, dash, marker
from justitia.experiments.estimate import Estimate, estimate
from justitia.experiments.scope import Scope
from justitia.experiments.section import Experiment, Figure, Outcomes, Section
from justitia.experiments.table import Column, Table, Value, number
from justitia.experiments.words import percent, side

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

DENSITY = 2
POLICIES = ("justitia", "srjf")
COLUMNS = (
    Column("policy", "policy", "text"),
    Column("spread", "λ", "ratio"),
    Column("error", "mean error", "percent"),
    Column("mean", "mean JCT, s"),
    Column("change", "against exact", "change"),
    Column("paper", "paper", "change", paper=True),
    Column("gain", "gain on VTC", "change"),
    Column("later", "later", "percent"),
    Column("worst", "worst", "percent"),
)


def _spreads(scope: Scope) -> tuple[float, ...]:
    return (1.0, 2.0, 3.0) if scope.quick else (1.0, 1.25, 1.5, 2.0, 2.5, 3.0)


def _cells_of(scope: Scope, policy: str, spread: float) -> list[Cell]:
    given = {} if spread == 1 else {"predictor": f"noisy:{spread:g}"}
    return [
        scope.simulate(policy, seed, density=DENSITY, **given)
        for seed in scope.all_seeds
    ]


def _cells(scope: Scope) -> list[Cell]:
    noisy = [
        one
        for policy in POLICIES
        for spread in _spreads(scope)
        for one in _cells_of(scope, policy, spread)
    ]
    return noisy + _cells_of(scope, BASELINE, 1)


def _rows(scope: Scope, outcomes: Outcomes, policy: str) -> list[dict[str, Value]]:
    exact = _cells_of(scope, policy, 1)
    rows: list[dict[str, Value]] = []
    for spread in _spreads(scope):
        cells = _cells_of(scope, policy, spread)
        theirs = paper.NOISE_COSTS if (policy, spread) == ("justitia", 3) else None
        rows.append(
            {
                "policy": policy,
                "spread": spread,
                "error": estimate(outcomes[one]["result"]["error"] for one in cells),
                "change": change(outcomes, cells, exact),
                "paper": theirs,
                **over_seeds(outcomes, cells, _cells_of(scope, BASELINE, 1)),
            }
        )
    return rows


def _section(scope: Scope, outcomes: Outcomes) -> Section:
    rows = {policy: _rows(scope, outcomes, policy) for policy in POLICIES}
    last = {policy: rows[policy][-1]["change"] for policy in POLICIES}
    mine, theirs = last["justitia"], last["srjf"]
    assert isinstance(mine, Estimate)
    assert isinstance(theirs, Estimate)
    table = Table(
        name="noise",
        title=f"Predictions off by up to λ: LLaMA-7B, density {DENSITY}",
        columns=COLUMNS,
        rows=[row for policy in POLICIES for row in rows[policy]],
        note="Each agent's costs and lengths are multiplied by one factor, log-uniform "
        "in [1/λ, λ], the same under every policy. mean error: of |predicted - real| / "
        "real. against exact: how much longer the mean JCT is than with λ = 1.",
    )
    return Section(
        name="noise",
        title="Wrong predictions",
        about=(
            "Justitia and SRJF with predictions that are wrong by a factor of up to λ "
            "either way. The paper: at λ = 3 Justitia's mean JCT is 9.5 % longer."
        ),
        findings=(
            f"At λ = 3 Justitia's mean JCT is {percent(mine, 1)} "
            f"{side(mine, 'longer', 'shorter')} than with exact costs (the paper: "
            f"9.5 % longer), SRJF's {percent(theirs, 1)} "
            f"{side(theirs, 'longer', 'shorter')}. The order of agents is what "
            "matters, and costs of the paper's classes lie further apart than a "
            "factor of 3: most pairs stay in order.",
        ),
        tables=(table,),
        figures=(_figure(rows),),
        highlights=(
            (
                "mean JCT with λ = 3 against exact costs",
                f"{100 * mine.mean:+.1f} %",
                "+9.5 %",
            ),
        ),
    )


def _spread(row: dict[str, Value]) -> float:
    return number(row["spread"])


def _figure(rows: dict[str, list[dict[str, Value]]]) -> Figure:
    def draw(figure: "Drawing") -> None:
        figure.set_size_inches(6, 3.2)
        axes = figure.subplots()
        for place, (policy, mine) in enumerate(rows.items()):
            points = [
                (number(row["spread"]), row["change"])
                for row in mine
                if isinstance(row["change"], Estimate)
            ]
            axes.errorbar(
                [x + beside(place, len(rows), 0.03) for x, _ in points],
                [100 * y.mean for _, y in points],
                yerr=[100 * (y.half or 0) for _, y in points],
                color=colour(policy), linestyle=dash(policy), marker=marker(policy),
                markersize=4, capsize=2, elinewidth=0.9, label=policy,
            )  # fmt: skip
        axes.plot(
            3, 100 * paper.NOISE_COSTS, marker="D", markerfacecolor="white",
            markeredgewidth=1.3, markeredgecolor="black", color=INK, zorder=4,
            linestyle="none", label="the paper",
        )  # fmt: skip
        spreads = sorted({x for mine in rows.values() for x in map(_spread, mine)})
        axes.set_xticks(spreads)
        axes.xaxis.set_major_formatter("{x:g}")
        axes.set(xlabel="λ", ylabel="mean JCT against exact, %")
        axes.legend(loc="upper left")

    return Figure(
        "noise",
        "How much longer the mean JCT is with predictions that are off by up to λ, "
        "with 95 % intervals over seeds.",
        draw,
    )


EXPERIMENT = Experiment("noise", "Wrong predictions", _cells, _section)
