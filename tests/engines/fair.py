"""The fair reference and Theorem B's lag, from their definitions and nothing else.

No tags are computed for the reference, no goal is foreseen and no step is forgotten:
work is handed out in portions, each up to where somebody has got something, and the lag
of a start is looked up in the list of all steps.
"""

from dataclasses import dataclass, field
from fractions import Fraction

from justitia.policy.exact import Number

Key = tuple[Fraction, int, int]


@dataclass
class Unit:
    """An agent, or a stage of one: done when its agent has got `upto` in all."""

    key: Key
    upto: Fraction
    goal: Fraction | None = None
    reached: Fraction | None = None


@dataclass
class Sharer:
    weight: Fraction
    wanted: Fraction
    got: Fraction = Fraction(0)
    units: dict[int, Unit] = field(default_factory=dict)
    cancelled: bool = False


@dataclass
class Started:
    unit: Unit
    cancelled_with: Sharer
    cost: int
    again: bool


@dataclass
class Done:
    """A step that was run."""

    service: int
    starts: list[Started]
    owed: int


class Fair:
    """Told of a run, step by step; asked for its lag at the end."""

    def __init__(self) -> None:
        self.sharers: dict[int, Sharer] = {}
        self.level = Fraction(0)  # what weight 1 has got if it wanted all along
        self.steps: list[Done] = []
        self.starts: list[Started] = []  # of the step to come

    def ready(self, agent: int, stage: int, cost: Number, weight: Number) -> None:
        sharer = self.sharers.setdefault(
            agent, Sharer(Fraction(weight), wanted=Fraction(0))
        )
        sharer.wanted += Fraction(cost)
        level = self.level + (sharer.wanted - sharer.got) / sharer.weight
        sharer.units[stage] = Unit((level, agent, stage), sharer.wanted)

    def cancel(self, agent: int, delivered: int) -> None:
        sharer = self.sharers[agent]
        sharer.cancelled = True
        sharer.wanted = min(sharer.wanted, Fraction(delivered))

    def start(self, agent: int, stage: int, cost: int, *, again: bool) -> None:
        sharer = self.sharers[agent]
        self.starts.append(Started(sharer.units[stage], sharer, cost, again))

    def step(self, service: int, start: int, duration: int, owed: int) -> None:
        """Run a step with the starts noted before it."""
        before = self.served
        self.steps.append(Done(service, self.starts, owed))
        self.starts = []
        for unit, work in self._share(Fraction(service)):
            unit.goal = before + work
            unit.reached = start + duration * work / service

    @property
    def served(self) -> int:
        return sum(step.service for step in self.steps)

    def reached(self, agent: int) -> Fraction | None:
        sharer = self.sharers.get(agent)
        if sharer is None or not sharer.units:
            return None
        times = [unit.reached for unit in sharer.units.values()]
        known = [time for time in times if time is not None]
        return max(known) if len(known) == len(times) else None

    def lag(self) -> tuple[Number, Number, Number, int] | None:
        """Return worst, allowed, excess and the largest cost; None without a start."""
        served = Fraction(self.served)
        missing = [max(Fraction(0), s.wanted - s.got) for s in self.sharers.values()]
        for unit, work in self._share(sum(missing, Fraction(0))):
            unit.goal = served + work
        found: list[tuple[Number, Number]] = []
        largest = 0
        for s, step in enumerate(self.steps):
            delivered = sum(earlier.service for earlier in self.steps[:s])
            for start in step.starts:
                if start.again:
                    continue
                largest = max(largest, start.cost)
                if start.unit.goal is None:
                    continue
                larger = [
                    t
                    for t in range(s)
                    if any(o.unit.key > start.unit.key for o in self.steps[t].starts)
                ]
                in_flight = self.steps[larger[-1]].owed if larger else 0
                found.append((delivered - start.unit.goal, in_flight - start.cost))
        if not found:
            return None
        excess = max(lag - allowed for lag, allowed in found)
        return *max(found), excess, largest

    def _share(self, work: Fraction) -> list[tuple[Unit, Fraction]]:
        """Hand out work; return the units that were done, and after how much of it."""
        left = work
        done: list[tuple[Unit, Fraction]] = []
        while left > 0:
            wanting = [s for s in self.sharers.values() if s.got < s.wanted]
            if not wanting:
                break
            weights = sum(s.weight for s in wanting)
            rises = [left / weights]
            for s in wanting:
                marks = [s.wanted] + [u.upto for u in s.units.values()]
                rises += [(m - s.got) / s.weight for m in marks if m > s.got]
            rise = min(rises)
            self.level += rise
            left -= rise * weights
            for s in wanting:
                s.got += rise * s.weight
                for unit in s.units.values():
                    if unit.goal is None and unit.upto <= s.got and not s.cancelled:
                        unit.goal = Fraction(0)  # set by the caller
                        done.append((unit, work - left))
        return done
