"""Figures of the main table."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from justitia.engines.summary import BASELINE
from justitia.experiments import paper
from justitia.experiments.drawing import (
    GRID,
    INK,
    colour,
    cut_off,
    dash,
    interval_bars,
    outside_legend,
)
from justitia.experiments.estimate import Estimate
from justitia.experiments.scope import size_of
from justitia.experiments.section import Figure
from justitia.experiments.table import Value, number

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing

DRAWN = ("justitia", "justitia-c", "srjf", "vtc", "fcfs", "agent-fcfs")
"""Policies of the distribution of JCT; more would hide each other."""
_SIZES = {"small": "o", "medium": "s", "large": "^", "other": "x"}

Rows = Mapping[str, Mapping[str, Value]]
"""By policy."""


def figures(
    pooled: Callable[[str, str], list[Any]], shown: Rows, *, which: str
) -> list[Figure]:
    """Return means beside the paper's, the distribution of JCT, and fairness.

    Parameters
    ----------
    pooled
        Returns what all runs of a policy say of their agents, under a key.
    shown
        Rows of the table.
    which
        Preset, density and seeds, for the captions.
    """

    def draw_cdf(figure: "Drawing") -> None:
        axes = figure.subplots()
        for policy in DRAWN:
            times = sorted(time for time in pooled(policy, "jct") if time is not None)
            shares = [(done + 1) / len(times) for done in range(len(times))]
            axes.step(
                times, shares, where="post", label=policy,
                color=colour(policy), linestyle=dash(policy),
            )  # fmt: skip
        axes.set(xscale="log", xlabel="JCT, s", ylabel="share of agents done")
        axes.set_ylim(0, 1.01)
        outside_legend(axes)

    def draw_scatter(figure: "Drawing") -> None:
        figure.set_size_inches(5.2, 4.4)
        axes = figure.subplots()
        mine, theirs = pooled("justitia", "jct"), pooled(BASELINE, "jct")
        kinds: list[str] = [str(kind) for kind in pooled("justitia", "kind")]
        for place, (size, marker) in enumerate(_SIZES.items()):
            points = [
                (x, y)
                for x, y, kind in zip(theirs, mine, kinds, strict=True)
                if size_of(kind) == size and x and y
            ]
            if points:
                axes.scatter(
                    [x for x, _ in points], [y for _, y in points],
                    s=11 + 9 * place, marker=marker, alpha=0.55, linewidths=0,
                    label=size,
                    color=("#2f7fb8", "#e8a13a", "#d1495b", "#7a828c")[place],
                )  # fmt: skip
        ends = [min(t for t in theirs if t), max(t for t in theirs if t)]
        axes.plot(ends, ends, color=GRID, linewidth=0.9)
        axes.set(xscale="log", yscale="log", xlabel="JCT under VTC, s")
        axes.set_ylabel("JCT under Justitia, s")
        axes.legend(title="below the line: sooner", loc="upper left")

    def draw_means(figure: "Drawing") -> None:
        axes = figure.subplots()
        # Runs of one seed are compared with one another, so that the intervals are
        # those of the ratio.
        gains = {name: shown[name]["gain"] for name in shown}
        order = sorted(gains, key=lambda name: number(gains[name]))
        longest = 0.0
        for place, name in enumerate(order):
            gain = gains[name]
            assert isinstance(gain, Estimate)
            axes.barh(
                place, 1 - gain.mean, height=0.62, color=colour(name), xerr=gain.half,
                error_kw=interval_bars(),
            )  # fmt: skip
            longest = max(longest, 1 - gain.mean)
            theirs = paper.MEAN_JCT.get(name)
            if theirs is not None:
                axes.plot(
                    theirs / paper.MEAN_JCT[BASELINE], place, marker="D",
                    markersize=6, markerfacecolor="white", markeredgewidth=1.3,
                    markeredgecolor="black", color=INK, linestyle="none", zorder=4,
                    label="the paper" if name == BASELINE else None,
                )  # fmt: skip
        axes.set_yticks(range(len(order)), order)
        axes.set_xlim(0, 1.25 * max(longest, 1.1))
        ends = [gains[name] for name in order]
        cut_off(
            axes,
            [1 - e.mean + (e.half or 0) for e in ends if isinstance(e, Estimate)],
            across=True,
        )
        axes.axvline(1, color=INK, linewidth=0.9, zorder=0.5)
        axes.set_xlabel("mean JCT over VTC's")
        axes.grid(axis="y", visible=False)
        axes.legend(loc="upper right")

    return [
        Figure(
            "mean-jct",
            "Mean JCT over VTC's: bars ours with their 95 % interval (an arrow where "
            f"it goes on), diamonds the paper's; {which}.",
            draw_means,
        ),
        Figure(
            "jct-cdf",
            f"Share of agents that are done within some time; {which}.",
            draw_cdf,
        ),
        Figure(
            "fairness-scatter",
            f"Each agent's JCT under Justitia against under VTC; {which}.",
            draw_scatter,
        ),
    ]
