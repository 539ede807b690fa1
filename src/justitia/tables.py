"""Results as tables in a terminal of 80 columns."""

from collections.abc import Callable, Mapping, Sequence
from textwrap import wrap

from rich.console import Console
from rich.table import Table

from justitia.engines.document import Result
from justitia.engines.foresight import Foresight
from justitia.engines.summary import BASELINE, Summary
from justitia.experiments.paper import MEAN_JCT
from justitia.policy.exact import Number

_NARROW = 80
_WIDE = 1000
"""Columns of the page that is laid out: more than any table needs, so that nothing is
cut off. What is too wide for a terminal is left to it to wrap."""

_PREDICTION = "Prediction"

Columns = Sequence[tuple[str, Callable[[Result], str]]]


def show(
    heading: str,
    results: Sequence[Result],
    foresights: Mapping[str, Foresight] | None = None,
) -> None:
    """Print a heading, how soon agents finished, how fair that was, and how it went.

    And, by policy, what its predictions cost against the oracle's, where there are any.
    """
    console = Console(width=_WIDE, soft_wrap=True, highlight=False, markup=False)
    jct, engine = list(_JCT), list(_ENGINE)
    if any(map(_unfinished, results)):
        jct.append(("not done", lambda r: f"{_unfinished(r):,}"))
    engine_note = _ENGINE_NOTE
    if any(result.summary.cached_tokens for result in results):
        engine.append(("cached", lambda r: f"{r.summary.cached_tokens or 0:,}"))
        engine_note += _CACHED_NOTE
    console.print(heading)
    pages: list[tuple[str, Columns, str]] = [
        ("Job completion time (JCT), seconds", jct, _JCT_NOTE),
        ("Fairness", _FAIRNESS, _FAIRNESS_NOTE),
        ("Engine", engine, engine_note),
    ]
    if foresights:
        pages.insert(1, (_PREDICTION, _foresight_columns(foresights), _FORESIGHT_NOTE))
    for title, columns, note in pages:
        console.print(f"\n{title}", style="bold")
        console.print(_table(columns, results))
        console.print(note, style="dim")
        if title == _PREDICTION:
            for line in _predictors_notes(results, foresights or {}):
                console.print(line)
    for line in _told([(r.label, r.record.remarks) for r in results]):
        console.print(line)
    if len(jct) > len(_JCT):
        console.print("\nThe JCT of agents that are not done is in no column.")


def _table(columns: Columns, results: Sequence[Result]) -> Table:
    table = Table(box=None, pad_edge=False)
    table.add_column("policy")
    for heading, _ in columns:
        table.add_column(heading, justify="right")
    for result in results:
        table.add_row(result.label, *(cell(result) for _, cell in columns))
    return table


def _foresight_columns(foresights: Mapping[str, Foresight]) -> Columns:
    def of(result: Result) -> Foresight:
        return foresights[result.policy]

    return [
        ("mean error", lambda r: _share(of(r).mean_relative_error)),
        ("median", lambda r: _share(of(r).median_relative_error)),
        ("mean JCT", lambda r: _seconds(r.summary.mean_jct)),
        ("oracle", lambda r: _seconds(of(r).oracle_mean_jct)),
        ("costs", lambda r: _percent(of(r).jct_change)),
    ]


def _predictors_notes(
    results: Sequence[Result], foresights: Mapping[str, Foresight]
) -> list[str]:
    """Return what the predictor said, with the policies under which it did."""
    return _told([(r.label, foresights[r.policy].notes) for r in results])


def _told(notes: Sequence[tuple[str, Sequence[str]]]) -> list[str]:
    """Return what was said under policies in lines, each once with those."""
    said: dict[str, list[str]] = {}
    for policy, each in notes:
        for note in each:
            said.setdefault(note, []).append(policy)
    lines: list[str] = []
    for note, policies in said.items():
        who = "" if len(policies) == len(notes) else f"{', '.join(policies)}: "
        lines += wrap(f"- {who}{note}", _NARROW, subsequent_indent="  ")
    return lines


def _unfinished(result: Result) -> int:
    return sum(agent.finish is None for agent in result.record.agents)


def _paper_mean(policy: str) -> str:
    return _seconds(MEAN_JCT.get(policy))


def _paper_gain(policy: str) -> str:
    mean = MEAN_JCT.get(policy)
    return "-" if mean is None else _percent(1 - mean / MEAN_JCT[BASELINE])


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.{0 if value >= 1000 else 1 if value >= 10 else 2}f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:+,.1f} %"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:,.1f} %"


def _mega(value: Number | None) -> str:
    return "-" if value is None else f"{round(float(value) / 1e6, 2) + 0.0:,.2f}"


def _ratio(value: float | None) -> str:
    return "-" if value is None else f"{round(value, 2) + 0.0:.2f}"  # no -0.00


def _worst(summary: Summary) -> str:
    if summary.worst_later is None or summary.worst_later_seconds is None:
        return "-"
    return f"{100 * summary.worst_later:,.0f} % {summary.worst_later_seconds:8,.1f} s"


_JCT: Columns = [
    ("mean", lambda r: _seconds(r.summary.mean_jct)),
    ("paper", lambda r: _paper_mean(r.policy)),
    ("p50", lambda r: _seconds(r.summary.p50_jct)),
    ("p90", lambda r: _seconds(r.summary.p90_jct)),
    ("p99", lambda r: _seconds(r.summary.p99_jct)),
    ("max", lambda r: _seconds(r.summary.max_jct)),
    ("gain", lambda r: _percent(r.summary.gain_vs_vtc)),
    ("paper", lambda r: _paper_gain(r.policy)),
]
_JCT_NOTE = """\
gain: by how much the mean is below VTC's. paper: the mean and the gain that the
paper gives, for LLaMA-7B on one A100 and its own workload."""
_FORESIGHT_NOTE = """\
mean error, median: of |predicted - real| / real, of agents' costs. oracle: the
mean JCT when costs are known. costs: how much longer it is without (paper,
justitia: +9.5 % with noisy:3)."""
_FAIRNESS: Columns = [
    ("later", lambda r: _share(r.summary.share_later)),
    ("worst", lambda r: _worst(r.summary)),
    ("lag", lambda r: _mega(r.summary.max_lag)),
    ("allowed", lambda r: _mega(r.summary.max_lag_allowed)),
    ("ratio", lambda r: _ratio(r.summary.max_lag_ratio)),
]
_FAIRNESS_NOTE = """\
later: agents later than under VTC (paper, justitia: 8 %). worst: the one
delayed most in proportion (paper: 26 %). lag: the most that delivered service
was ahead of the fair reference when an inference first started. allowed: what
Theorem B permits there, both in millions of token-steps. ratio: the largest
(lag - allowed) of any start, over the cost of the largest inference; not above
0 where the theorem holds (--tags stage, exact costs)."""
_ENGINE: Columns = [
    ("KV used", lambda r: _share(r.summary.utilisation)),
    ("steps", lambda r: f"{r.summary.steps:,}"),
    ("preempted", lambda r: f"{r.summary.preemptions:,}"),
    ("finished", lambda r: f"{r.summary.finished:,}"),
    ("cancelled", lambda r: f"{r.summary.cancelled:,}"),
    ("refused", lambda r: f"{r.summary.refused:,}"),
]
_ENGINE_NOTE = """\
KV used: of the cache, mean over steps. finished to refused: inferences."""
_CACHED_NOTE = """
cached: tokens of prompts that the engine found in its cache and did not compute."""
