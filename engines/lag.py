"""How far a run fell behind the fair reference, measured as Theorem B states it.

A second `VirtualClock` is driven beside the run by the service that the engine really
delivers, with real costs. It finishes an agent (or a stage of one) when S, the service
delivered in all, reaches a value G. For an inference q that first starts in step s,
Theorem B says

    S(s) <= G + I - c_q

where c_q is its cost, t0 < s the last earlier step in which something of a larger
(tag, arrival) started, first or again, and I what was in flight after step t0 and had
still to get (0 without such a step). ``proofs/README.md`` has the theorem. It holds on
any engine that keeps the order of tags; this measures whether a run did, and its lag.

A unit must be ready as a whole, as a stage is that waits for all of the one before.
One that an agent's ``after`` opens bit by bit is in the reference from its first bit
on, and the statement does not hold for it.
"""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from heapq import heappop, heappush

from justitia.engines.records import Lag
from justitia.policy import VirtualClock
from justitia.policy.exact import Number

Key = tuple[float, Number, int, int]
"""(tag as a double, tag, arrival number, stage): smaller goes first.

The double is there to compare fast; where two are equal the exact tags decide.
"""


@dataclass(frozen=True, slots=True)
class Lump:
    """Equal steps in a row, each serving and lasting a little more than the last.

    Parameters
    ----------
    steps
        How many.
    service, growth
        Work delivered by the first, and by each one more than by the one before.
    start, duration, lengthening
        When the first began, how long it took, and each longer than the one before; in
        the engine's unit of time.
    """

    steps: int
    service: int
    growth: int
    start: int
    duration: int
    lengthening: int

    def served(self, steps: int) -> int:
        """Return the work of the first `steps` steps."""
        return steps * self.service + self.growth * steps * (steps - 1) // 2

    def passed(self, steps: int) -> int:
        """Return the time of the first `steps` steps."""
        return steps * self.duration + self.lengthening * steps * (steps - 1) // 2

    def when(self, work: Number) -> Fraction:
        """Return the time at which `work` was delivered, linear inside a step.

        Complexity: O(log steps).
        """
        whole = bisect_left(range(1, self.steps), work, key=self.served)
        step = self.service + whole * self.growth
        part = Fraction(work - self.served(whole)) / step if step else Fraction(0)
        length = self.duration + whole * self.lengthening
        return self.start + self.passed(whole) + part * length


@dataclass(slots=True)
class _Unit:
    """An agent or a stage as the reference finishes it; `goal` is G."""

    key: Key
    goal: Number | None = None
    reached: Fraction | None = None
    dropped: bool = False


@dataclass(frozen=True, slots=True)
class _Start:
    unit: _Unit
    served: int
    in_flight: int
    cost: int


