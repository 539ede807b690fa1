"""GPS virtual time: how far an ideal fair server is with every agent.

The reference shares all service among the agents that it has not finished yet, in
proportion to their weights. V is what each of them has received per unit of weight; an
agent of cost C that arrives at V has the tag F = V + C / weight and is finished when V
reaches F. Agents leave the reference in the order of their tags, and no later arrival
changes a tag.

Source: section 4 of the Justitia paper; Parekh and Gallager 1993 for GPS.
"""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heapify, heappop, heappush
from math import inf

from justitia.policy.errors import PolicyError
from justitia.policy.exact import (
    Exact,
    Number,
    advanced,
    exactly,
    finite,
    not_negative,
    positive,
    shown,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TypeAlias

    _Entry: TypeAlias = "tuple[float, Exact, int, _Member]"


class _Member:
    """An agent as the clock knows it; `entry` is its place in the heap, if active."""

    __slots__ = ("cost", "entry", "key", "seq", "tag", "weight")

    def __init__(
        self, key: Hashable, seq: int, cost: Exact, weight: Exact, tag: Exact
    ) -> None:
        self.key = key
        self.seq = seq
        self.cost = cost
        self.weight = weight
        self.tag = tag
        self.entry: _Entry | None = None


class VirtualClock:
    """Virtual time of generalised processor sharing, driven by service.

    It knows no seconds: `serve` tells it how much work was delivered. An agent is
    *active* while its tag is above V, whether or not it still runs for real.

    Costs, weights and work are ints, Fractions or floats, and V and the tags are exact:
    a float is taken for the binary fraction that it is. There is no rebase, and no need
    of one. A double would have a grain of 0.016 token-steps after a year at 40,960
    tokens and 100 steps a second, and with small weights V grows much faster: one agent
    of weight 1e-30 would make all later costs vanish. `justitia.policy.exact` says how
    the numbers stay bounded.

    Complexity, with n agents remembered: `arrive`, `revise` and `leave` O(log n)
    amortised, `serve` O(1) plus amortised O(log n) for each agent that departs, `until`
    and `places` O(n), all else O(1). Memory O(n).

    Examples
    --------
    The paper's worked example, on a machine of 100 token-steps a second:

    >>> clock = VirtualClock()
    >>> clock.arrive("A", cost=200)
    200
    >>> clock.serve(100)  # one second
    []
    >>> clock.arrive("B", cost=30), clock.arrive("C", cost=40)
    (130, 140)
    >>> clock.serve(110)  # B and C depart 0.9 and 1.1 seconds later
    [('B', 90), ('C', 110)]
    >>> clock.value, clock.active
    (140, 1)
    """

    __slots__ = ("_active", "_heap", "_members", "_seq", "_value", "_weight")

    def __init__(self) -> None:
        self._members: dict[Hashable, _Member] = {}
        self._heap: list[_Entry] = []  # with entries that are no longer anybody's
        self._active = 0
        self._weight: Exact = 0  # of the active
        self._value: Exact = 0
        self._seq = 0

    @property
    def value(self) -> Exact:
        """V, in work per unit weight. It never goes back."""
        return self._value

    @property
    def active(self) -> int:
        """How many agents the reference has not finished."""
        return self._active

    @property
    def weight(self) -> Exact:
        """The sum of their weights: V grows by 1 / `weight` per unit of work."""
        return self._weight

    def __contains__(self, agent: Hashable) -> bool:
        return agent in self._members

    def __len__(self) -> int:
        """Return how many agents are remembered, departed or not."""
        return len(self._members)

    def arrive(self, agent: Hashable, cost: Number, weight: Number = 1) -> Exact:
        """Add an agent and return its tag, V + cost / weight.

        Raises
        ------
        PolicyError
            If the agent is there already, or `cost` or `weight` is not finite and
            positive. Nothing has changed.
        """
        try:
            known = agent in self._members
        except TypeError:
            raise PolicyError(
                f"an agent must be hashable, not {shown(agent)}"
            ) from None
        if known:
            raise PolicyError(f"agent {shown(agent)} is in the clock already")
        cost = exactly(positive(cost, f"cost of agent {shown(agent)}"))
        weight = exactly(positive(weight, f"weight of agent {shown(agent)}"))
        tag = advanced(self._value, cost, weight)
        member = _Member(agent, self._seq, cost, weight, tag)
        self._seq += 1
        self._members[agent] = member
        self._place(member)
        return tag

    def serve(self, work: Number) -> list[tuple[Hashable, Exact]]:
        """Share `work` among the active agents.

        Each departure on the way changes the rate from there on. Work that is left when
        nobody is active is lost: V stands still.

        Parameters
        ----------
        work
            Delivered since the last call, in the unit of the costs. Not negative.

        Returns
        -------
        list of (agent, work)
            The agents that departed, in order of (tag, arrival), each with the part of
            `work` that had been shared by then.

        Raises
        ------
        PolicyError
            If `work` is negative or not finite. Nothing has changed.
        """
        work = exactly(not_negative(work, "work"))
        left = work
        departed: list[tuple[Hashable, Exact]] = []
        while left and self._active:
            tag = self._head()[1]
            need = (tag - self._value) * self._weight
            if left < need:
                self._value = advanced(self._value, left, self._weight)
                break
            left -= need
            self._value = tag
            while self._active and (entry := self._head())[1] <= self._value:
                departed.append((entry[3].key, work - left))
                self._remove(entry[3])
        return departed

    def revise(self, agent: Hashable, cost: Number) -> Exact:
        """Change an agent's total cost and return its new tag; no other tag changes.

        With Δ the difference, growth gives max(V, tag) + Δ / weight (one that had
        departed is active again) and shrinking tag - Δ / weight (it departs at once if
        that is not above V). A further stage, an outgrown prediction and the settling
        of an agent that ended early are all this.

        Raises
        ------
        PolicyError
            If the agent is unknown, or `cost` is not finite and positive. Nothing has
            changed.
        """
        member = self._member(agent)
        cost = exactly(positive(cost, f"cost of agent {shown(agent)}"))
        if cost == member.cost:
            return member.tag
        base = member.tag
        if cost > member.cost:
            base = max(self._value, base)
        tag = advanced(base, cost - member.cost, member.weight)
        if member.entry is not None:
            self._remove(member)
        member.cost = cost
        member.tag = tag
        self._place(member)
        return tag

    def leave(self, agent: Hashable) -> bool:
        """Forget an agent, at once; return whether it was there.

        What it had still to get is shared by the others. For an agent that was given
        service, settle it first (see `revise`) and forget it when it departs.
        """
        try:
            member = self._members.pop(agent, None)
        except TypeError:
            raise PolicyError(
                f"an agent must be hashable, not {shown(agent)}"
            ) from None
        if member is None:
            return False
        if member.entry is not None:
            self._remove(member)
        return True

    def tag(self, agent: Hashable) -> Exact:
        """Return the virtual finish time of an agent, departed or not.

        Raises
        ------
        PolicyError
            If the agent is unknown.
        """
        return self._member(agent).tag

    def until(self, tag: Number) -> Exact:
        """Return the work after which V is `tag`, if nobody arrives meanwhile.

        0 where V is there already. Where nobody of those active has so large a tag, the
        work after which all of them have departed.

        Complexity: O(active).
        """
        tag = exactly(finite(tag, "tag"))
        value = self._value
        return sum(
            (min(m.tag, tag) - value) * m.weight
            for *_, m in self._heap_entries()
            if tag > value
        )

    def places(self) -> list[tuple[float, Exact]]:
        """Return the tag, as a double, and the weight of each active agent, unordered.

        Complexity: O(active).
        """
        return [(entry[0], entry[3].weight) for entry in self._heap_entries()]

    def _heap_entries(self) -> list[_Entry]:
        """Return the entries of the active, in no order."""
        return [entry for entry in self._heap if entry[3].entry is entry]

    def _member(self, agent: Hashable) -> _Member:
        try:
            return self._members[agent]
        except (KeyError, TypeError):
            raise PolicyError(f"agent {shown(agent)} is not in the clock") from None

    def _place(self, member: _Member) -> None:
        """Make a member active if its tag is above V."""
        if member.tag <= self._value:  # it shrank to what it has had
            return
        # Doubles compare fast; where two are equal the exact tags decide.
        entry = (float(member.tag), member.tag, member.seq, member)
        member.entry = entry
        heappush(self._heap, entry)
        self._active += 1
        self._weight += member.weight

    def _remove(self, member: _Member) -> None:
        """Make a member inactive; its entry stays in the heap until it surfaces."""
        member.entry = None
        self._active -= 1
        self._weight -= member.weight
        if len(self._heap) > 2 * self._active + 16:
            self._heap = self._heap_entries()
            heapify(self._heap)

    def _head(self) -> _Entry:
        heap = self._heap
        while heap[0][3].entry is not heap[0]:
            heappop(heap)
        return heap[0]

    def _check(self) -> None:
        """Assert the invariants of the representation."""
        active = [m for m in self._members.values() if m.entry is not None]
        assert self._active == len(active)
        assert self._weight == sum(m.weight for m in active)
        assert 0 <= self._value < inf
        entries = {id(entry) for entry in self._heap}
        previous = -1
        for key, member in self._members.items():
            assert member.key is key
            assert previous < member.seq < self._seq
            previous = member.seq
            assert member.cost > 0
            assert member.weight > 0
            assert (member.entry is not None) == (member.tag > self._value)
            if member.entry is not None:
                assert member.entry[:3] == (float(member.tag), member.tag, member.seq)
                assert member.entry[3] is member
                assert id(member.entry) in entries
        for index in range(1, len(self._heap)):
            assert self._heap[(index - 1) // 2] <= self._heap[index]
        assert len(self._heap) <= 2 * self._active + 16
