"""A mean over seeds, and how far to trust it."""

from collections.abc import Iterable
from dataclasses import dataclass
from math import sqrt
from statistics import fmean, stdev

CONFIDENCE = 0.95


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over some runs.

    Parameters
    ----------
    mean
        Of the runs.
    half
        Half the width of its 95 % interval by Student's t, which takes the runs'
        values for independent and normal; None for a single run.
    runs
        How many.
    """

    mean: float
    half: float | None
    runs: int


def estimate(values: Iterable[float | None]) -> Estimate | None:
    """Return the mean of the values that are there; None where there are none.

    >>> found = estimate([1.0, 2.0, 3.0])
    >>> found.mean, round(found.half, 3)
    (2.0, 2.484)
    """
    from scipy.special import stdtrit  # noqa: PLC0415 - an extra, and slow to load

    known = [value for value in values if value is not None]
    if not known:
        return None
    runs = len(known)
    if runs == 1:
        return Estimate(known[0], None, 1)
    t = float(stdtrit(runs - 1, (1 + CONFIDENCE) / 2))
    return Estimate(fmean(known), t * stdev(known) / sqrt(runs), runs)
