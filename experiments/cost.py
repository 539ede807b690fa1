"""What to count as the cost of an agent: memory held, tokens computed, or reserved."""

from typing import TYPE_CHECKING, Any

from justitia.engines.summary import BASELINE
from justitia.experiments import paper
from justitia.experiments.cells import Cell
from justitia.experiments.compared import change, over_seeds
from justitia.experiments.drawing import colour, cut_off, interval_bars
from justitia.experiments.estimate import Estimate
from justitia.experiments.scope import Scope
from justitia.experiments.section import Experiment, Figure, Outcomes, Section
from justitia.experiments.table import Column, Table, Value, number
from justitia.experiments.words import percent, side

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

DENSITY = 2
COSTS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("KV token-time", "justitia", {}),
    ("compute tokens", "justitia-c", {}),
    ("reserved token-time", "justitia", {"cost": "reserved"}),
    ("(VTC)", BASELINE, {}),
)
"""What is counted, by which policy, with which options."""
SETTINGS: dict[str, tuple[str, dict[str, str]]] = {
    "priced": ("Prompts take their time", {}),
    "free": ("Prompts take no time", {"prompts": "free"}),
    "reserving": ("Prompts take their time, memory is reserved", {"admission": "max"}),
}
"""By name: a title, and what of the engine is other than in the main table."""
COLUMNS = (
    Column("cost", "cost", "text"),
    Column("policy", "policy", "text"),
    Column("mean", "mean JCT, s"),
    Column("change", "against KV token-time", "change"),
    Column("paper", "paper", "change", paper=True),
    Column("gain", "gain on VTC", "change"),
    Column("later", "later", "percent"),
    Column("worst", "worst", "percent"),
)


def _cells_of(scope: Scope, place: int, setting: str) -> list[Cell]:
    _, policy, options = COSTS[place]
    given: dict[str, Any] = dict(SETTINGS[setting][1])
    if options:
        given["options"] = options
    return [
        scope.simulate(policy, seed, density=DENSITY, **given)
        for seed in scope.all_seeds
    ]


def _cells(scope: Scope) -> list[Cell]:
    return [
        one
        for setting in SETTINGS
        for place in range(len(COSTS))
        for one in _cells_of(scope, place, setting)
    ]


def _table(scope: Scope, outcomes: Outcomes, setting: str) -> Table:
    cells = [_cells_of(scope, place, setting) for place in range(len(COSTS))]
    rows: list[dict[str, Value]] = []
    for (name, policy, _), mine in zip(COSTS, cells, strict=True):
        same = policy == "justitia" and mine == cells[0]
        theirs = paper.COMPUTE_WORSE if policy == "justitia-c" else None
        rows.append(
            {
                "cost": name,
                "policy": policy,
                "change": None if same else change(outcomes, mine, cells[0]),
                "paper": theirs,
                **over_seeds(outcomes, mine, cells[-1]),
            }
        )
    return Table(
        name=f"cost-{setting}",
        title=f"{SETTINGS[setting][0]}: LLaMA-7B, density {DENSITY}",
        columns=COLUMNS,
        rows=rows,
        note="against KV token-time: how much longer the mean JCT is than with it. "
        "paper: Justitia/C is 42.3 % worse than Justitia. later, worst: see Every "
        "scheduler.",
        best={"mean": "low"},
    )


def _section(scope: Scope, outcomes: Outcomes) -> Section:
    tables = {setting: _table(scope, outcomes, setting) for setting in SETTINGS}

    def changed(setting: str, place: int) -> Estimate:
        value = tables[setting].rows[place]["change"]
        assert isinstance(value, Estimate)
        return value

    priced, free = changed("priced", 1), changed("free", 1)
    preempted = [
        sum(outcomes[one]["result"]["preemptions"] for one in _cells_of(scope, 0, name))
        for name in ("priced", "reserving")
    ]
    moved = [
        change(
            outcomes,
            _cells_of(scope, place, "reserving"),
            _cells_of(scope, place, "priced"),
        )
        for place in range(len(COSTS))
    ]
    most = max(abs(one.mean) for one in moved if one is not None)
    findings = [
        f"With prompts that take their time Justitia/C is {percent(priced, 1)} "
        f"{side(priced, 'worse', 'better')} than Justitia; with prompts that take "
        f"none it is {percent(free, 1)} {side(free, 'worse', 'better')}. The paper: "
        "42.3 % worse.",
        "KV token-time counts the memory that an inference holds while it decodes. It "
        "does not count the time that its prompt takes to compute, and sim has no "
        "prefix cache, so the 50 turns of an ALFWI agent compute 50 long prompts: "
        "time that compute tokens (p + 2d) see and KV token-time does not. Where "
        "prompts are free, memory is what is scarce, and counting it is right. On an "
        "engine with a prefix cache the truth lies between the two; the paper's "
        "engine computes prompts far faster beside its decoding than this preset "
        "does, or its agents share more of them.",
        f"Reserving an inference's longest output before it starts ends preemption "
        f"({preempted[0]:,} under Justitia over all seeds, then {preempted[1]:,}). "
        f"Means change by at most {percent(most, 1)}: what is never computed twice "
        "weighs about as much as the memory that lies idle. Reserved token-time, "
        "(p + d)·d, orders almost as KV token-time does.",
    ]
    return Section(
        name="cost",
        title="What to count as cost",
        about=(
            "Justitia with three costs: KV tokens held summed over the tokens produced "
            "(the paper's), tokens computed with a produced one worth two (the paper's "
            "ablation Justitia/C), and KV tokens set aside over the tokens produced; "
            "on an engine whose prompts take their time, and on the same one whose "
            "prompts take none."
        ),
        findings=findings,
        tables=list(tables.values()),
        figures=[_figure(tables)],
        highlights=(
            ("Justitia/C's mean JCT against Justitia's", _signed(priced), "+42.3 %"),
            ("the same where prompts take no time", _signed(free), ""),
        ),
    )


def _signed(value: Estimate) -> str:
    return f"{100 * value.mean:+.1f} %"


def _figure(tables: dict[str, Table]) -> Figure:
    def draw(figure: "Drawing") -> None:
        figure.set_size_inches(7, 3)
        every = figure.subplots(1, len(tables))
        fills = [colour("justitia"), colour("justitia-c"), "#4f9d5d", colour("vtc")]
        for axes, (setting, table) in zip(every, tables.items(), strict=True):
            for place, row in enumerate(table.rows):
                mean = row["mean"]
                assert isinstance(mean, Estimate)
                axes.bar(
                    place, mean.mean, width=0.66, color=fills[place], yerr=mean.half,
                    error_kw=interval_bars(),
                )  # fmt: skip
            axes.set_xticks(
                range(len(table.rows)),
                ["KV", "compute", "reserved", "VTC"],
                rotation=30,
            )
            axes.set_title(
                {"priced": "prompts take time", "free": "prompts take none",
                 "reserving": "memory reserved"}[setting], fontsize=9,
            )  # fmt: skip
            axes.grid(axis="x", visible=False)
            highest = max(number(row["mean"]) for row in table.rows)
            axes.set_ylim(0, 1.35 * highest)
            means = [row["mean"] for row in table.rows]
            cut_off(
                axes,
                [m.mean + (m.half or 0) for m in means if isinstance(m, Estimate)],
            )
        every[0].set_ylabel("mean JCT, s")

    return Figure(
        "cost-means",
        "Mean JCT by what is counted as cost, with 95 % intervals over seeds; an arrow "
        "where one goes on.",
        draw,
    )


EXPERIMENT = Experiment("cost", "What to count as cost", _cells, _section)
