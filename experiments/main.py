"""The main table: every scheduler on every preset, at three densities."""

from collections.abc import Mapping, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, Any

from justitia.engines.summary import BASELINE
from justitia.experiments import paper
from justitia.experiments.cells import Cell
from justitia.experiments.compared import over_seeds
from justitia.experiments.drawing import GRID, INK, colour, dash, outside_legend
from justitia.experiments.estimate import Estimate
from justitia.experiments.scope import PRESETS, Scope, size_of
from justitia.experiments.section import Experiment, Figure, Outcomes, Section
from justitia.experiments.table import Column, Table, Value, number
from justitia.experiments.words import percent, seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

DENSITIES = (1, 2, 3)
SHOWN = 2
"""The density of the figures, and of the findings."""
DISPLACING = "mlfq"
GENEROUS = {"preemption": "swap", "swaps": "free"}
"""FastServe moves the KV of what gives way while it computes: so to host memory, and at
no cost at all. With what gives way computed again it would lose most of its time."""
DRAWN = ("justitia", "justitia-c", "srjf", "vtc", "fcfs", "agent-fcfs")
"""Policies of the distribution of JCT; more would hide each other."""
_SIZES = {"small": "o", "medium": "s", "large": "^", "other": "x"}

Rows = Mapping[str, Mapping[str, Value]]
"""By policy."""

COLUMNS = (
    Column("policy", "policy", "text"),
    Column("system", "stands for", "text"),
    Column("mean", "mean JCT, s"),
    Column("paper_mean", "paper", paper=True),
    Column("gain", "gain on VTC", "change"),
    Column("paper_gain", "paper", "change", paper=True),
    Column("later", "later", "percent"),
    Column("worst", "worst", "percent"),
    Column("typical", "later by", "percent"),
    Column("ratio", "lag", "ratio"),
)
_NOTE = (
    "gain: by how much the mean is below VTC's. later: agents that finish later than "
    "under VTC; worst: the one delayed most in proportion; later by: the mean delay of "
    "those that are later. lag: the largest (lag - allowed) of any first start, over "
    "the cost of the largest inference; where Theorem B holds it is not above 0. "
    "±: 95 % interval of the mean over seeds, by Student's t. mlfq: what gives way is "
    "moved to host memory at no cost, for all others it is computed again."
)
_PAPER_NOTE = (
    " paper: LLaMA-7B on one A100 and its own workload, one figure a scheduler; it "
    "says of Justitia: 8 % of agents later than under VTC, the worst by 26 %, and at "
    "density 3 those later by under 10 % on average."
)


def _densities(scope: Scope, preset: str) -> Sequence[int]:
    """Return the densities of a preset: the quick form has all three of one."""
    return DENSITIES if preset == PRESETS[0] or not scope.quick else (SHOWN,)


def _cells_of(scope: Scope, policy: str, preset: str, density: int) -> list[Cell]:
    given: dict[str, Any] = GENEROUS if policy == DISPLACING else {}
    return [
        scope.simulate(policy, seed, preset=preset, density=density, **given)
        for seed in scope.all_seeds
    ]


def _policies() -> list[str]:
    return [scheduler.name for scheduler in paper.SCHEDULERS]


def _cells(scope: Scope) -> list[Cell]:
    return [
        one
        for preset in PRESETS
        for density in _densities(scope, preset)
        for policy in _policies()
        for one in _cells_of(scope, policy, preset, density)
    ]


def _table(scope: Scope, outcomes: Outcomes, preset: str, density: int) -> Table:
    first = preset == PRESETS[0]
    baselines = _cells_of(scope, BASELINE, preset, density)
    rows: list[dict[str, Value]] = []
    load: Estimate | None = None
    for scheduler in paper.SCHEDULERS:
        cells = _cells_of(scope, scheduler.name, preset, density)
        row = over_seeds(outcomes, cells, baselines)
        load = row.pop("load")
        rows.append(
            {
                "policy": scheduler.name,
                "system": scheduler.system,
                **row,
                "paper_mean": scheduler.mean_jct,
                "paper_gain": scheduler.gain,
            }
        )
    loaded = "" if load is None else f", load {load.mean:.2g}"
    return Table(
        name=f"main-{preset}-{density}",
        title=f"{preset}, density {density}{loaded}",
        columns=[column for column in COLUMNS if first or not column.paper],
        rows=rows,
        note=_NOTE + _PAPER_NOTE * first,
        best={"mean": "low", "gain": "high"},
    )


