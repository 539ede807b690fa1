"""Priorities for an engine that code cannot be loaded into: integers in order of tags.

A stock server takes an integer with a request and fixes it for good. Tags are exact
numbers without end, so `Priorities` gives each tag an integer of the server's range
that stands to the others still in use as the tag does to theirs. Nothing is rounded
away: two tags that differ get integers that differ, in order, or an error.

Which way a server counts, and how far, is in `Range` and nowhere else: vLLM takes the
smaller integer first, SGLang too where it is told to, and both 64 bits of it.
"""

from bisect import bisect_left, insort
from dataclasses import dataclass

from justitia.policy import PolicyError
from justitia.policy.exact import Exact, Number, exactly, finite, positive, shown


class OutOfPriorities(PolicyError):
    """No integer of the server's range is left between two tags in use."""


@dataclass(frozen=True, slots=True)
class Range:
    """What integers a server takes.

    Attributes
    ----------
    least, most
        The bounds, both included.
    smaller_first
        Whether the smaller of two goes first.
    grain
        Work per integer, in the unit of the tags. Tags grow for as long as the server
        is never idle, and the range must last for that: at a 1024th of a token-step 64
        bits do for a hundred years at four million token-steps a second.
    """

    least: int
    most: int
    smaller_first: bool = True
    grain: Number = 2**-10

    def __post_init__(self) -> None:
        if self.most - self.least < 8:
            raise PolicyError(f"{shown(self)} has no room for an order")
        positive(self.grain, "grain")


VLLM = Range(-(2**63), 2**63 - 1)
"""``priority`` of a request to vLLM with ``--scheduling-policy priority``."""
SGLANG = Range(-(2**63), 2**63 - 1)
"""``priority`` of a request to SGLang with ``--enable-priority-scheduling
--schedule-low-priority-values-first``; without the second it takes the larger first.

A request without a priority goes last, as one of the largest does."""


class Priorities:
    """Gives integers to tags, in their order; see the module.

    A tag gets the integer that is as far from the next smaller one as the tags are, in
    grains, where that is free and between its neighbours; else one in the middle
    between them. So integers run out only where very many tags come between the same
    two; `OutOfPriorities` says so, and nothing has changed. When nothing is in use the
    range is free again.

    Equal tags share an integer: the server decides between them, by arrival.

    Parameters
    ----------
    range
        Of the server.

    Notes
    -----
    Complexity: `give` O(n) with n different tags in use (a move of memory, n / 2 words)
    and `free` likewise. Memory O(n).
    """

    def __init__(self, range: Range = VLLM) -> None:
        self.range = range
        self._grain = exactly(range.grain)
        self._tags: list[Exact] = []
        self._places: dict[Exact, int] = {}  # 0 to `_width`, smaller first
        self._users: dict[Exact, int] = {}
        self._width = range.most - range.least
        # Room for what may come between; tags below all others are rare, and get more.
        self._above, self._below = max(1, self._width >> 48), max(1, self._width >> 20)

    def __len__(self) -> int:
        """Return how many different tags are in use."""
        return len(self._tags)

    def give(self, tag: Number) -> int:
        """Return the integer for a request of a tag, in use until `free`.

        Raises
        ------
        PolicyError
            If the tag is not a finite number.
        OutOfPriorities
            If there is no integer for it.
        """
        tag = exactly(finite(tag, "tag"))
        if tag not in self._places:
            self._places[tag] = self._place(tag)
            self._users[tag] = 0
            insort(self._tags, tag)
        self._users[tag] += 1
        return self._told(self._places[tag])

    def free(self, tag: Number) -> None:
        """Take note that a request of a tag has ended."""
        tag = exactly(finite(tag, "tag"))
        if tag not in self._users:
            raise PolicyError(f"tag {shown(tag)} is not in use")
        self._users[tag] -= 1
        if not self._users[tag]:
            del self._users[tag], self._places[tag]
            del self._tags[bisect_left(self._tags, tag)]

    def _place(self, tag: Exact) -> int:
        tags, places = self._tags, self._places
        if not tags:
            return self._width // 4  # tags grow, so most of the room is above
        index = bisect_left(tags, tag)
        low = places[tags[index - 1]] if index else -1
        high = places[tags[index]] if index < len(tags) else self._width + 1
        if high - low < 2:
            raise OutOfPriorities(
                f"no priority is left for tag {shown(tag)} between those in use"
            )
        if index:
            near = tags[index - 1]
            ideal = low + max(self._above, int((tag - near) / self._grain))
        else:
            near = tags[0]
            ideal = high - max(self._below, int((near - tag) / self._grain))
        return ideal if low < ideal < high else (low + high) // 2

    def _told(self, place: int) -> int:
        if self.range.smaller_first:
            return self.range.least + place
        return self.range.most - place

    def _check(self) -> None:
        """Assert that integers stand in the order of the tags, within the range."""
        assert self._tags == sorted(self._places)
        assert self._places.keys() == self._users.keys()
        assert all(count > 0 for count in self._users.values())
        places = [self._places[tag] for tag in self._tags]
        assert places == sorted(set(places))
        assert all(0 <= place <= self._width for place in places)
