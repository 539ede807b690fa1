"""Tables and JSON about predictors: what one learned, and how well it predicts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table

from justitia.policy.exact import shown

if TYPE_CHECKING:  # they load what is an extra
    from justitia.predictors.base import Estimate
    from justitia.predictors.evaluation import Evaluation, Judged
    from justitia.predictors.model import Model

SCHEMA = 1
_WIDE = 1000
"""Columns of the page that is laid out; a terminal wraps what is too wide for it."""
_MODEL_NOTE = """\
mean, median: of |predicted - real| / real. ×2: predicted within a factor 2.
covered: cost no more than the predicted 90th percentile. rank: Spearman's
correlation. fallback: answers that the class's own model of texts did not give.
p50, p99: milliseconds of one prediction. Last row: means of the classes."""
_BESIDE_NOTE = """\
All learned from the same agents. mean: of the class. ridge: regression on words
and length. s3: the baseline S³, which is told how many calls an agent of the
class makes; one plan: which is not."""
_HEADINGS = {"s3_one_plan": "one plan"}
_NONE_BESIDE = """
None of the agents that the model was trained on are in the data, so no others
could learn from them to stand beside it."""
_TRAINING_NOTE = """\
mean, median: relative error, and covered: cost within the 90th percentile, of
training agents that were held out in turn. features: of the text; - where it
says nothing."""
_PAPER = """\
The paper, of its own agents: mean 53 %, 2.16 ms; S³ 452 %, 55.7 ms."""
_ALL = "all"


def show_evaluation(found: Evaluation, heading: str) -> None:
    """Print how well a model predicts, class by class, and others beside it."""
    console = _console()
    console.print(heading)
    judged = sum(one.model.agents for one in found.classes.values())
    trained = (
        f"; it was trained on {found.trained_on:,} others" if found.trained_on else ""
    )
    console.print(f"{judged:,} agents judged{trained}")
    if found.empty:
        console.print(f"{found.empty:,} agents without any work are in no row")
    console.print("\nThe model", style="bold")
    console.print(_model_table(found))
    console.print(_MODEL_NOTE, style="dim")
    names = next(iter(found.classes.values())).baselines
    if names:
        console.print("\nMean relative error beside others' (rank)", style="bold")
        console.print(_beside_table(found, list(names)))
        console.print(_BESIDE_NOTE, style="dim")
    else:
        console.print(_NONE_BESIDE)
    console.print(_PAPER, style="dim")


def _model_table(found: Evaluation) -> Table:
    table = _table(
        "class", "judged", "mean", "median", "×2", "covered", "rank",
        "fallback", "p50", "p99",
    )  # fmt: skip
    for kind, one in found.classes.items():
        mine = one.model
        table.add_row(
            _kind(kind),
            f"{mine.agents:,}",
            _percent(mine.mean_relative_error),
            _percent(mine.median_relative_error),
            _percent(mine.within_factor_2),
            _percent(mine.coverage_90),
            _number(mine.rank_correlation),
            f"{mine.fallbacks:,}",
            f"{one.latency.p50:.2f}",
            f"{one.latency.p99:.2f}",
        )
    over = found.over_classes
    table.add_row(
        _ALL,
        f"{sum(one.model.agents for one in found.classes.values()):,}",
        _percent(over(lambda one: one.model.mean_relative_error)),
        _percent(over(lambda one: one.model.median_relative_error)),
        _percent(over(lambda one: one.model.within_factor_2)),
        _percent(over(lambda one: one.model.coverage_90)),
        _number(over(lambda one: one.model.rank_correlation)),
        f"{sum(one.model.fallbacks for one in found.classes.values()):,}",
        f"{found.latency.p50:.2f}",
        f"{found.latency.p99:.2f}",
        style="bold",
    )
    return table


def _beside_table(found: Evaluation, names: list[str]) -> Table:
    table = _table("class", "model", *(_HEADINGS.get(name, name) for name in names))
    for kind, one in found.classes.items():
        scores = [one.model, *(one.baselines[name] for name in names)]
        table.add_row(
            _kind(kind),
            *(
                f"{_percent(each.mean_relative_error)} "
                f"({_number(each.rank_correlation)})"
                for each in scores
            ),
        )

    means = [_percent(found.over_classes(_error_of(name))) for name in (None, *names)]
    table.add_row(_ALL, *means, style="bold")
    return table


def _error_of(name: str | None) -> Callable[[Judged], float | None]:
    """Return what picks the mean error of the model, or of one beside it."""

    def of(one: Judged) -> float | None:
        score = one.model if name is None else one.baselines[name]
        return score.mean_relative_error

    return of


def document(
    found: Evaluation, model: Model, *, version: str, model_path: str
) -> dict[str, Any]:
    """Return an evaluation as what `json.dumps` takes; times in milliseconds."""
    over = found.over_classes
    names = next(iter(found.classes.values())).baselines
    return {
        "schema": SCHEMA,
        "version": version,
        "model": {"path": model_path, **model.about},
        "classes": {
            kind: {
                **asdict(one.model),
                "trained_on": one.trained_on,
                "latency_ms": asdict(one.latency),
                "baselines": {
                    name: asdict(score) for name, score in one.baselines.items()
                },
            }
            for kind, one in found.classes.items()
        },
        "mean_over_classes": {
            "mean_relative_error": over(lambda one: one.model.mean_relative_error),
            "median_relative_error": over(lambda one: one.model.median_relative_error),
            "rank_correlation": over(lambda one: one.model.rank_correlation),
            "baselines": {name: over(_error_of(name)) for name in names},
        },
        "latency_ms": asdict(found.latency),
        "sources": dict(found.sources),
        "left_out": {"trained_on": found.trained_on, "empty": found.empty},
    }


def show_training(model: Model, heading: str) -> None:
    """Print what a model was trained on, and how well it did in training."""
    console = _console()
    about = model.about
    versions = ", ".join(f"{name} {one}" for name, one in about["versions"].items())
    console.print(heading)
    console.print(f"format {about['format']}, seed {about['seed']}, {versions}\n")
    table = _table("class", "agents", "mean", "median", "covered", "features")
    classes: Mapping[str, Any] = about["classes"]
    for kind, one in classes.items():
        held = one.get("validation") or {}
        table.add_row(
            _kind(kind),
            f"{one['agents']:,}",
            _percent(held.get("mean_relative_error")),
            _percent(held.get("median_relative_error")),
            _percent(held.get("coverage")),
            f"{one['features']:,}" if one.get("features") else "-",
        )
    console.print(table)
    console.print(_TRAINING_NOTE, style="dim")


def show_prediction(estimate: Estimate, kind: str) -> None:
    """Print what an agent is thought to cost."""
    console = _console()
    console.print(f"cost  {estimate.cost:,.0f} token-steps")
    console.print(f"90 %  at most {estimate.high:,.0f}")
    fallback = ", a fallback" if estimate.fallback else ""
    source = _SOURCES[estimate.source].format(_kind(kind))
    console.print(f"from  {source}{fallback}")


_SOURCES = {
    "class": "the model of class {}",
    "typical": "the typical cost of class {}: the text says nothing",
    "global": "the model of all classes: {} was not in training",
    "length": "lengths alone: no model can say anything",
    "ready": "what is ready when it arrives: {} was not in training",
}


def _console() -> Console:
    return Console(width=_WIDE, soft_wrap=True, highlight=False, markup=False)


def _table(first: str, *others: str) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column(first)
    for heading in others:
        table.add_column(heading, justify="right")
    return table


def _kind(kind: str) -> str:
    """Return a class as a table shows it: whatever its file calls it, on one line."""
    return (kind if kind.isprintable() else shown(kind)) or "(none)"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:,.0f} %"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 2) + 0.0:.2f}"
