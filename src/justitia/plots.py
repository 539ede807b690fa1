"""Figures of a comparison, with matplotlib (the extra ``experiments``)."""

from collections.abc import Callable, Sequence
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING
from warnings import catch_warnings, simplefilter

from justitia.engines.document import Result
from justitia.engines.summary import BASELINE
from justitia.policy import PolicyError
from justitia.policy.exact import shown

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_METADATA: dict[str, dict[str, None]] = {
    ".png": {"Software": None},
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
}
"""Formats, and what to leave out of each so that a run of one seed gives one figure."""
_COMPARED = ("justitia", "srjf")
"""Policies whose agents are set against the baseline's one by one."""


class PlotError(PolicyError):
    """A figure that cannot be drawn here."""


def check_plot(file: str) -> None:
    """Raise `PlotError` where `draw` could not draw for `file`."""
    if _format(file) not in _METADATA:
        raise PlotError(f"a plot is a {', '.join(_METADATA)} file, not {shown(file)}")
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
    return figure_of(lambda figure: _fill(figure, results), title, file)


def figure_of(fill: Callable[["Figure"], None], title: str, file: str) -> bytes:
    """Return a figure that `fill` fills, in the format that `file` asks for.

    What is drawn alike comes out alike to the byte.
    """
    from matplotlib import rc_context  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    suffix = _format(file)
    content = BytesIO()
    with (
        rc_context({"svg.hashsalt": "justitia", "text.parse_math": False}),
        catch_warnings(),
    ):
        simplefilter("ignore")  # a letter that the font lacks
        figure = Figure(layout="constrained")
        figure.suptitle(title, fontsize=9)
        fill(figure)
        figure.savefig(content, format=suffix[1:], metadata=_METADATA[suffix])
    return content.getvalue()


def _fill(figure: "Figure", results: Sequence[Result]) -> None:
    jcts = {
        result.policy: {a.id: a.jct for a in result.record.agents if a.jct is not None}
        for result in results
    }
    colours = {policy: f"C{place % 10}" for place, policy in enumerate(jcts)}
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
            color=colours[policy],
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
            color=colours[policy],
        )
    if compared:
        ends = [min(baseline.values()), max(baseline.values())]
        axes[1].plot(ends, ends, color="grey", linewidth=0.8)
        axes[1].set(xscale=scale, yscale=scale, xlabel=f"JCT under {BASELINE}, s")
        axes[1].set_ylabel("JCT, s (below the line: sooner)")
    for each in axes:
        each.legend(fontsize=8)
        each.grid(alpha=0.3)


def _format(file: str) -> str:
    return Path(file).suffix.lower()
