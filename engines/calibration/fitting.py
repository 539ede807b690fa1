"""Straight lines through measured times: least squares, and none of it negative.

A step's time is taken for linear in what it does. No part of it can be negative, so
where plain least squares would make one so, it is left out. With four parts all ways of
leaving some out can be tried, so the best is found, and by no iteration.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import numpy.typing as npt

from justitia.engines.calibration.samples import Sample
from justitia.policy import PolicyError

Array = npt.NDArray[np.float64]

ROUNDS = 8
"""Of weighing samples anew by what the line says of them."""
FAR = 6.0
"""A sample is left out that is so many times as far off as the middle one."""
LEAST_FAR = 3.0
"""But none that takes less than four times what the line says: a step before which many
requests were let in takes twice or three times that, and does so in every run."""
_MOST_LEFT_OUT = 0.2
_ALIKE = 1e-18
"""Times that differ by their rounding only."""


class CalibrationError(PolicyError):
    """Something that nothing can be measured with, or be fitted to."""


@dataclass(frozen=True, slots=True)
class StepFit:
    """The linear time of a step, in seconds, and how far it is from what was measured.

    Parameters
    ----------
    fixed, prefill_token, sequence, kv_token
        What each step takes, and each of these in it.
    error
        Mean size of the relative error of the samples that were used.
    r2
        1 - squared errors / squared distances from the mean; of the same.
    used, left_out
        Samples; those left out are far off.
    """

    fixed: float
    prefill_token: float
    sequence: float
    kv_token: float
    error: float
    r2: float
    used: int
    left_out: int


def least_squares(design: Array, times: Array, weights: Array) -> Array:
    """Minimise the weighted sum of squared errors, each relative to the measured time.

    Complexity: O(rows), for few columns.
    """
    scale = np.sqrt(weights) / times
    solution = np.linalg.lstsq(design * scale[:, None], times * scale, rcond=None)[0]
    return np.asarray(solution, dtype=np.float64)


def non_negative(design: Array, times: Array, weights: Array) -> Array:
    """Minimise the same with no coefficient below 0.

    The least of a convex function over a cone lies in the inside of one of its faces:
    it is the plain solution of some of the columns. All are tried.

    Complexity: O(2^columns) times that of `least_squares`.
    """
    count = design.shape[1]
    best, least = np.zeros(count), np.inf
    for size in range(1, count + 1):
        for columns in combinations(range(count), size):
            chosen = list(columns)
            part = least_squares(design[:, chosen], times, weights)
            if (part < 0).any():
                continue
            off = design[:, chosen] @ part / times - 1
            squares = float(weights @ (off * off))
            if squares < least:
                best, least = np.zeros(count), squares
                best[chosen] = part
    return best


def fit_steps(samples: Sequence[Sample]) -> StepFit:
    """Fit the linear time of a step.

    Errors count relative to what the line says of a step, not to what was measured:
    that would favour steps that happened to be fast. A few steps that are far off (a
    kernel compiled, a machine that did something else) are left out.

    Raises
    ------
    CalibrationError
        If there are fewer than twenty samples, or nothing took any time.

    Notes
    -----
    Complexity: O(samples), times `ROUNDS`.
    """
    table = np.array(samples, dtype=np.float64).reshape(-1, 4)
    table = table[table[:, 3] > 0]
    if len(table) < 20:
        raise CalibrationError(
            f"{len(table)} steps were measured; it takes 20 or more to fit their time"
        )
    design = np.column_stack((np.ones(len(table)), table[:, :3]))
    times = table[:, 3]
    kept = np.ones(len(table), dtype=bool)
    said = np.full(len(table), np.median(times))
    solution = np.zeros(4)
    for _ in range(ROUNDS):
        weights = (times / said)[kept] ** 2
        solution = non_negative(design[kept], times[kept], weights)
        said = np.maximum(design @ solution, np.min(times) / 10)
        off = np.abs(times / said - 1)
        limit = max(LEAST_FAR, FAR * float(np.median(off)))
        # Where many are far off it is the line that is wrong.
        limit = max(limit, float(np.quantile(off, 1 - _MOST_LEFT_OUT)))
        kept = off <= limit
    used, line = times[kept], (design @ solution)[kept]
    spread = float(np.sum((used - np.mean(used)) ** 2))
    alike = spread <= _ALIKE * float(np.sum(used**2))
    missed = float(np.sum((used - line) ** 2))
    fixed, prefill_token, sequence, kv_token = solution.tolist()
    return StepFit(
        fixed,
        prefill_token,
        sequence,
        kv_token,
        error=float(np.mean(np.abs(line / used - 1))),
        r2=1.0 if alike else 1 - missed / spread,
        used=len(used),
        left_out=len(times) - len(used),
    )
