"""SGLang's queue of waiting requests, its front in the order of the policy.

SGLang asks its `SchedulePolicy` to sort the queue, a list, before each look at it, and
admits from the front until one does not fit. So no more than a front is put in order:
a few at first, and more as that many are admitted. While the policy's line is as it
was, nothing is asked of the policy at all.
"""

from collections.abc import Callable, Collection
from itertools import islice
from typing import Any

from sglang.srt.managers.schedule_policy import CacheAgnosticPolicy, SchedulePolicy

from justitia.engines.serving import Agents

FEW, MORE = 16, 64
"""Requests that are looked at when something has moved, and put in order if need be."""


class Front:
    """The requests at the front of SGLang's queue that are in their places.

    Parameters
    ----------
    agents
        Whose line is the order.
    request
        Gives a request from its id.
    loose
        Requests in the queue that are not in the policy's line and go before all of it.
    all
        Put all in order, always: for an engine that may pass over some at the front.

    Attributes
    ----------
    placed
        How many at the front of the queue are in their places.
    sorts, rewrites
        How often the policy was asked for its order, and how often the queue had
        another.

    Notes
    -----
    Complexity, with n in the queue: `place` O(1) if nothing has moved; else it looks at
    `FEW`, and only if those are not at the front is the list rewritten, O(n), with
    `MORE` at its front. To admit a, O(log a) rewrites.
    """

    def __init__(
        self,
        agents: Agents,
        request: Callable[[str], Any],
        loose: Collection[Any],
        *,
        all: bool = False,
    ) -> None:
        self._agents = agents
        self._request = request
        self._loose = loose
        self._all = all
        self._moves: int | None = None
        self._complete = False
        self._may: set[Any] = set()
        self._asked = 0
        self.placed = 0
        self.sorts = self.rewrites = 0

    def place(self, queue: list[Any]) -> None:
        """Put the first in their places, if they are not; a new look begins."""
        self._asked = 0
        there = self.placed > 0 or self._complete
        if not there or self._agents.moves != self._moves:
            self._sort(queue, FEW)

    def ask(self, req: Any, queue: list[Any]) -> bool:
        """Return whether a request may be admitted; others behind it get their places.

        One that may not is not in the policy's line: it is held back, or its agent was
        dismissed.
        """
        may = req in self._may
        self._asked += 1
        if self._asked >= self.placed and not self._complete:
            self._sort(queue, max(FEW, 2 * self.placed))
        return may

    def started(self) -> None:
        """Take note that the first in line has left it."""
        self.placed = max(0, self.placed - 1)

    def outdate(self) -> None:
        """Let the order be asked for again."""
        self._moves = None

    def _sort(self, queue: list[Any], count: int) -> None:
        """Have that many in their places, those that are loose before them."""
        self.sorts += 1
        self._moves = self._agents.moves
        line = map(self._request, self._agents.order())
        count = len(queue) if self._all else count
        front = [*self._loose, *islice(line, count)]
        if queue[: len(front)] != front:
            self.rewrites += 1
            front += islice(line, max(0, MORE - count))
            count = max(count, MORE)
            there = set(front)
            queue[:] = front + [req for req in queue if req not in there]
        self._may = set(front)
        self._complete = len(front) - len(self._loose) < count
        self.placed = len(front)


class PolicyOrder(SchedulePolicy):
    """SGLang's `SchedulePolicy` that asks the policy."""

    def __init__(self, scheduler: Any, front: Front) -> None:
        super().__init__(
            "fcfs",  # leaves the order alone
            scheduler.tree_cache,
            scheduler.enable_hierarchical_cache,
            False,
            False,
        )
        assert self.policy is CacheAgnosticPolicy.FCFS
        self.front = front

    def calc_priority(
        self, waiting_queue: list[Any], *args: Any, **kwargs: Any
    ) -> None:
        """Put the front of the queue in order, then do what SGLang does beside."""
        self.front.place(waiting_queue)
        super().calc_priority(waiting_queue, *args, **kwargs)


def passes_over(scheduler: Any) -> bool:
    """Return whether SGLang may pass over requests at the front of its queue.

    It does for adapters and prefixes that are not loaded, and for what it cannot put
    into one batch when it only embeds.
    """
    return bool(
        scheduler.enable_lora
        or getattr(scheduler, "enable_hicache_storage", False)
        or getattr(scheduler, "enable_lmcache", False)
        or not scheduler.is_generation
    )
