"""How far predictions were from what came."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

HIGH = 0.9
"""The quantile whose coverage is told."""


@dataclass(frozen=True, slots=True)
class Score:
    """Predictions of some agents' costs, beside their real costs.

    Attributes
    ----------
    agents
        How many.
    mean_relative_error, median_relative_error
        Of |predicted - real| / real.
    within_factor_2
        The part predicted at no less than half and no more than twice the real cost.
    coverage_90
        The part that cost no more than its predicted 90th percentile; None where none
        was predicted.
    rank_correlation
        Spearman's; None where all predictions or all costs are equal.
    fallbacks
        Answers that the agent's own class and text did not give.
    """

    agents: int
    mean_relative_error: float
    median_relative_error: float
    within_factor_2: float
    coverage_90: float | None
    rank_correlation: float | None
    fallbacks: int = 0


def score(
    real: Sequence[float],
    predicted: Sequence[float],
    high: Sequence[float | None] = (),
    fallbacks: int = 0,
) -> Score:
    """Score predictions; there is at least one, and real costs are positive.

    Parameters
    ----------
    high
        The predicted 90th percentiles, in the same order; empty, or with a None, where
        there are none. O(n log n).
    """
    errors = [abs(p - r) / r for r, p in zip(real, predicted, strict=True)]
    near = sum(r <= 2 * p and p <= 2 * r for r, p in zip(real, predicted, strict=True))
    covered = None
    limits = [limit for limit in high if limit is not None]
    if len(limits) == len(errors):
        covered = fmean(r <= limit for r, limit in zip(real, limits, strict=True))
    return Score(
        agents=len(errors),
        mean_relative_error=fmean(errors),
        median_relative_error=median(errors),
        within_factor_2=near / len(errors),
        coverage_90=covered,
        rank_correlation=rank_correlation(real, predicted),
        fallbacks=fallbacks,
    )


def rank_correlation(one: Sequence[float], other: Sequence[float]) -> float | None:
    """Return Spearman's rank correlation; None where it has no value. O(n log n)."""
    if len(set(one)) < 2 or len(set(other)) < 2:
        return None
    from scipy.stats import spearmanr  # noqa: PLC0415 - of the extra

    return float(spearmanr(one, other).statistic)
