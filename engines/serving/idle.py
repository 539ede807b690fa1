"""Agents without a request: remembered for a while, and not too many of them."""

from collections import OrderedDict
from collections.abc import Callable


class Idle:
    """Agents that rest, the longest at rest first, and the time that this takes.

    The time is what a clock was seen to go forward by. One that is set back stands
    still for a moment, and nobody rests for longer than that.

    Parameters
    ----------
    now
        The clock, in seconds.
    linger
        Seconds after which an agent has rested for too long.
    most
        Agents that may rest at once.

    Notes
    -----
    Complexity: all O(1), `due` amortised.
    """

    def __init__(self, now: Callable[[], float], linger: float, most: int) -> None:
        self._now = now
        self._linger = linger
        self._most = most
        self._seen = now()
        self._time = 0.0
        self._since: OrderedDict[str, float] = OrderedDict()

    def __contains__(self, agent_id: str) -> bool:
        return agent_id in self._since

    def __len__(self) -> int:
        return len(self._since)

    @property
    def remembers(self) -> bool:
        """Whether anybody may rest at all."""
        return self._linger > 0 and self._most > 0

    def tick(self) -> float:
        """Look at the clock; return the seconds since the last time, as it says."""
        now = self._now()
        passed, self._seen = now - self._seen, now
        self._time += max(0.0, passed)
        return passed

    def rest(self, agent_id: str) -> None:
        """Take note that an agent rests from now on."""
        self._since[agent_id] = self._time
        self._since.move_to_end(agent_id)

    def wake(self, agent_id: str) -> None:
        """Take note that an agent rests no more, if it did."""
        self._since.pop(agent_id, None)

    def due(self) -> str | None:
        """Return who has rested longest, if that is too long or there are too many."""
        if not self._since:
            return None
        agent_id, since = next(iter(self._since.items()))
        if len(self._since) > self._most or self._time - since >= self._linger:
            return agent_id
        return None

    def _check(self) -> None:
        """Assert all invariants."""
        times = list(self._since.values())
        assert times == sorted(times)
        assert not times or times[-1] <= self._time
