"""Predictors that learn, beside those that know and those that do not look."""

from typing import TYPE_CHECKING

from justitia.experiments import paper
from justitia.experiments.cells import Cell, cell
from justitia.experiments.compared import change, mean_jct
from justitia.experiments.drawing import interval_bars
from justitia.experiments.estimate import Estimate, estimate
from justitia.experiments.scope import PRESETS, Scope
from justitia.experiments.section import Experiment, Figure, Outcomes, Section
from justitia.experiments.table import Column, Table, Value
from justitia.experiments.words import percent, seconds
from justitia.predictors.errors import PredictorError
from justitia.predictors.extra import check_installed

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

DENSITY = 2
LEARNED = ("mlp", "s3")
SIMPLE = ("oracle", "mean", "max")
COLUMNS = (
    Column("predictor", "predictor", "text"),
    Column("judged", "mean error", "percent"),
    Column("paper_error", "paper", "percent", paper=True),
    Column("median", "median error", "percent"),
    Column("one_plan", "one plan", "percent"),
    Column("error", "error in the run", "percent"),
    Column("mean", "mean JCT, s"),
    Column("paper_jct", "paper", paper=True),
    Column("change", "against oracle", "change"),
)
TIMES = (
    Column("predictor", "predictor", "text"),
    Column("p50", "prediction, ms"),
    Column("p99", "99 %, ms"),
    Column("paper_ms", "paper", paper=True),
    Column("train", "training, s"),
    Column("paper_train", "paper", "text", paper=True),
)
_PAPER = {
    "mlp": (paper.MLP_ERROR, paper.MLP_JCT, paper.MLP_MS, "about 1 min"),
    "s3": (paper.S3_ERROR, paper.S3_JCT, paper.S3_MS, "about 2 h"),
}
_TAUGHT, _JUDGED = 100, 40


def _missing() -> str:
    try:
        check_installed("the experiment predictor")
    except PredictorError as error:
        return str(error)
    return ""


def _cells_of(scope: Scope, name: str) -> list[Cell]:
    if name in SIMPLE:
        given = {} if name == "oracle" else {"predictor": name}
        return [
            scope.simulate("justitia", seed, density=DENSITY, **given)
            for seed in scope.all_seeds
        ]
    return [
        cell(
            "learn",
            size=60_000,
            what=name,
            seed=seed,
            preset=PRESETS[0],
            density=DENSITY,
            agents=scope.agents,
            workload=scope.workload,
            arrivals=scope.arrivals,
            taught=_TAUGHT,
            judged=_JUDGED,
            data=scope.data,
            content=scope.files_content,
        )
        for seed in scope.all_seeds
    ]


def _cells(scope: Scope) -> list[Cell]:
    return [one for name in (*LEARNED, *SIMPLE) for one in _cells_of(scope, name)]


