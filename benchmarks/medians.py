"""How sure a median is."""

from math import comb


def interval(values: list[float]) -> tuple[float, float, float]:
    """Return bounds of the median, and how sure they are: at least 95 %.

    Between two order statistics; nothing is assumed of the distribution.
    """
    ordered, count = sorted(values), len(values)
    cut, outside = 0, 0.0
    while True:
        more = outside + 2 * comb(count, cut) / 2**count
        if more > 0.05:
            return ordered[cut - 1], ordered[count - cut], 1 - outside
        cut, outside = cut + 1, more
