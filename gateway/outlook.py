"""How much work there is until many tags, at once and in doubles: for people to see."""

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate
from math import inf

from justitia.policy.exact import Number


class Outlook:
    """`VirtualClock.until`, asked of many tags as the clock was.

    Parameters
    ----------
    value
        V.
    places
        The tag and the weight of each active agent; see `VirtualClock.places`.
    largest
        The largest tag that is asked for.

    Notes
    -----
    Complexity: O(n + k log k) for n active agents and k of them up to `largest`,
    `until` O(log k). Doubles round: it is nothing to decide by.
    """

    def __init__(
        self,
        value: float,
        places: Sequence[tuple[float, Number]],
        largest: float = inf,
    ) -> None:
        self._value = value
        line = sorted((tag, float(w)) for tag, w in places if tag <= largest)
        later = float(sum(w for tag, w in places if tag > largest))
        self._tags = [tag for tag, _ in line]
        self._work = [0.0, *accumulate((tag - value) * w for tag, w in line)]
        self._weights = [0.0, *accumulate(weight for _, weight in line)]
        self._weight = self._weights[-1] + later

    def until(self, tag: float) -> float:
        """Return the work after which V is `tag`, if nobody arrives meanwhile."""
        passed = bisect_right(self._tags, tag)
        beyond = self._weight - self._weights[passed]
        return max(0.0, self._work[passed] + (tag - self._value) * beyond)
