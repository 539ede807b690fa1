"""How full the caches of servers are, as far as that can be seen from outside."""


class Holding:
    """The part of a capacity that is held, on average over the time when any is.

    Parameters
    ----------
    capacity
        KV tokens; None: not known.

    Notes
    -----
    Complexity: O(1). Times are of any unit.
    """

    def __init__(self, capacity: int | None) -> None:
        self._capacity = capacity
        self._held = 0
        self._running = 0
        self._last = 0
        self._sum = 0
        self._busy = 0

    def passed(self, now: int) -> None:
        """Take note of the time."""
        if self._running:
            self._sum += self._held * (now - self._last)
            self._busy += now - self._last
        self._last = now

    def enter(self, tokens: int) -> None:
        """Take note of an inference that starts with so many tokens."""
        self._running += 1
        self._held += tokens

    def grow(self, tokens: int) -> None:
        """Take note of more tokens of one."""
        self._held += tokens

    def leave(self, tokens: int) -> None:
        """Take note of the end of one that held so many."""
        self._running -= 1
        self._held -= tokens

    @property
    def mean(self) -> float | None:
        """The average, None where it is not known."""
        if self._capacity is None or not self._busy:
            return None
        return self._sum / self._busy / self._capacity
