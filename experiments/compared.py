"""Runs beside the run of VTC on the same agents."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from justitia.experiments.cells import Cell, Outcome
from justitia.experiments.estimate import Estimate, estimate

Result = Mapping[str, Any]
"""What `justitia.experiments.tasks.simulate` says of a run."""


@dataclass(frozen=True, slots=True)
class Beside:
    """A run beside the baseline's; parts of 1, None where there is no value.

    Parameters
    ----------
    gain
        1 - mean JCT / the baseline's.
    later
        The share of agents that finished later than under the baseline.
    worst, typical
        How much later, as a part of the JCT there: the worst one, and the mean of those
        that are later at all.
    """

    gain: float | None
    later: float | None
    worst: float | None
    typical: float | None


def beside(run: Result, baseline: Result) -> Beside:
    """Compare a run with the baseline's, agent by agent."""
    pairs = [
        (mine, other)
        for mine, other in zip(run["jct"], baseline["jct"], strict=True)
        if mine is not None and other is not None
    ]
    if not pairs:
        return Beside(None, None, None, None)
    mean, theirs = mean_jct(run), mean_jct(baseline)
    delays = [mine / other - 1 for mine, other in pairs if mine > other > 0]
    late = sum(mine > other for mine, other in pairs)
    return Beside(
        gain=1 - mean / theirs if mean is not None and theirs else None,
        later=late / len(pairs),
        worst=max(delays, default=0.0),
        typical=fmean(delays) if delays else 0.0,
    )


def mean_jct(run: Result) -> float | None:
    """Return the mean JCT of the agents that finished, in seconds."""
    known = [jct for jct in run["jct"] if jct is not None]
    return fmean(known) if known else None


def over_seeds(
    outcomes: Mapping[Cell, Outcome], cells: Sequence[Cell], baselines: Sequence[Cell]
) -> dict[str, Estimate | None]:
    """Return what runs of one policy come to, a seed each, beside the baseline's.

    Keys are those of `COLUMNS` in `justitia.experiments.main`.
    """
    runs = [outcomes[cell]["result"] for cell in cells]
    others = [outcomes[cell]["result"] for cell in baselines]
    compared = [beside(run, other) for run, other in zip(runs, others, strict=True)]
    return {
        "mean": estimate(mean_jct(run) for run in runs),
        "gain": estimate(one.gain for one in compared),
        "later": estimate(one.later for one in compared),
        "worst": estimate(one.worst for one in compared),
        "typical": estimate(one.typical for one in compared),
        "ratio": estimate(
            None if run["lag"] is None else run["lag"]["ratio"] for run in runs
        ),
        "load": estimate(run["load"] for run in runs),
    }


def change(
    outcomes: Mapping[Cell, Outcome], cells: Sequence[Cell], others: Sequence[Cell]
) -> Estimate | None:
    """Return how much longer the mean JCT of `cells` is than that of `others`."""
    return estimate(
        None if mine is None or not theirs else mine / theirs - 1
        for cell, other in zip(cells, others, strict=True)
        for mine, theirs in [
            (mean_jct(outcomes[cell]["result"]), mean_jct(outcomes[other]["result"]))
        ]
    )
