"""The fair reference, from its definition: exact, slow, and obvious.

Generalised processor sharing (GPS) serves all agents at once, each in proportion to its
weight, until it has got what it asked for. `FairReference` does just that: it keeps a
list of agents with what each has got and has still to get, and hands out work in
portions, each portion ending where the next agent is satisfied. There are no tags in
it and no queue; a *level* says how much an agent of weight 1 would have got if it had
been there from the start, which is what a scheduler calls virtual time.

Everything is a `fractions.Fraction`, so results can be compared with ``==``. Floats are
taken for the exact binary fractions that they are.

Source: Parekh and Gallager 1993 for GPS; section 4 of the Justitia paper for its use.
"""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

Number: TypeAlias = int | float | Fraction


@dataclass(slots=True)
class Share:
    """An agent in the reference, and what it has got there.

    Attributes
    ----------
    agent
        Who.
    weight
        Its part in a portion is `weight` over the weights of all that are not
        satisfied.
    cost
        The work that it asks for in all.
    arrived
        The level at which it came.
    received
        The work that it has got.
    wanted
        The work that it has still to get; 0 when it is satisfied.
    satisfied_at
        The level at which it was, or would have been, satisfied; None while it is not.
        An agent whose cost shrinks below what it has got would have been satisfied at
        a lower level than the present one.
    finish
        The service of the whole server at which it was satisfied; None while it is not.
    """

    agent: Hashable
    weight: Fraction
    cost: Fraction
    arrived: Fraction
    wanted: Fraction
    received: Fraction = Fraction(0)
    satisfied_at: Fraction | None = None
    finish: Fraction | None = None


@dataclass(slots=True)
class FairReference:
    """A fluid server that gives every agent its weight's share at every instant.

    Complexity: O(n) for each portion, with n agents; a `serve` has one portion more
    than it satisfies agents. Memory grows with the number of portions.

    Attributes
    ----------
    shares
        The agents that are here, satisfied or not, in order of arrival.
    level
        Work given so far per unit of weight.
    served
        Work given so far, in all.
    lost
        Work that was offered while nobody wanted any.
    gone
        What was given to agents that have left.
    history
        The points (served + lost, level) at which the rate may have changed.

    Examples
    --------
    >>> reference = FairReference()
    >>> reference.arrive("A", 30)
    >>> reference.arrive("B", 10)
    >>> reference.serve(30)
    [('B', Fraction(20, 1))]
    >>> reference.received("A"), reference.wanted("A")
    (Fraction(20, 1), Fraction(10, 1))
    """

    shares: list[Share] = field(default_factory=list)
    level: Fraction = Fraction(0)
    served: Fraction = Fraction(0)
    lost: Fraction = Fraction(0)
    gone: Fraction = Fraction(0)
    history: list[tuple[Fraction, Fraction]] = field(
        default_factory=lambda: [(Fraction(0), Fraction(0))]
    )

    def arrive(self, agent: Hashable, cost: Number, weight: Number = 1) -> None:
        """Add an agent that wants `cost`.

        Raises
        ------
        ValueError
            If it is here already, or a number is not positive.
        """
        if any(share.agent == agent for share in self.shares):
            raise ValueError(f"{agent!r} is here already")
        wanted = _positive(cost)
        self.shares.append(Share(agent, _positive(weight), wanted, self.level, wanted))

    def serve(self, work: Number) -> list[tuple[Hashable, Fraction]]:
        """Give out `work`; return who was satisfied, and after how much of it.

        Agents that are satisfied together are listed in order of arrival. Work that
        nobody wants is `lost`.
        """
        left = Fraction(work)
        if left < 0:
            raise ValueError(f"work must not be negative, not {work}")
        offered = left
        satisfied: list[tuple[Hashable, Fraction]] = []
        while left > 0:
            wanting = [share for share in self.shares if share.wanted > 0]
            if not wanting:
                self.lost += left
                break
            weights = sum((share.weight for share in wanting), Fraction(0))
            enough = min(share.wanted / share.weight for share in wanting)
            each = min(enough, left / weights)  # per unit of weight
            for share in wanting:
                share.received += each * share.weight
                share.wanted -= each * share.weight
            self.level += each
            self.served += each * weights
            left -= each * weights
            self._mark()
            for share in wanting:
                if share.wanted == 0:
                    self._satisfy(share)
                    satisfied.append((share.agent, offered - left))
        self._mark()
        return satisfied

    def revise(self, agent: Hashable, cost: Number) -> None:
        """Let an agent want `cost` in all, from now on.

        One that was satisfied and wants more gets the difference from now on. One that
        is to want less than it has got is satisfied; nothing is taken back from it.
        """
        share = self._share(agent)
        change = _positive(cost) - share.cost
        share.cost += change
        if share.satisfied_at is None:
            share.wanted += change
            if share.wanted <= 0:
                self._satisfy(share)
                share.satisfied_at = self.level + share.wanted / share.weight
                share.wanted = Fraction(0)
        elif change > 0:
            share.wanted = change
            share.satisfied_at = share.finish = None
        else:
            share.satisfied_at += change / share.weight

    def leave(self, agent: Hashable) -> None:
        """Take an agent out, with whatever it still wanted."""
        share = self._share(agent)
        self.gone += share.received
        self.shares = [other for other in self.shares if other is not share]

    def received(self, agent: Hashable) -> Fraction:
        """Return the work that an agent has got."""
        return self._share(agent).received

    def wanted(self, agent: Hashable) -> Fraction:
        """Return the work that an agent has still to get."""
        return self._share(agent).wanted

    def wanting(self) -> list[Hashable]:
        """Return the agents that are not satisfied, in order of arrival."""
        return [share.agent for share in self.shares if share.wanted > 0]

    def finish_level(self, agent: Hashable) -> Fraction:
        """Return the level at which an agent is satisfied; a scheduler's tag of it.

        While it wants more, each unit of level brings it `weight`, whoever else comes
        or goes.
        """
        share = self._share(agent)
        if share.satisfied_at is not None:
            return share.satisfied_at
        return self.level + share.wanted / share.weight

    def finish(self, agent: Hashable) -> Fraction | None:
        """Return the service offered in all when an agent was satisfied, or None."""
        return self._share(agent).finish

    def reached(self, level: Number) -> Fraction | None:
        """Return the service offered in all when `level` was reached, or None."""
        previous = self.history[0]
        for offered, at in self.history:
            if at >= level:
                if at == previous[1]:
                    return previous[0]
                part = (Fraction(level) - previous[1]) / (at - previous[1])
                return previous[0] + part * (offered - previous[0])
            previous = (offered, at)
        return None

    def _satisfy(self, share: Share) -> None:
        share.satisfied_at = self.level
        share.finish = self.served + self.lost

    def _mark(self) -> None:
        point = (self.served + self.lost, self.level)
        if point != self.history[-1]:
            self.history.append(point)

    def _share(self, agent: Hashable) -> Share:
        for share in self.shares:
            if share.agent == agent:
                return share
        raise ValueError(f"{agent!r} is not here")

    def _check(self) -> None:
        """Assert that no work was made or lost, and that everybody got a fair share."""
        got = sum((share.received for share in self.shares), Fraction(0))
        assert got + self.gone == self.served
        for share in self.shares:
            assert share.wanted >= 0
            assert (share.wanted > 0) == (share.satisfied_at is None)
            assert (share.finish is None) == (share.satisfied_at is None)
            assert share.satisfied_at is None or share.satisfied_at <= self.level
            # No more than its weight's part of what was given since it came.
            assert share.received <= (self.level - share.arrived) * share.weight
        assert self.history == sorted(self.history)
        assert self.history[-1] == (self.served + self.lost, self.level)