def _section(scope: Scope, outcomes: Outcomes) -> Section:
    tables = {
        (preset, density): _table(scope, outcomes, preset, density)
        for preset in PRESETS
        for density in _densities(scope, preset)
    }
    shown = {str(row["policy"]): row for row in tables[PRESETS[0], SHOWN].rows}
    mine = shown["justitia"]
    return Section(
        name="main",
        title="Every scheduler",
        about=(
            "Agents of the paper's nine classes and its mix (72 % small, 26 % medium, "
            "2 % large) on the three testbeds, at densities 1, 2 and 3. The paper: "
            "Justitia's mean JCT is 57.5 % below VTC's and within 10.5 % of SRJF's."
        ),
        findings=_findings(shown, _alike(scope, outcomes)),
        tables=list(tables.values()),
        figures=_figures(scope, outcomes, shown),
        highlights=(
            ("mean JCT below VTC's, density 2", _word(mine["gain"]), "57.5 %"),
            ("agents later than under VTC", _word(mine["later"]), "8 %"),
        ),
    )


def _word(value: Value) -> str:
    return percent(value if isinstance(value, Estimate) else None)


def _alike(scope: Scope, outcomes: Outcomes) -> list[tuple[str, str]]:
    """Return pairs of policies under which every agent of every run ends alike."""
    runs = {
        policy: [
            outcomes[one]["result"]["jct"]
            for preset in PRESETS
            for density in _densities(scope, preset)
            for one in _cells_of(scope, policy, preset, density)
        ]
        for policy in _policies()
    }
    return [(a, b) for a, b in combinations(runs, 2) if runs[a] == runs[b]]


def _findings(shown: Rows, alike: list[tuple[str, str]]) -> list[str]:
    def mean(policy: str) -> float:
        return number(shown[policy]["mean"])

    to_srjf = mean("justitia") / mean("srjf") - 1
    found = [
        f"At density {SHOWN} on LLaMA-7B Justitia's mean is "
        f"{percent(1 - mean('justitia') / mean('vtc'))} below VTC's (the paper: "
        f"57.5 %), and {percent(to_srjf, 1)} {'above' if to_srjf > 0 else 'below'} "
        "SRJF's (the paper: 10.5 % above). SRJF is the best that can be done for the "
        "mean when costs are known, and promises nothing to anybody.",
        f"FCFS ({seconds(mean('fcfs'))}) and Parrot ({seconds(mean('agent-fcfs'))}) "
        f"stand beside VTC's {seconds(mean('vtc'))}; the paper has all three within "
        "7 %. VTC shares equally at every instant, so small agents, 72 % of all, pass "
        "the large ones under VTC and wait behind them under FCFS. We see no way to "
        "get the paper's figures from that definition of VTC under such a load.",
        f"SJF comes to {seconds(mean('sjf'))} (the paper: 44 % better than VTC, "
        "printed as 39.5 %). It orders inferences, not agents: an agent ends with its "
        "last inference, and agents of many short inferences (ALFWI has up to 50 in "
        "sequence) are no smaller for it.",
        f"{_word(shown['justitia']['later'])} of agents are later than under VTC, the "
        f"worst by {_word(shown['justitia']['worst'])} in the mean over seeds; the "
        "paper says 8 % and 26 %. Under equal shares an agent of the middle is served "
        "from its first second on; under Justitia it waits for its turn, and is later "
        "where that comes after an equal share would have been through.",
        f"Justitia/C comes to {seconds(mean('justitia-c'))}: What to count as cost "
        "says why.",
        f"FairServe comes to {seconds(mean('fairserve'))}. A call counts when it has "
        "ended, so all that an agent has ready starts on its first turn; and a usual "
        "call counts 1 whatever its class, so large agents are not held back by being "
        "large.",
        f"MLFQ comes to {seconds(mean('mlfq'))}, though moving KV out of its way is "
        "free for it here (computed again, it would be far more). It shares the engine "
        "among inferences by turns, and an agent ends with its last one; its quantum, "
        "10 ms as in FastServe's code, is shorter than a step.",
    ]
    for one, other in alike:
        said = f"{one} and {other} end every agent of every run at the same moment"
        if {one, other} == {"agent-fcfs", "ayo"}:
            said += (
                ": the stages of these agents are barriers, so that all of an agent "
                "that is ready is of one depth, and Ayo's order by depth inside the "
                "agent has nothing to choose"
            )
        found.append(f"{said}.")
    return found


