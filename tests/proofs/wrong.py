"""Lines that are wrong, each in one way, to see that it matters."""

from collections.abc import Mapping
from dataclasses import replace
from fractions import Fraction

from justitia.proofs.admissions import Peak, Running
from justitia.proofs.lines import FairLine
from justitia.proofs.plans import Item, Plan
from justitia.proofs.server import History


class FirstCome(FairLine):
    """First come, first served."""

    def place(self, item: Item) -> tuple[Fraction, int, Item]:
        return (Fraction(0), item.agent, item)


class LastTag(FairLine):
    """The largest tag first."""

    def place(self, item: Item) -> tuple[Fraction, int, Item]:
        tag, seq, _ = super().place(item)
        return (-tag, seq, item)


class LeastRemaining(FairLine):
    """The agent of the least predicted remaining cost first: SRJF."""

    def place(self, item: Item) -> tuple[Fraction, int, Item]:
        costs = self._plans[item.agent].costs(self.work)
        return (sum(costs, Fraction(0)) - self._got[item.agent], item.agent, item)


class BestFit(FairLine):
    """Backfilling: whoever is first of those that fit now."""

    def __init__(self, admission: Peak) -> None:
        super().__init__()
        self.admission = admission

    def head(self) -> Item | None:
        running = [self._as_running(item) for item in self._running]
        for item in sorted(self._waiting, key=self.place):
            if not running or self.admission.admits(running, self._as_running(item)):
                return item
        return None

    def _as_running(self, item: Item) -> Running:
        p, d = self._plans[item.agent].stages[item.stage][item.place]
        return Running(item, p, d, p)


class ReallyUnfinished(FairLine):
    """dV = M / N with N the agents that really are unfinished, not the reference's."""

    def __init__(self, capacity: int) -> None:
        super().__init__()
        self.capacity, self.value = capacity, Fraction(0)

    def arrive(self, agent: int, plan: Plan) -> None:
        super().arrive(agent, plan)
        cost = sum(plan.costs(self.work), Fraction(0))
        self.tags[agent, 0] = self.value + cost / Fraction(plan.weight)
        self._places[agent, 0] = (self.tags[agent, 0], agent)

    def serve(
        self, prefill: Mapping[Item, int], decode: Mapping[Item, int], work: Fraction
    ) -> None:
        super().serve(prefill, decode, work)
        self.value += Fraction(self.capacity) / len(self._plans)


class Dropping(FairLine):
    """An agent that leaves is taken out of the reference at once, not settled."""

    def leave(self, agent: int) -> None:
        promised = agent in self._promised
        super().leave(agent)
        if promised and agent in [share.agent for share in self.fair.shares]:
            self.fair.leave(agent)


class HoldingCounts(FairLine):
    """The KV tokens held in each step count as service, computed prompts and all.

    For runs without preemption.
    """

    def __init__(self) -> None:
        super().__init__()
        self.cached: dict[Item, int] = {}
        self.counted: list[dict[Item, Fraction]] = []

    def serve(
        self, prefill: Mapping[Item, int], decode: Mapping[Item, int], work: Fraction
    ) -> None:
        for tokens in (prefill, decode):
            for item, count in tokens.items():
                self.cached[item] = self.cached.get(item, 0) + count
        held = {item: Fraction(self.cached.get(item, 0)) for item in self._running}
        self.counted.append({item: kv for item, kv in held.items() if kv})
        for item, kv in self.counted[-1].items():
            self._got[item.agent] += kv
        self.fair.serve(sum(held.values(), Fraction(0)))

    def count(self, history: History) -> History:
        """Return a history of the line's in which what is held is service."""
        events = tuple(
            replace(event, service=service)
            for event, service in zip(history.events, self.counted, strict=True)
        )
        return replace(history, events=events)
