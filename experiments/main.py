"""The main table: every scheduler on every preset, at three densities."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from justitia.engines.summary import BASELINE
from justitia.experiments import paper
from justitia.experiments.cells import Cell
from justitia.experiments.compared import over_seeds
from justitia.experiments.estimate import Estimate
from justitia.experiments.main_figures import Rows, figures
from justitia.experiments.scope import PRESETS, Scope
from justitia.experiments.section import Experiment, Outcomes, Section
from justitia.experiments.table import Column, Table, Value, number
from justitia.experiments.words import percent, seconds

DENSITIES = (1, 2, 3)
SHOWN = 2
"""The density of the figures, and of the findings."""
DISPLACING = "mlfq"
GENEROUS = {"preemption": "swap", "swaps": "free"}
"""FastServe moves the KV of what gives way while it computes: so to host memory, and at
no cost at all. With what gives way computed again it would lose most of its time."""

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

    def pooled(policy: str, key: str) -> list[Any]:
        return [
            value
            for one in _cells_of(scope, policy, PRESETS[0], SHOWN)
            for value in outcomes[one]["result"][key]
        ]

    seeds = f"{scope.seeds} seeds together" if scope.seeds > 1 else "one seed"
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
        figures=figures(pooled, shown, which=f"LLaMA-7B, density {SHOWN}, {seeds}"),
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
        "SRJF's (the paper: 10.5 % above). SRJF starts what has least left of what it "
        "counts as cost, KV token-time as Justitia does, and promises nothing to "
        "anybody.",
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


EXPERIMENT = Experiment("main", "Every scheduler", _cells, _section)
