"""What clients say that cannot be used, in the log: enough to find them, and no flood.

The logger is ``justitia``; an adapter sees to it that its engine shows it.
"""

import logging
from collections.abc import Callable

LOGGER = logging.getLogger("justitia")
SECONDS = 60.0
"""A field is written of once in so many at most."""


class Complaints:
    """Writes of a field when it is wrong, and then how often it was since.

    Parameters
    ----------
    now
        The time in seconds; one that is set back silences nobody for longer.

    Notes
    -----
    Complexity: O(1). Memory: two numbers a field, of which there are a few.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._told: dict[str, float] = {}
        self._since: dict[str, int] = {}

    def take(self, field: str, reason: str) -> None:
        """Write that a field could not be used, unless that was done just now."""
        now, told = self._now(), self._told.get(field)
        if told is not None and 0 <= now - told < SECONDS:
            self._since[field] = self._since.get(field, 0) + 1
            return
        more = self._since.pop(field, 0)
        self._told[field] = now
        LOGGER.warning(
            "a request goes on without what cannot be used of it: %s%s",
            reason or field,
            f" ({more:,} more of {field} since the last such line)" if more else "",
        )