def _section(scope: Scope, outcomes: Outcomes) -> Section:
    oracle = _cells_of(scope, "oracle")
    rows: list[dict[str, Value]] = []
    times: list[dict[str, Value]] = []
    for name in (*LEARNED, *SIMPLE):
        cells = _cells_of(scope, name)
        results = [outcomes[one]["result"] for one in cells]
        error, jct, took, training = _PAPER.get(name, (None, None, None, None))
        rows.append(
            {
                "predictor": name,
                "judged": estimate(run.get("judged_error") for run in results),
                "paper_error": error,
                "one_plan": estimate(run.get("one_plan_error") for run in results),
                "median": estimate(run.get("judged_median") for run in results),
                "error": estimate(run["error"] for run in results),
                "mean": estimate(mean_jct(run) for run in results),
                "paper_jct": jct,
                "change": change(outcomes, cells, oracle),
            }
        )
        if name in LEARNED:
            timed = [outcomes[one]["timings"] for one in cells]
            times.append(
                {
                    "predictor": name,
                    "p50": estimate(one["p50_ms"] for one in timed),
                    "p99": estimate(one["p99_ms"] for one in timed),
                    "paper_ms": took,
                    "train": estimate(one["train_s"] for one in timed),
                    "paper_train": training,
                }
            )
    by_name = {str(row["predictor"]): row for row in rows}
    mlp, s3 = by_name["mlp"], by_name["s3"]
    source = scope.data or "generated"
    return Section(
        name="predictor",
        title="Not knowing costs",
        about=(
            f"Each predictor learns from {_TAUGHT} agents of each class at most "
            f"({source}), is judged by others, and then tells Justitia the costs of "
            f"the agents of the main table (LLaMA-7B, density {DENSITY}). The paper: "
            "a mean relative error of 53 % for the MLP and 452 % for S³, 2.16 ms "
            "and 55.7 ms a prediction, a mean JCT of 151.1 s and 366.7 s."
        ),
        findings=(
            f"The MLP's mean relative error is {_part(mlp['judged'])} (the paper: "
            f"53 %), S³'s {_part(s3['judged'])}, and {_part(s3['one_plan'])} where it "
            "is not told how many calls an agent of the class makes (the paper: "
            "452 %). It predicts the length of one answer; what an agent does beside "
            "that it cannot know.",
            f"With the MLP Justitia's mean JCT is {_time(mlp['mean'])}, with S³ "
            f"{_time(s3['mean'])}, with exact costs "
            f"{_time(by_name['oracle']['mean'])} (the paper: 151.1 s and 366.7 s). "
            "What matters is the order of agents and not the size of an error: max, "
            f"wrong by {_part(by_name['max']['error'])}, comes to "
            f"{_time(by_name['max']['mean'])}, since it is told all prompts and how "
            "many calls an agent makes, and S³ is told the calls of the class. mean, "
            f"which is told nothing, comes to {_time(by_name['mean']['mean'])}: until "
            "agents of a class have ended it does not know small from large.",
            "Our S³ is a small network of the same kind, not the pre-trained "
            "DistilBERT of 66 million weights, which cannot be had without a network: "
            "its time and its training are not those of the paper's. "
            "docs/benchmarks.md times one of that size.",
        ),
        tables=(
            Table(
                name="predictor",
                title=f"Error and JCT: LLaMA-7B, density {DENSITY}",
                columns=COLUMNS,
                rows=rows,
                note="mean error, median error: of |predicted - real| / real by agents "
                "that were not learned from, means of the classes. one plan: mean "
                "error of S³ with one plan for all classes. error in the run: of the "
                "agents scheduled. against oracle: how much longer the mean JCT is "
                "than with exact costs. mean: the class's mean so far. max: every "
                "inference produces all that it may.",
                best={"judged": "low"},
            ),
            Table(
                name="predictor",
                title="Time",
                columns=TIMES,
                rows=times,
                note="One prediction at a time; training all classes, one thread.",
                timed=True,
            ),
        ),
        figures=(_figure(rows),),
        highlights=(("mean relative error of the MLP", _part(mlp["judged"]), "53 %"),),
    )


def _part(value: Value) -> str:
    return percent(value if isinstance(value, Estimate) else None)


def _time(value: Value) -> str:
    return seconds(value if isinstance(value, Estimate) else None)


def _figure(rows: list[dict[str, Value]]) -> Figure:
    def draw(figure: "Drawing") -> None:
        figure.set_size_inches(6, 2.8)
        axes = figure.subplots()
        order = list(reversed(rows))
        for place, row in enumerate(order):
            mean = row["mean"]
            assert isinstance(mean, Estimate)
            axes.barh(
                place, mean.mean, height=0.6, xerr=mean.half,
                color="#d1495b" if row["predictor"] in LEARNED else "#7a828c",
                error_kw=interval_bars(),
            )  # fmt: skip
        axes.set_yticks(range(len(order)), [str(row["predictor"]) for row in order])
        axes.grid(axis="y", visible=False)
        axes.set_xlim(0)
        axes.set_xlabel("mean JCT under Justitia, s")

    return Figure(
        "predictor-jct",
        "Mean JCT under Justitia by predictor, with 95 % intervals over seeds.",
        draw,
    )


EXPERIMENT = Experiment("predictor", "Not knowing costs", _cells, _section, _missing)
