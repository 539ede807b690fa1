"""When agents arrive: seconds from the start of a run, ascending.

All functions that take a window give times that are proportional to it: a run at twice
the density has the same times, halved exactly.
"""

from collections.abc import Sequence
from fractions import Fraction
from math import gcd

from justitia.policy.exact import not_negative
from justitia.workloads.agents import WorkloadError
from justitia.workloads.draws import drawn, stream
from justitia.workloads.generate import check_count


def poisson(n: int, window: float, seed: int) -> list[float]:
    """Return the arrivals of a Poisson process, given that there are `n` in the window.

    Parameters
    ----------
    n
        How many arrive.
    window
        Seconds within which they arrive.
    seed
        Of the draw.

    Returns
    -------
    list of float
        `n` sorted uniform times in [0, window). O(n log n).

    Raises
    ------
    WorkloadError
        If `n` is not a count or `window` not a finite time.
    """
    check_count(n, "the number of arrivals")
    seconds = _window(window)
    rng = stream(seed, "poisson")
    return [place * seconds for place in sorted(rng.random() for _ in range(n))]


def burst(n: int) -> list[float]:
    """Return `n` arrivals at once, at 0.

    Raises
    ------
    WorkloadError
        If `n` is not a count.
    """
    check_count(n, "the number of arrivals")
    return [0.0] * n


def normalised(stamps: Sequence[float]) -> list[float]:
    """Return recorded stamps in ms as sorted seconds since the first of them.

    >>> normalised([5000, 0, 3000])
    [0.0, 3.0, 5.0]

    Raises
    ------
    WorkloadError
        Naming the row from 1, if a stamp is not a finite number from 0.
    """
    ordered = sorted(_checked(stamps))
    return [float((stamp - ordered[0]) / 1000) for stamp in ordered]


def from_trace(
    stamps: Sequence[float], n: int, window: float, seed: int
) -> list[float]:
    """Return `n` arrivals with the shape of a recorded trace.

    Traces often have coarse stamps (Mooncake's are multiples of 3 s), which would be
    bursts that never were. So each is moved, at random, within the step of the trace:
    the greatest common divisor of the differences of its stamps.

    Parameters
    ----------
    stamps
        In ms, in any order.
    n
        How many arrive: drawn from the stamps, without replacement while there are
        enough, beyond that all of them and the rest with replacement.
    window
        Seconds to which the whole of the trace is mapped.
    seed
        Of the draws.

    Returns
    -------
    list of float
        `n` sorted times in [0, window]. O((n + stamps) log).

    Raises
    ------
    WorkloadError
        If a stamp is not a finite number from 0, there are none of them while `n` is
        not 0, `n` is not a count or `window` not a finite time.
    """
    check_count(n, "the number of arrivals")
    seconds = _window(window)
    ordered = sorted(_checked(stamps))
    if not n:
        return []
    if not ordered:
        raise WorkloadError(f"{n} arrivals cannot be drawn from a trace of no stamps")
    step = _step(ordered)
    span = ordered[-1] - ordered[0] + step
    rng = stream(seed, "trace")
    places = []
    for stamp in drawn(rng, ordered, n):
        moved = float(stamp - ordered[0]) + rng.random() * float(step)
        places.append(min(1.0, moved / float(span)) if span else 0.0)
    return [place * seconds for place in sorted(places)]


def _window(window: float) -> float:
    try:
        return float(not_negative(window, "the window of arrivals in seconds"))
    except ValueError as error:
        raise WorkloadError(str(error)) from None


def _checked(stamps: Sequence[float]) -> list[Fraction]:
    """Return the stamps as exact numbers of ms."""
    checked = []
    for row, stamp in enumerate(stamps, start=1):
        try:
            checked.append(Fraction(not_negative(stamp, f"timestamp of row {row}")))
        except ValueError as error:
            raise WorkloadError(str(error)) from None
    return checked


def _step(ordered: list[Fraction]) -> Fraction:
    """Return the grid of the stamps in ms, 0 where it is finer than 1 ms."""
    step = 0
    for stamp in ordered:
        offset = stamp - ordered[0]
        if offset.denominator != 1:
            return Fraction(0)
        step = gcd(step, offset.numerator)
    return Fraction(step)
