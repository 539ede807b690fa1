"""Figures of a comparison, with matplotlib (the extra ``experiments``)."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from justitia.engines.document import Result
from justitia.engines.summary import BASELINE
from justitia.experiments.drawing import GRID, METADATA, colour, dash, render
from justitia.policy import PolicyError
from justitia.policy.exact import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FORMATS = tuple(f".{suffix}" for suffix in METADATA)
_COMPARED = ("justitia", "srjf")
"""Policies whose agents are set against the baseline's one by one."""


class PlotError(PolicyError):
    """A figure that cannot be drawn here."""


def check_plot(file: str) -> None:
    """Raise `PlotError` where `draw` could not draw for `file`."""
    if _format(file) not in _FORMATS:
        raise PlotError(f"a plot is a {', '.join(_FORMATS)} file, not {shown(file)}")
    try:
        import matplotlib  # noqa: F401, PLC0415 - an extra, and slow to load
    except ImportError:
        raise PlotError(
            "a plot needs matplotlib: pip install 'justitia[experiments]'"
        ) from None


def draw(results: Sequence[Result], title: str, file: str) -> bytes:
    """Return a figure in the format that the name of `file` asks for.

    On the left the share of agents that are done within some JCT, for each policy; on
    the right each agent's JCT against its JCT under VTC, where that was run.
    """
    return figure_of(lambda figure: fill(figure, results), title, file)


def figure_of(fill: Callable[["Figure"], None], title: str, file: str) -> bytes:
    """Return a figure that `fill` fills, in the format that `file` asks for.

    What is drawn alike comes out alike to the byte.
    """
    return render(fill, _format(file).removeprefix("."), title)


def fill(figure: "Figure", results: Sequence[Result]) -> None:
    """Draw what `draw` says into an empty figure."""
    jcts = {
        result.policy: {a.id: a.jct for a in result.record.agents if a.jct is not None}
        for result in results
    }
    baseline = jcts.get(BASELINE, {})
    compared = [name for name in _COMPARED if name in jcts] if baseline else []
    figure.set_size_inches(11 if compared else 6, 4.5)
    axes = figure.subplots(1, 2 if compared else 1, squeeze=False)[0]
    for policy, times in jcts.items():
        shares = [(done + 1) / len(times) for done in range(len(times))]
        axes[0].step(
            sorted(times.values()),
            shares,
            where="post",
            label=policy,
            color=colour(policy),
            linestyle=dash(policy),
        )
    some_time = any(time > 0 for times in jcts.values() for time in times.values())
    scale = "log" if some_time else "linear"
    axes[0].set(xscale=scale, xlabel="JCT, s", ylabel="share of agents done")
    for policy in compared:
        both = [name for name in baseline if name in jcts[policy]]
        axes[1].scatter(
            [baseline[name] for name in both],
            [jcts[policy][name] for name in both],
            s=8,
            label=policy,
            color=colour(policy),
        )
    if compared:
        ends = [min(baseline.values()), max(baseline.values())]
        axes[1].plot(ends, ends, color=GRID, linewidth=0.8)
        axes[1].set(xscale=scale, yscale=scale, xlabel=f"JCT under {BASELINE}, s")
        axes[1].set_ylabel("JCT, s (below the line: sooner)")
    for each in axes:
        each.legend(fontsize=8)


def _format(file: str) -> str:
    return Path(file).suffix.lower()
