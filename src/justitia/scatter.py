"""A figure of predicted against real costs, with matplotlib (the extra)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from justitia.plots import figure_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from justitia.predictors.evaluation import Evaluation

_COLUMNS = 4


def draw(found: Evaluation, title: str, file: str) -> bytes:
    """Return a figure in the format that the name of `file` asks for.

    A panel for each class, an agent a point; the line is what a prediction should be,
    and the two beside it are off by a factor 2.
    """
    return figure_of(lambda figure: _fill(figure, found), title, file)


def _fill(figure: Figure, found: Evaluation) -> None:
    count = len(found.classes)
    columns = min(count, _COLUMNS)
    rows = -(-count // columns)
    figure.set_size_inches(2.8 * columns + 0.4, 2.6 * rows + 0.6)
    panels = figure.subplots(rows, columns, squeeze=False).flat
    for axes, (kind, one) in zip(panels, found.classes.items(), strict=False):
        ends = [min(*one.real, *one.predicted), max(*one.real, *one.predicted)]
        axes.scatter(one.real, one.predicted, s=6, alpha=0.6)
        axes.plot(ends, ends, color="grey", linewidth=0.8)
        for factor in (0.5, 2):
            axes.plot(
                ends, [end * factor for end in ends], color="grey", linewidth=0.5,
                linestyle=":",
            )  # fmt: skip
        axes.set(xscale="log", yscale="log")
        error = 100 * one.model.mean_relative_error
        axes.set_title(f"{kind or '(none)'}: {error:.0f} %", fontsize=9)
        axes.tick_params(labelsize=7)
        axes.grid(alpha=0.3)
    for axes in list(panels):
        axes.set_axis_off()
    figure.supxlabel("real cost, token-steps", fontsize=9)
    figure.supylabel("predicted", fontsize=9)