def fair_finishes(
    jobs: Iterable[
        tuple[Hashable, Number, Number] | tuple[Hashable, Number, Number, Number]
    ],
    rate: Number,
) -> dict[Hashable, Fraction]:
    """Return the time at which a fair server of constant rate finishes each agent.

    Parameters
    ----------
    jobs
        Of each agent its name, arrival time, cost and, if not 1, weight; in any order.
    rate
        Work a unit of time.

    Returns
    -------
    dict of agent to Fraction
        Finish times, in order of finishing.

    Examples
    --------
    The paper's worked example:

    >>> jobs = [("A", 0, 200), ("B", 1, 30), ("C", 1, 40)]
    >>> {agent: float(time) for agent, time in fair_finishes(jobs, rate=100).items()}
    {'B': 1.9, 'C': 2.1, 'A': 2.7}
    """
    speed = _positive(rate)
    reference = FairReference()
    finishes: dict[Hashable, Fraction] = {}
    now = Fraction(0)

    def pass_until(time: Fraction) -> None:
        for agent, work in reference.serve((time - now) * speed):
            finishes[agent] = now + work / speed

    for agent, arrival, *rest in sorted(jobs, key=lambda job: Fraction(job[1])):
        pass_until(Fraction(arrival))
        now = Fraction(arrival)
        reference.arrive(agent, *rest)
    remaining = sum((share.wanted for share in reference.shares), Fraction(0))
    pass_until(now + remaining / speed)
    return finishes


def _positive(value: Number) -> Fraction:
    number = Fraction(value)
    if number <= 0:
        raise ValueError(f"must be positive, not {value}")
    return number