class LagMeter:
    """Measures the lag of a run as it goes.

    Complexity: `serve` O(1) while the reference finishes nothing; everything else
    O(log n) amortised; memory O(inferences).
    """

    def __init__(self) -> None:
        self._clock = VirtualClock()
        self._served = 0  # S
        self._shared: Number = 0  # the part of S that the clock has been told
        self._units: dict[int, dict[int, _Unit]] = {}  # by agent and stage
        self._totals: dict[int, Number] = {}
        self._pending: list[tuple[Key, _Unit]] = []
        self._next_goal: Number | None = None
        self._starts: list[_Start] = []
        self._largest = 0
        # Steps that started something, with the largest key in each and what was in
        # flight after it; only those that no later step outdoes: keys decrease.
        self._larger: list[tuple[Key, int]] = []
        self._starting: Key | None = None

    def ready(self, agent: int, stage: int, cost: Number, weight: Number) -> None:
        """Let a unit into the reference: an agent that arrives, or a stage when ready.

        Parameters
        ----------
        agent
            Its number in order of arrival.
        stage
            0 unless stages are measured.
        cost, weight
            Real cost of the unit; weight of the agent.
        """
        self._share()
        total = self._totals.get(agent, 0) + cost
        if agent in self._totals:
            tag = self._clock.revise(agent, total)
        else:
            tag = self._clock.arrive(agent, total, weight)
        self._totals[agent] = total
        unit = _Unit((float(tag), tag, agent, stage))
        self._units.setdefault(agent, {})[stage] = unit
        heappush(self._pending, (unit.key, unit))
        self._aim()

    def knows(self, agent: int, stage: int) -> bool:
        """Return whether the unit is in the reference."""
        return stage in self._units.get(agent, {})

    def start(self, agent: int, stage: int, cost: int, *, again: bool) -> None:
        """Take note of an inference that the step to come starts, or starts again."""
        unit = self._units[agent][stage]
        if not again:
            self._largest = max(self._largest, cost)
            in_flight = self._after_larger(unit.key)
            self._starts.append(_Start(unit, self._served, in_flight, cost))
        if self._starting is None or unit.key > self._starting:
            self._starting = unit.key

    def serve(self, lump: Lump) -> None:
        """Take note of steps that were run."""
        before = self._served
        self._served += lump.served(lump.steps)
        while self._next_goal is not None and self._served >= self._next_goal:
            self._reach(self._next_goal, before, lump)

    def in_flight(self, owed: Iterable[int]) -> None:
        """After a step that started something: what each in flight has still to get."""
        if self._starting is None:
            return
        while self._larger and self._larger[-1][0] <= self._starting:
            self._larger.pop()
        self._larger.append((self._starting, sum(owed)))
        self._starting = None

    @property
    def starting(self) -> bool:
        """Whether the step to come, or just run, starts something."""
        return self._starting is not None

    def cancel(self, agent: int, delivered: int) -> None:
        """Settle an agent that will not finish at what it was delivered."""
        if agent not in self._totals:
            return
        self._share()
        for unit in self._units[agent].values():
            unit.dropped = True
        if delivered:
            tag = self._clock.revise(agent, min(delivered, self._totals[agent]))
            if tag > self._clock.value:
                # It has its share until then: the rate of the others changes there.
                mark = _Unit((float(tag), tag, agent, -1))
                heappush(self._pending, (mark.key, mark))
        else:
            self._clock.leave(agent)
        self._aim()

    def reached(self, agent: int) -> Fraction | None:
        """Return when the reference finished an agent, in the engine's unit of time.

        None where it did not before the run ended, or never heard of the agent.
        """
        times = [unit.reached for unit in self._units.get(agent, {}).values()]
        known = [time for time in times if time is not None]
        return max(known) if known and len(known) == len(times) else None

    def result(self) -> Lag | None:
        """Return the largest lag, once the run has ended; None if nothing started."""
        while self._next_goal is not None:  # of agents it would finish later
            self._reach(self._next_goal)
        worst: tuple[Number, Number] | None = None
        excess: Number | None = None
        for start in self._starts:
            if start.unit.goal is None:
                continue
            lag = start.served - start.unit.goal
            allowed = start.in_flight - start.cost
            worst = (lag, allowed) if worst is None else max(worst, (lag, allowed))
            over = lag - allowed
            excess = over if excess is None else max(excess, over)
        if worst is None or excess is None:
            return None
        return Lag(*worst, excess=excess, largest_cost=self._largest)

    def _after_larger(self, key: Key) -> int:
        """Return what was in flight after the last start of something larger."""
        count = bisect_left(self._larger, True, key=lambda at: at[0] <= key)
        return self._larger[count - 1][1] if count else 0

    def _share(self) -> None:
        """Bring the clock up to S."""
        self._clock.serve(self._served - self._shared)
        self._shared = self._served

    def _aim(self) -> None:
        """Find the S at which the reference finishes its next unit, if nobody comes."""
        while self._pending and self._pending[0][1].dropped:
            heappop(self._pending)
        self._next_goal = None
        if self._pending:
            tag = self._pending[0][0][1]
            need = (tag - self._clock.value) * self._clock.weight
            self._next_goal = self._shared + need

    def _reach(self, goal: Number, before: int = 0, lump: Lump | None = None) -> None:
        """Let the reference finish the first unit."""
        self._clock.serve(goal - self._shared)
        self._shared = goal
        unit = heappop(self._pending)[1]
        if not unit.dropped:
            unit.goal = goal
            unit.reached = None if lump is None else lump.when(goal - before)
        self._aim()
