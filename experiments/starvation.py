"""An elephant among mice: who starves it, and who ends it within the bound."""

from typing import TYPE_CHECKING

from justitia.experiments.cells import Cell, cell
from justitia.experiments.drawing import GRID, INK, STAGED, colour, dash
from justitia.experiments.estimate import Estimate, estimate
from justitia.experiments.scope import PRESETS, Scope
from justitia.experiments.section import Experiment, Figure, Outcomes, Section
from justitia.experiments.table import Column, Table, Value, number
from justitia.experiments.tasks.starve import CALLS, DECODE, PROMPT
from justitia.experiments.words import percent, seconds

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

RUNS: dict[str, tuple[str, dict[str, str]]] = {
    "justitia": ("justitia", {}),
    "justitia, stage tags": ("justitia", {"tags": "stage"}),
    "srjf": ("srjf", {}),
    "vtc": ("vtc", {}),
    "fcfs": ("fcfs", {}),
}
COLUMNS = (
    Column("policy", "policy", "text"),
    Column("elephant", "elephant's JCT, s"),
    Column("reference", "fair reference, s"),
    Column("bound", "bound, s"),
    Column("within", "within it", "text"),
    Column("mice", "mice's mean JCT, s"),
)


def _mice(scope: Scope) -> int:
    return 600 if scope.quick else 800


def _cell(scope: Scope, name: str, seed: int) -> Cell:
    policy, options = RUNS[name]
    given: dict[str, object] = {"options": options} if options else {}
    return cell(
        "starve",
        size=CALLS * _mice(scope),
        policy=policy,
        seed=seed,
        preset=PRESETS[0],
        mice=_mice(scope),
        **given,
    )


def _cells(scope: Scope) -> list[Cell]:
    return [_cell(scope, name, seed) for name in RUNS for seed in scope.all_seeds]


def _section(scope: Scope, outcomes: Outcomes) -> Section:
    results = {
        name: [outcomes[_cell(scope, name, seed)]["result"] for seed in scope.all_seeds]
        for name in RUNS
    }
    rows: list[dict[str, Value]] = []
    for name, runs in results.items():
        inside = sum(_within(run) for run in runs)
        rows.append(
            {
                "policy": name,
                "elephant": estimate(run["elephant"] for run in runs),
                "reference": estimate(run["reference"] for run in runs),
                "bound": estimate(run["bound"] for run in runs),
                "within": f"{inside} of {len(runs)}",
                "mice": estimate(run["mice_mean"] for run in runs),
            }
        )
    load = estimate(run["load"] for run in results["justitia"])
    by_name = {str(row["policy"]): row for row in rows}
    price = _price(by_name["justitia"]["mice"], by_name["srjf"]["mice"])
    return Section(
        name="starvation",
        title="An elephant among mice",
        about=(
            f"A MapReduce agent arrives among mice that come one a second: {CALLS} "
            f"inferences of {PROMPT} + {DECODE} tokens, give or take a fifth, which "
            f"keeps the engine just busy (a load of {number(load):.2g}, and the "
            "prompts on top). Memory is reserved, so nothing is preempted. The "
            "paper: stalled under SRJF, bounded under Justitia."
        ),
        findings=(
            f"Under SRJF the elephant ends after {seconds(_of(by_name, 'srjf'))}, "
            "when hardly a mouse is left to come: every mouse has less to get than it "
            "has, so it gets what they leave, and that goes on for as long as they "
            f"come ({_mice(scope)} s here; with twice the mice it waits twice as "
            "long).",
            f"Under Justitia it ends after {seconds(_of(by_name, 'justitia'))}, with "
            f"a tag for each stage after "
            f"{seconds(_of(by_name, 'justitia, stage tags'))}; the fair reference, "
            "which shares what the engine really delivers equally at every instant, "
            f"finishes it after {seconds(by_name['justitia']['reference'])}"  # type: ignore[arg-type]
            f". Within the bound: {by_name['justitia']['within']} and "
            f"{by_name['justitia, stage tags']['within']} runs.",
            f"The mice pay for it with a mean JCT that is {percent(price, 1)} longer "
            f"than under SRJF. FCFS ends the elephant at once and VTC after "
            f"{seconds(_of(by_name, 'vtc'))}, since it is served from its first "
            "second on, and every mouse that is there meanwhile waits for it.",
        ),
        tables=(
            Table(
                name="starvation",
                title=f"One elephant and {_mice(scope)} mice, LLaMA-7B",
                columns=COLUMNS,
                rows=rows,
                note="Seconds after the elephant arrived. fair reference: when it "
                "finishes the elephant, had it the engine to share out. bound: Theorem "
                "B in time, by the run's own curve of service: when as much more has "
                "been delivered as was ever in flight, and the longest inference after "
                "that. It is a theorem for a tag each stage; for one tag an agent it "
                "is shown to compare.",
            ),
        ),
        figures=(_figure(results),),
        highlights=(
            ("elephant's JCT under Justitia", seconds(_of(by_name, "justitia")), ""),
            ("elephant's JCT under SRJF", seconds(_of(by_name, "srjf")), "stalled"),
        ),
    )


def _within(run: dict[str, float | None]) -> bool:
    mine, bound = run["elephant"], run["bound"]
    return mine is not None and bound is not None and mine <= bound


def _of(rows: dict[str, dict[str, Value]], name: str) -> float:
    value = rows[name]["elephant"]
    assert isinstance(value, Estimate)
    return value.mean


def _price(mine: Value, others: Value) -> float:
    assert isinstance(mine, Estimate)
    assert isinstance(others, Estimate)
    return mine.mean / others.mean - 1


def _figure(results: dict[str, list[dict[str, object]]]) -> Figure:
    def draw(figure: "Drawing") -> None:
        axes = figure.subplots()
        for name, (policy, options) in RUNS.items():
            run = results[name][0]
            progress = run["progress"]
            assert isinstance(progress, list)
            axes.plot(
                [time for time, _ in progress], [100 * done for _, done in progress],
                color=STAGED if options else colour(policy),
                linestyle=":" if options else dash(policy), label=name,
            )  # fmt: skip
        staged = results["justitia, stage tags"][0]
        for key, label, style in (("reference", "fair reference", ":"),
                                  ("bound", "bound", "-")):  # fmt: skip
            at = staged[key]
            if isinstance(at, float):
                axes.axvline(at, color=GRID, linewidth=1, linestyle=style)
                axes.text(
                    at, 3, f" {label}", fontsize=8, color=INK,
                    ha="right" if key == "reference" else "left", zorder=4,
                )  # fmt: skip
        last = results["srjf"][0]["last_mouse_arrives"]
        if isinstance(last, float):
            axes.axvline(last, color=GRID, linewidth=1, linestyle="--")
            axes.text(last, 3, "last mouse ", fontsize=8, color=INK, ha="right")
        axes.set(xlabel="seconds since the elephant arrived", ylabel="served, %")
        axes.set_ylim(0, 101)
        axes.set_xlim(0)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))

    return Figure(
        "elephant-progress",
        "How much of the elephant has been served, first seed. Reference and bound "
        "are those of the run with stage tags.",
        draw,
    )


EXPERIMENT = Experiment("starvation", "An elephant among mice", _cells, _section)
