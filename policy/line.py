"""A line of things by key, each of which can be moved or taken out."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from heapq import heapify, heappop, heappush

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Line:
    """An addressable priority queue of hashable items, smallest key first.

    A binary heap with lazy deletion: an entry that is nobody's any more stays until it
    surfaces, or until more than half of the heap is such.

    Keys are tuples of one length, unique among the items in line, so that items are
    never compared.

    Complexity, with n items: `push` and `discard` O(log n) amortised, `peek` O(1),
    the first k of an iteration O(k log k). Memory O(n).
    """

    __slots__ = ("_entries", "_heap")

    def __init__(self) -> None:
        # An entry is the key with the item behind it, flat: tuples in tuples compare
        # at half the speed.
        self._entries: dict[Hashable, tuple[Any, ...]] = {}
        self._heap: list[tuple[Any, ...]] = []

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, item: Hashable) -> bool:
        return item in self._entries

    def key(self, item: Hashable) -> tuple[Any, ...]:
        """Return the key of an item that is in line."""
        return self._entries[item][:-1]

    def push(self, item: Hashable, key: tuple[Any, ...]) -> None:
        """Put an item in line, or move it to another key."""
        entry = (*key, item)
        moved = item in self._entries
        self._entries[item] = entry
        heappush(self._heap, entry)
        if moved:
            self._settle()

    def discard(self, item: Hashable) -> None:
        """Take an item out, if it is there."""
        if self._entries.pop(item, None) is not None:
            self._settle()

    def peek(self) -> Any:  # noqa: ANN401 - what was pushed
        """Return the item of the smallest key, None when the line is empty."""
        return self._heap[0][-1] if self._heap else None

    def __iter__(self) -> Iterator[Any]:
        """Yield the items in order of their keys; the line must not change meanwhile.

        Walks the heap from its root and sorts no more than it has passed.
        """
        heap = self._heap
        frontier = [(heap[0], 0)] if heap else []
        while frontier:
            entry, index = heappop(frontier)
            for child in (2 * index + 1, 2 * index + 2):
                if child < len(heap):
                    heappush(frontier, (heap[child], child))
            if self._entries.get(entry[-1]) is entry:
                yield entry[-1]

    def _settle(self) -> None:
        """Restore the two bounds: the top is live, and at least half of the rest."""
        heap, entries = self._heap, self._entries
        while heap and entries.get(heap[0][-1]) is not heap[0]:
            heappop(heap)
        if len(heap) > 2 * len(entries) + 16:
            self._heap = [e for e in heap if entries.get(e[-1]) is e]
            heapify(self._heap)

    def _check(self) -> None:
        """Assert the invariants of the representation."""
        keys = [entry[:-1] for entry in self._entries.values()]
        assert len(keys) == len(set(keys))
        live = [e for e in self._heap if self._entries.get(e[-1]) is e]
        assert len(live) == len(self._entries)
        for index in range(1, len(self._heap)):
            assert self._heap[(index - 1) // 2][:-1] <= self._heap[index][:-1]
        assert len(self._heap) <= 2 * len(self._entries) + 16
        assert not self._heap or live[0] is self._heap[0]
