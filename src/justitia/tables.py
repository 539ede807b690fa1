"""Results as tables in a terminal."""

from collections.abc import Callable, Sequence

from rich.console import Console
from rich.table import Table

from justitia.engines.document import Result
from justitia.engines.scenario import Scenario
from justitia.engines.summary import BASELINE, Summary

PAPER_MEAN_JCT = {
    "fcfs": 388.2,
    "sjf": 215.4,
    "agent-fcfs": 412.5,
    "vtc": 386.4,
    "srjf": 148.6,
    "justitia": 164.2,
    "justitia-c": 233.7,
}
"""Seconds: the paper's main table, LLaMA-7B on one A100."""

Cell = Callable[[Result], str]


def show(console: Console, scenario: Scenario, results: Sequence[Result]) -> None:
    """Print what was run, then how soon agents finished, then how fair that was."""
    first = results[0].summary
    console.print(headline(scenario), highlight=False)
    console.print(_table("Job completion time (JCT), seconds", _JCT, results))
    console.print(_table("Fairness", _FAIRNESS, results))
    console.print(_FOOTNOTE, highlight=False)
    unfinished = first.cancelled + first.refused
    if unfinished:
        console.print(
            f"{first.cancelled} inferences were cancelled and {first.refused} refused; "
            "agents that did not finish are not in the means.",
            highlight=False,
        )


def headline(scenario: Scenario) -> str:
    """Return in one line what was run."""
    parts = [
        f"{len(scenario.agents)} agents with {scenario.inferences} inferences "
        f"({scenario.source})",
        f"arrivals {scenario.arrivals}",
    ]
    if scenario.density is not None:
        parts.append(f"density {scenario.density:.3g}")
    if scenario.load is not None:
        parts.append(f"load {scenario.load:.3g}")
    parts.append(f"seed {scenario.seed}")
    return ", ".join(parts)


def _table(
    title: str, columns: Sequence[tuple[str, Cell]], results: Sequence[Result]
) -> Table:
    table = Table(title=title, title_justify="left", title_style="bold", box=None)
    table.add_column("policy", no_wrap=True)
    for heading, _ in columns:
        table.add_column(heading, justify="right", no_wrap=True)
    for result in results:
        table.add_row(result.policy, *(cell(result) for _, cell in columns))
    return table


def _paper_gain(policy: str) -> str:
    mean = PAPER_MEAN_JCT.get(policy)
    return "-" if mean is None else _percent(1 - mean / PAPER_MEAN_JCT[BASELINE])


def _seconds(value: float | None) -> str:
    return "-" if value is None else f"{value:,.1f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+.1f} %"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.1f} %"


def _mega(value: object) -> str:
    return "-" if value is None else f"{float(value) / 1e6:,.2f}"  # type: ignore[arg-type]


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{value:.2f}"


def _worst(summary: Summary) -> str:
    if summary.worst_later is None or summary.worst_later_seconds is None:
        return "-"
    return f"{100 * summary.worst_later:.0f} % ({summary.worst_later_seconds:,.1f} s)"


_JCT: list[tuple[str, Cell]] = [
    ("mean", lambda r: _seconds(r.summary.mean_jct)),
    ("p50", lambda r: _seconds(r.summary.p50_jct)),
    ("p90", lambda r: _seconds(r.summary.p90_jct)),
    ("p99", lambda r: _seconds(r.summary.p99_jct)),
    ("max", lambda r: _seconds(r.summary.max_jct)),
    ("below VTC", lambda r: _percent(r.summary.gain_vs_vtc)),
    ("paper", lambda r: _paper_gain(r.policy)),
]
_FAIRNESS: list[tuple[str, Cell]] = [
    ("later", lambda r: _share(r.summary.share_later)),
    ("worst", lambda r: _worst(r.summary)),
    ("lag", lambda r: _mega(r.summary.max_lag)),
    ("allowed", lambda r: _mega(r.summary.max_lag_allowed)),
    ("excess", lambda r: _ratio(r.summary.max_lag_ratio)),
    ("KV used", lambda r: _share(r.summary.utilisation)),
    ("preempted", lambda r: f"{r.summary.preemptions:,}"),
]
_FOOTNOTE = """\
below VTC: by how much the mean is below VTC's; paper: the same, as published.
later: agents later than under VTC; worst: the one delayed most in proportion.
lag: the most that delivered service was ahead of the fair reference when an inference
first started, allowed: what Theorem B permits there, both in millions of token-steps;
excess: the largest (lag - allowed) of all starts, in costs of the largest inference."""