def _figures(scope: Scope, outcomes: Outcomes, shown: Rows) -> list[Figure]:
    def pooled(policy: str, key: str = "jct") -> list[Any]:
        return [
            value
            for one in _cells_of(scope, policy, PRESETS[0], SHOWN)
            for value in outcomes[one]["result"][key]
        ]

    def draw_cdf(figure: "Drawing") -> None:
        axes = figure.subplots()
        for policy in DRAWN:
            times = sorted(time for time in pooled(policy) if time is not None)
            shares = [(done + 1) / len(times) for done in range(len(times))]
            axes.step(
                times, shares, where="post", label=policy,
                color=colour(policy), linestyle=dash(policy),
            )  # fmt: skip
        axes.set(xscale="log", xlabel="JCT, s", ylabel="share of agents done")
        axes.set_ylim(0, 1.01)
        outside_legend(axes)

    def draw_scatter(figure: "Drawing") -> None:
        figure.set_size_inches(5.2, 4.4)
        axes = figure.subplots()
        mine, theirs = pooled("justitia"), pooled(BASELINE)
        kinds: list[str] = [str(kind) for kind in pooled("justitia", "kind")]
        for place, (size, marker) in enumerate(_SIZES.items()):
            points = [
                (x, y)
                for x, y, kind in zip(theirs, mine, kinds, strict=True)
                if size_of(kind) == size and x and y
            ]
            if points:
                axes.scatter(
                    [x for x, _ in points], [y for _, y in points],
                    s=11 + 9 * place, marker=marker, alpha=0.55, linewidths=0,
                    label=size,
                    color=("#2f7fb8", "#e8a13a", "#d1495b", "#7a828c")[place],
                )  # fmt: skip
        ends = [min(t for t in theirs if t), max(t for t in theirs if t)]
        axes.plot(ends, ends, color=GRID, linewidth=0.9)
        axes.set(xscale="log", yscale="log", xlabel="JCT under VTC, s")
        axes.set_ylabel("JCT under Justitia, s")
        axes.legend(title="below the line: sooner", loc="upper left")

    def draw_means(figure: "Drawing") -> None:
        axes = figure.subplots()
        # Runs of one seed are compared with one another, so that the intervals are
        # those of the ratio.
        gains = {name: shown[name]["gain"] for name in shown}
        order = sorted(gains, key=lambda name: number(gains[name]))
        longest = 0.0
        for place, name in enumerate(order):
            gain = gains[name]
            assert isinstance(gain, Estimate)
            axes.barh(
                place, 1 - gain.mean, height=0.62, color=colour(name), xerr=gain.half,
                error_kw={"ecolor": GRID, "elinewidth": 1.1, "capsize": 2},
            )  # fmt: skip
            longest = max(longest, 1 - gain.mean)
            theirs = paper.MEAN_JCT.get(name)
            if theirs is not None:
                axes.plot(
                    theirs / paper.MEAN_JCT[BASELINE], place, marker="D",
                    markersize=5, markerfacecolor="none", markeredgewidth=1.3,
                    color=INK, linestyle="none",
                    label="the paper" if name == BASELINE else None,
                )  # fmt: skip
        axes.set_yticks(range(len(order)), order)
        axes.set_xlim(0, 1.25 * max(longest, 1.1))  # a wide interval is cut off
        axes.axvline(1, color=GRID, linewidth=0.9)
        axes.set_xlabel("mean JCT over VTC's")
        axes.grid(axis="y", visible=False)
        axes.legend(loc="upper right")

    seeds = f"all {scope.seeds} seeds together" if scope.seeds > 1 else "one seed"
    return [
        Figure(
            "mean-jct",
            f"Mean JCT over VTC's, LLaMA-7B, density {SHOWN}: bars ours with their "
            "95 % interval, diamonds the paper's.",
            draw_means,
        ),
        Figure(
            "jct-cdf",
            f"Share of agents that are done within some time; LLaMA-7B, density "
            f"{SHOWN}, {seeds}.",
            draw_cdf,
        ),
        Figure(
            "fairness-scatter",
            f"Each agent's JCT under Justitia against under VTC; LLaMA-7B, density "
            f"{SHOWN}, {seeds}.",
            draw_scatter,
        ),
    ]


EXPERIMENT = Experiment("main", "Every scheduler", _cells, _section)
