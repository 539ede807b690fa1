"""The report of `justitia run`: the page of an experiment, for one's own trace."""

import shlex
from collections.abc import Mapping, Sequence

from justitia import __version__
from justitia.config import RunSettings
from justitia.engines.document import Result
from justitia.engines.foresight import Foresight
from justitia.engines.summary import BASELINE
from justitia.experiments import Column, Figure, Section, Table, drawing
from justitia.experiments.paper import BY_NAME
from justitia.experiments.report import report
from justitia.experiments.table import Value
from justitia.plots import fill

_JCT = (
    Column("mean", "mean JCT, s"),
    Column("paper_mean", "paper", paper=True),
    Column("gain", "gain on VTC", "change"),
    Column("paper_gain", "paper", "change", paper=True),
    Column("p50", "p50"),
    Column("p90", "p90"),
    Column("p99", "p99"),
    Column("longest", "max"),
    Column("unfinished", "not done", "count"),
)
_FAIRNESS = (
    Column("later", "later", "percent"),
    Column("worst", "worst", "percent"),
    Column("worst_s", "by, s"),
    Column("lag", "lag", "mega"),
    Column("allowed", "allowed", "mega"),
    Column("ratio", "ratio", "ratio"),
)
_ENGINE = (
    Column("utilisation", "KV used", "percent"),
    Column("steps", "steps", "count"),
    Column("preempted", "preempted", "count"),
    Column("finished", "finished", "count"),
    Column("cancelled", "cancelled", "count"),
    Column("refused", "refused", "count"),
)
_FORESIGHT = (
    Column("error", "mean error", "percent"),
    Column("median", "median", "percent"),
    Column("oracle", "mean JCT with oracle, s"),
    Column("costs", "costs", "change"),
)


def report_of(
    results: Sequence[Result],
    heading: str,
    foresights: Mapping[str, Foresight],
    settings: RunSettings,
) -> str:
    """Return the page.

    Parameters
    ----------
    heading
        What it takes to run the same again, in lines.
    foresights
        By policy, what its predictions cost; empty where the oracle is the predictor.
    """
    section = Section(
        name="run",
        title="One run of each policy",
        about="All policies ran the same agents, with the same arrivals.",
        tables=_tables(results, foresights),
        figures=(
            Figure(
                "jct",
                "Left: share of agents that are done within some time. Right, where "
                f"{BASELINE} was run: each agent's JCT against its JCT under it.",
                lambda figure: fill(figure, results),
            ),
        ),
        highlights=_highlights(results),
        findings=[
            f"{result.label}: {remark}"
            for result in results
            for remark in result.record.remarks
        ],
    )
    drawn = {
        figure.name: drawing.inline(
            drawing.render(figure.draw, "svg"), figure.name, figure.caption
        )
        for figure in section.figures
    }
    first, *further = heading.splitlines()
    return report(
        [section],
        drawn,
        heading="A run of agents",
        version=__version__,
        settings={"run": first, "agents": "; ".join(further)},
        command=_command(settings),
        engine=str(settings.engine),
    )


def _tables(
    results: Sequence[Result], foresights: Mapping[str, Foresight]
) -> list[Table]:
    name = Column("policy", "policy", "text")
    rows = [_row(result, foresights.get(result.policy)) for result in results]
    tables = [
        Table(
            "jct",
            "Job completion time (JCT), seconds",
            (name, *_JCT),
            rows,
            "gain: by how much the mean is below VTC's. paper: LLaMA-7B on one A100 "
            "and its own workload. The JCT of agents that are not done is in no "
            "column.",
            best={"mean": "low"},
        ),
        Table(
            "fairness",
            "Fairness",
            (name, *_FAIRNESS),
            rows,
            "later: agents later than under VTC (paper, justitia: 8 %). worst: the one "
            "delayed most in proportion (paper: 26 %). lag: the most that delivered "
            "service was ahead of the fair reference when an inference first started. "
            "allowed: what Theorem B permits there, both in millions of token-steps. "
            "ratio: the largest (lag - allowed) of any start, over the cost of the "
            "largest inference; not above 0 where the theorem holds (--tags stage, "
            "exact costs).",
        ),
        Table(
            "engine",
            "Engine",
            (name, *_ENGINE),
            rows,
            "KV used: of the cache, mean over steps. finished to refused: inferences.",
        ),
    ]
    if foresights:
        tables.insert(
            1,
            Table(
                "prediction",
                "Prediction",
                (name, *_FORESIGHT),
                rows,
                "mean error, median: of |predicted - real| / real, of agents' costs. "
                "costs: how much longer the mean JCT is than when costs are known.",
            ),
        )
    return tables


def _row(result: Result, foresight: Foresight | None) -> dict[str, Value]:
    found, theirs = result.summary, BY_NAME.get(result.policy)
    row: dict[str, Value] = {
        "policy": result.label,
        "mean": found.mean_jct,
        "paper_mean": None if theirs is None else theirs.mean_jct,
        "gain": found.gain_vs_vtc,
        "paper_gain": None if theirs is None else theirs.gain,
        "p50": found.p50_jct,
        "p90": found.p90_jct,
        "p99": found.p99_jct,
        "longest": found.max_jct,
        "unfinished": sum(agent.finish is None for agent in result.record.agents),
        "later": found.share_later,
        "worst": found.worst_later,
        "worst_s": found.worst_later_seconds,
        "lag": None if found.max_lag is None else float(found.max_lag),
        "allowed": None
        if found.max_lag_allowed is None
        else float(found.max_lag_allowed),
        "ratio": found.max_lag_ratio,
        "utilisation": found.utilisation,
        "steps": found.steps,
        "preempted": found.preemptions,
        "finished": found.finished,
        "cancelled": found.cancelled,
        "refused": found.refused,
    }
    if foresight is not None:
        row |= {
            "error": foresight.mean_relative_error,
            "median": foresight.median_relative_error,
            "oracle": foresight.oracle_mean_jct,
            "costs": foresight.jct_change,
        }
    return row


def _highlights(results: Sequence[Result]) -> list[tuple[str, str, str]]:
    """Return the mean of each policy, the lowest first, four at most."""
    known = [
        (result.summary.mean_jct, result.label)
        for result in results
        if result.summary.mean_jct is not None
    ]
    column = Column("mean", "mean")
    return [
        (f"mean JCT under {label}", f"{column.written(mean)} s", "")
        for mean, label in sorted(known)[:4]
    ]


def _command(settings: RunSettings) -> str:
    """Return the command that runs the same again, but for what a file says."""
    words = ["justitia", "run"]
    plain = RunSettings.model_validate({})
    for field, value in settings:
        if field in ("options", "jobs", "json_file", "plot_file", "report_file"):
            continue
        if value == getattr(plain, field) or value is None:
            continue
        if field == "policies":
            words += ["--policy", ",".join(value)]
        elif isinstance(value, tuple):
            words += [f"--{field}", ",".join(value)]
        else:
            words += [f"--{field.replace('_', '-')}", f"{value}"]
    line = shlex.join(words)
    tables = [
        f"[policy.{name}]\n" + "\n".join(f"{k} = {v!r}" for k, v in options.items())
        for name, options in settings.options.items()
    ]
    safe = "\n".join([line, *tables])
    return safe.encode(errors="backslashreplace").decode()
