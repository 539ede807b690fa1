"""Figures of a comparison, with matplotlib (the extra ``experiments``)."""

from collections.abc import Sequence
from pathlib import Path

from justitia.engines.document import Result
from justitia.engines.summary import BASELINE
from justitia.policy import PolicyError


class PlotError(PolicyError):
    """A figure that cannot be drawn here."""


def check_plot(file: Path) -> None:
    """Raise `PlotError` where `draw` could not draw into `file`."""
    try:
        import matplotlib  # noqa: F401, PLC0415 - an extra, and slow to load
    except ImportError:
        raise PlotError(
            "a plot needs matplotlib: pip install 'justitia[experiments]'"
        ) from None
    if file.suffix not in (".png", ".svg", ".pdf"):
        raise PlotError(f"a plot is a .png, .svg or .pdf file, not {file.name!r}")
    if not file.absolute().parent.is_dir():
        raise PlotError(f"{file.absolute().parent} is not a folder")


def draw(results: Sequence[Result], title: str, file: Path) -> None:
    """Draw the share of agents done over JCT, and JCT against that under VTC."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg  # noqa: PLC0415
    from matplotlib.figure import Figure  # noqa: PLC0415

    jcts = {
        result.policy: {a.id: a.jct for a in result.record.agents if a.jct is not None}
        for result in results
    }
    baseline = jcts.get(BASELINE)
    figure = Figure(figsize=(11 if baseline else 6, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title, fontsize=9)
    axes = figure.subplots(1, 2 if baseline else 1, squeeze=False)[0]
    for policy, times in jcts.items():
        ordered = sorted(times.values())
        shares = [(k + 1) / len(ordered) for k in range(len(ordered))]
        axes[0].step(ordered, shares, where="post", label=policy)
    axes[0].set(xscale="log", xlabel="JCT, s", ylabel="share of agents done")
    axes[0].legend(fontsize=8)
    axes[0].grid(alpha=0.3)
    if baseline:
        for policy in ("justitia", "srjf"):
            pairs = [
                (baseline[name], time)
                for name, time in jcts.get(policy, {}).items()
                if name in baseline
            ]
            if pairs:
                axes[1].scatter(*zip(*pairs, strict=True), s=8, label=policy)
        most = max(baseline.values(), default=1.0)
        axes[1].plot([0, most], [0, most], color="grey", linewidth=0.8)
        axes[1].set(xscale="log", yscale="log", xlabel="JCT under vtc, s")
        axes[1].set(ylabel="JCT, s (below the line: sooner)")
        axes[1].legend(fontsize=8)
        axes[1].grid(alpha=0.3)
    figure.savefig(file, metadata={"Software": None} if file.suffix == ".png" else None)
