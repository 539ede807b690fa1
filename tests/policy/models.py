"""What each policy should say, worked out anew from what happened: slow and plain.

Nothing here is taken from ``policy/``. A model keeps what it was told in lists and
dicts, and sorts when it is asked.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TypeAlias

from justitia.proofs.reference import FairReference

Number: TypeAlias = int | float | Fraction
Work: TypeAlias = Callable[[int, int, int], int]  # of p, tokens produced, d


def kv(p: int, n: int, d: int = 0) -> int:
    """Return the KV tokens held in each step that produced a token, added up."""
    return sum(p + i for i in range(1, n + 1)) if n else max(p, 1)


def compute(p: int, n: int, d: int = 0) -> int:
    """Return the tokens computed, two for one produced."""
    return max(1, p + sum(2 for _ in range(n)))


def reserved(p: int, n: int, d: int) -> int:
    """Return the tokens set aside in each step that produced one, added up."""
    return sum(p + max(n, d) for _ in range(n)) if n else max(p, 1)


@dataclass(slots=True)
class Item:
    """An inference."""

    id: str
    agent: "Owner"
    p: int
    d: int
    stage: int
    seq: int
    running: bool = False
    touched: bool = False  # some of its prompt was computed
    produced: int = 0
    ended: bool = False  # told that its prompt, all there is to it, is done

    def work(self, work: Work) -> int:
        """Return what it was delivered."""
        if self.produced or self.ended:
            return work(self.p, self.produced, self.d)
        return 0


@dataclass(slots=True)
class Owner:
    """An agent; one that comes again under an old id is another."""

    id: str
    seq: int
    cost: Number
    weight: Number
    stage_costs: tuple[Number, ...]
    revised: Number
    kind: str = ""
    items: list[Item] = field(default_factory=list)  # ended ones too

    def delivered(self, work: Work) -> int:
        """Return what its inferences were delivered."""
        return sum(item.work(work) for item in self.items)


class Model:
    """What happened, and the order of submission; other orders are subclasses."""

    work: Work = staticmethod(kv)

    def __init__(self) -> None:
        self.owners: dict[str, Owner] = {}
        self.items: dict[str, Item] = {}
        self.seq = 0

    def key(self, item: Item) -> tuple[Number, ...]:
        """Return what the order is by; `Item.seq` decides among equals."""
        return ()

    def rank(self, item: Item) -> tuple[Number, ...]:
        """Return a key that no two share."""
        return (*self.key(item), item.seq)

    def order(self) -> list[str]:
        """Return the ids of the line."""
        waiting = [item for item in self.items.values() if not item.running]
        return [item.id for item in sorted(waiting, key=self.rank)]

    def victims(self) -> list[str]:
        """Return the ids of the running, last in rank first."""
        running = [item for item in self.items.values() if item.running]
        return [item.id for item in sorted(running, key=self.rank)][::-1]

    def arrive(
        self,
        name: str,
        cost: Number,
        weight: Number,
        stage_costs: tuple[Number, ...],
        kind: str = "",
    ) -> None:
        """Note an agent."""
        self.seq += 1
        self.owners[name] = Owner(name, self.seq, cost, weight, stage_costs, cost, kind)

    def submit(self, name: str, agent: str, p: int, d: int, stage: int) -> None:
        """Note an inference."""
        self.seq += 1
        owner = self.owners[agent]
        item = Item(name, owner, p, d, stage, self.seq)
        self.items[name] = item
        owner.items.append(item)

    def start(self, name: str) -> None:
        """Note that it runs."""
        self.items[name].running = True

    def requeue(self, name: str) -> None:
        """Note that it waits again."""
        self.items[name].running = False

    def serve(self, prefill: dict[str, int], decode: dict[str, int]) -> None:
        """Note tokens; of what does not run they are nothing."""
        for name, item in self.items.items():
            if item.running:
                item.touched |= prefill.get(name, 0) > 0
                item.produced += decode.get(name, 0)
                item.ended |= item.d == 0 and name in decode

    def finish(self, name: str) -> None:
        """Note that it ended."""
        del self.items[name]

    def leave(self, name: str) -> None:
        """Note that an agent left, with its inferences."""
        owner = self.owners.pop(name)
        self.items = {n: i for n, i in self.items.items() if i.agent is not owner}

    def revise(self, name: str, cost: Number) -> None:
        """Note another predicted cost."""
        self.owners[name].revised = cost

    def advance(self, seconds: Number) -> None:
        """Note that time passed."""

    def refuse(self, name: str) -> None:
        """Note that there was no room for the head."""

    def preempts(self, waiting: str, running: str) -> bool:
        """Return whether the first may take the place of the second."""
        return False


class ByDecode(Model):
    """Shortest predicted decode first."""

    def key(self, item: Item) -> tuple[Number, ...]:
        """Return d."""
        return (item.d,)


class ByCost(Model):
    """Least predicted KV token-time first."""

    def key(self, item: Item) -> tuple[Number, ...]:
        """Return the sum over the steps."""
        return (kv(item.p, item.d),)


class ByAgent(Model):
    """Agents in order of arrival."""

    def key(self, item: Item) -> tuple[Number, ...]:
        """Return the number of the agent."""
        return (item.agent.seq,)


class ByDepth(Model):
    """Agents in order of arrival, the deepest stage first."""

    def key(self, item: Item) -> tuple[Number, ...]:
        """Return the number of the agent, then the stage."""
        return (item.agent.seq, -item.stage)


class ByRemaining(Model):
    """Least predicted remaining cost first."""

    def key(self, item: Item) -> tuple[Number, ...]:
        """Return what is left of the prediction, then the number of the agent."""
        owner = item.agent
        return (max(0, owner.revised - owner.delivered(kv)), owner.seq)


class TokenCounters(Model):
    """VTC, from a log of what happened that is read from its beginning each time."""

    def __init__(self, prompt_price: Number = 1, decode_price: Number = 2) -> None:
        super().__init__()
        self.prices = (Fraction(prompt_price), Fraction(decode_price))
        self.log: list[tuple[str, Item, int]] = []

    def submit(self, name: str, agent: str, p: int, d: int, stage: int) -> None:
        """Note an inference."""
        super().submit(name, agent, p, d, stage)
        self.log.append(("submit", self.items[name], 0))

    def start(self, name: str) -> None:
        """Note that it runs."""
        super().start(name)
        self.log.append(("start", self.items[name], 0))

    def requeue(self, name: str) -> None:
        """Note that it waits again."""
        item = self.items[name]
        super().requeue(name)
        served = item.touched or item.produced > 0
        self.log.append(("back" if served else "undo", item, 0))

    def serve(self, prefill: dict[str, int], decode: dict[str, int]) -> None:
        """Note tokens."""
        super().serve(prefill, decode)
        for name, tokens in decode.items():
            if name in self.items and self.items[name].running:
                self.log.append(("token", self.items[name], tokens))

    def finish(self, name: str) -> None:
        """Note that it ended."""
        self.log.append(("end", self.items[name], 0))
        super().finish(name)

    def leave(self, name: str) -> None:
        """Note that all of an agent's ended, in the order in which they came."""
        for item in list(self.items.values()):
            if item.agent is self.owners[name]:
                self.log.append(("end", item, 0))
        super().leave(name)

    def counters(self) -> dict[int, Fraction]:
        """Return every agent's counter, by the number of the agent."""
        counter: dict[int, Fraction] = {}
        waiting: list[Item] = []
        paid: set[int] = set()
        last = None
        for what, item, tokens in self.log:
            who, weight = item.agent.seq, Fraction(item.agent.weight)
            charge = self.prices[0] * item.p / weight
            if what == "submit":
                own = counter.setdefault(who, Fraction(0))
                if not any(other.agent.seq == who for other in waiting):
                    others = [counter[other.agent.seq] for other in waiting]
                    if others:
                        counter[who] = max(own, min(others))
                    elif last is not None:
                        counter[who] = max(own, counter[last])
                waiting.append(item)
            elif what == "token":
                counter[who] += self.prices[1] * tokens / weight
            elif what in {"start", "end"}:
                if any(other is item for other in waiting):
                    waiting = [other for other in waiting if other is not item]
                    if not waiting:
                        last = who
                if what == "start" and item.seq not in paid:
                    paid.add(item.seq)
                    counter[who] += charge
            else:
                waiting.append(item)
                if what == "undo":
                    paid.discard(item.seq)
                    counter[who] -= charge
        self.paid = paid
        return counter

    def key(self, item: Item) -> tuple[Number, ...]:
        """Return the counter, then the number of the agent."""
        return (self.counters()[item.agent.seq], item.agent.seq)

    def order(self) -> list[str]:
        """Return the line: after each start its counter is another."""
        counter = self.counters()
        waiting = [item for item in self.items.values() if not item.running]
        ids = []
        while waiting:
            first = min(
                waiting, key=lambda i: (counter[i.agent.seq], i.agent.seq, i.seq)
            )
            waiting.remove(first)
            ids.append(first.id)
            if first.seq not in self.paid:
                owner = first.agent
                charge = self.prices[0] * first.p / Fraction(owner.weight)
                counter[owner.seq] += charge
        return ids


class Queues(Model):
    """MLFQ: queues of all that is alive, as lists of names.

    Parameters
    ----------
    quantum, ratio, levels
        Of the highest queue; from one to the next; how many there are.
    prefill
        The time of a prompt, and of each token of it.
    patience, period
        After how long one starves, and how many steps there are between two looks.
    """

    def __init__(
        self,
        quantum: Number = 0.01,
        ratio: int = 2,
        levels: float = float("inf"),
        prefill: tuple[Number, Number] = (0.0118, 0.000055),
        *,
        patience: Number = 3,
        period: int = 1000,
    ) -> None:
        super().__init__()
        self.quantum, self.ratio, self.levels = Fraction(quantum), ratio, levels
        self.prefill, self.patience, self.period = prefill, patience, period
        self.queues: dict[int, list[str]] = {}
        self.used: dict[str, Fraction] = {}
        self.seen: dict[str, Fraction] = {}
        self.stepped: set[str] = set()
        self.computing: set[str] = set()
        self.now = Fraction(0)
        self.steps = 0

    def level(self, name: str) -> int:
        """Return the queue that one is in."""
        return next(level for level, queue in self.queues.items() if name in queue)

    def key(self, item: Item) -> tuple[Number, ...]:
        """Return the queue and the place in it; what computes a prompt goes first."""
        level = self.level(item.id)
        place = self.queues[level].index(item.id)
        return (0, level, place) if item.id in self.computing else (1, level, place)

    def submit(self, name: str, agent: str, p: int, d: int, stage: int) -> None:
        """Let it join."""
        super().submit(name, agent, p, d, stage)
        takes = Fraction(self.prefill[0]) + p * Fraction(self.prefill[1])
        level = 0
        while level + 1 < self.levels and self.quantum * self.ratio**level < takes:
            level += 1
        self.queues.setdefault(level, []).append(name)
        self.used[name], self.seen[name] = Fraction(0), self.now

    def start(self, name: str) -> None:
        """Let it compute."""
        super().start(name)
        self.computing.add(name)

    def requeue(self, name: str) -> None:
        """Let it compute no more."""
        super().requeue(name)
        self.computing.discard(name)

    def front(self, name: str, level: int) -> None:
        """Move one to the front of a queue."""
        self.queues[self.level(name)].remove(name)
        self.queues.setdefault(level, []).insert(0, name)

    def serve(self, prefill: dict[str, int], decode: dict[str, int]) -> None:
        """Note who was in it; look for the starving at times."""
        super().serve(prefill, decode)
        there = {n for n, i in self.items.items() if i.running}
        there &= prefill.keys() | decode.keys()
        self.stepped |= there
        self.computing -= there & decode.keys()
        self.steps += bool(there)
        if there and self.steps % self.period == 0:
            for name in self.ranked():
                idle = name not in self.stepped
                if idle and self.now - self.seen[name] >= self.patience:
                    self.front(name, 0)

    def ranked(self) -> list[str]:
        """Return all that is alive, in order."""
        return [i.id for i in sorted(self.items.values(), key=self.rank)]

    def advance(self, seconds: Number) -> None:
        """Charge those that were in a step."""
        passed = max(Fraction(seconds), Fraction(0))
        self.now += passed
        for name in self.ranked():
            if name in self.stepped:
                level = self.level(name)
                self.seen[name] = self.now
                self.used[name] += passed
                limit = self.quantum * self.ratio**level
                if level + 1 < self.levels and self.used[name] > limit:
                    self.used[name] = Fraction(0)
                    self.front(name, level + 1)
        self.stepped.clear()

    def forget(self, name: str) -> None:
        """Take one out."""
        self.queues[self.level(name)].remove(name)
        self.stepped.discard(name)
        self.computing.discard(name)

    def finish(self, name: str) -> None:
        """Note that it ended."""
        self.forget(name)
        super().finish(name)

    def leave(self, name: str) -> None:
        """Note that all of an agent ended."""
        for item in self.items.values():
            if item.agent is self.owners[name]:
                self.forget(item.id)
        super().leave(name)

    def preempts(self, waiting: str, running: str) -> bool:
        """Return whether the first is in a higher queue."""
        higher = self.level(waiting) < self.level(running)
        return higher and running not in self.computing


class Weighted(Model):
    """FairServe: lists of calls that came and calls that ended, counted each time.

    Parameters
    ----------
    prices
        Of a prompt token and of a produced one.
    limits
        Calls of an agent and of a kind, in so many seconds.
    overload
        Seconds for which the engine is full after it said so.
    """

    def __init__(
        self,
        prices: tuple[Number, Number] = (1, 2),
        limits: tuple[int, int] = (60, 600),
        window: Number = 60,
        overload: Number = 1,
    ) -> None:
        super().__init__()
        self.prices, self.limits = prices, limits
        self.window, self.overload = window, overload
        self.now, self.full = Fraction(0), Fraction(0)
        self.calls: list[tuple[Fraction, Owner]] = []
        self.ended: list[tuple[str, int, Fraction]] = []
        self.counter: dict[int, Fraction] = {}
        self.last: int | None = None

    def begun(self, owner: Owner) -> bool:
        """Whether any call of an agent has started."""
        return any(i.running or i.touched or i.produced for i in owner.items)

    def throttled(self, owner: Owner) -> bool:
        """Whether an agent must let all others pass."""
        recent = [who for time, who in self.calls if time > self.now - self.window]
        own = sum(who is owner for who in recent)
        kind = sum(who.kind == owner.kind for who in recent)
        over = own > self.limits[0] or kind > self.limits[1]
        return self.now < self.full and over and not self.begun(owner)

    def key(self, item: Item) -> tuple[Number, ...]:
        """Return what comes before the number of the agent, and that."""
        owner = item.agent
        counter = self.counter[owner.seq]
        return (self.throttled(owner), counter, not self.begun(owner), owner.seq)

    def idle(self) -> bool:
        """Whether nobody waits."""
        return all(item.running for item in self.items.values())

    def submit(self, name: str, agent: str, p: int, d: int, stage: int) -> None:
        """Lift the counter of who had nothing waiting."""
        owner = self.owners[agent]
        own = self.counter.setdefault(owner.seq, Fraction(0))
        if all(i.running for i in self.items.values() if i.agent is owner):
            floor = None
            if line := self.order():
                floor = self.counter[self.items[line[0]].agent.seq]
            elif self.last is not None:
                floor = self.counter[self.last]
            self.counter[owner.seq] = own if floor is None else max(own, floor)
        self.calls.append((self.now, owner))
        super().submit(name, agent, p, d, stage)

    def start(self, name: str) -> None:
        """Note that it runs."""
        super().start(name)
        if self.idle():
            self.last = self.items[name].agent.seq

    def finish(self, name: str) -> None:
        """Charge what it was served, by what is usual."""
        item = self.items[name]
        super().finish(name)
        if not item.running and self.idle():
            self.last = item.agent.seq
        work = Fraction(self.prices[1]) * item.produced
        if item.touched or item.produced:
            work += Fraction(self.prices[0]) * item.p
        item.running = False
        if work:
            kind, stage = item.agent.kind, item.stage
            self.ended.append((kind, stage, work))
            like = [w for k, s, w in self.ended if (k, s) == (kind, stage)]
            usual = sum(like, Fraction(0)) / len(like)
            self.counter[item.agent.seq] += work / usual / Fraction(item.agent.weight)

    def leave(self, name: str) -> None:
        """Note that all of an agent ended."""
        for item in list(self.items.values()):
            if item.agent is self.owners[name]:
                self.finish(item.id)
        super().leave(name)

    def advance(self, seconds: Number) -> None:
        """Note that time passed."""
        self.now += max(Fraction(seconds), Fraction(0))

    def refuse(self, name: str) -> None:
        """Note that the engine is full."""
        self.full = self.now + Fraction(self.overload)


class Pampering(Model):
    """Selective pampering, its tags from the fair reference.

    Parameters
    ----------
    by_stage
        A tag for each stage.
    growth, rate
        As the policy has them; `rate` in work a second, None for a clock that is
        driven by what is delivered.
    """

    def __init__(
        self,
        *,
        by_stage: bool = False,
        work: Work = kv,
        growth: Number | None = None,
        rate: Number | None = None,
    ) -> None:
        super().__init__()
        self.by_stage, self.growth, self.rate = by_stage, growth, rate
        self.work_of = work
        self.fair = FairReference()
        self.tags: dict[int, dict[int, Fraction]] = {}
        self.asked: dict[int, Fraction] = {}  # what the reference was told in all
        self.planned: dict[int, Fraction] = {}  # of its latest stage, as first said
        self.further: dict[int, Fraction] = {}  # of that stage, inferences beyond it
        self.latest: dict[int, int] = {}
        self.earlier: dict[int, tuple[Fraction, Fraction]] = {}  # asked, got before it
        self.ended: set[int] = set()

    def arrive(
        self,
        name: str,
        cost: Number,
        weight: Number,
        stage_costs: tuple[Number, ...],
        kind: str = "",
    ) -> None:
        """Note an agent."""
        super().arrive(name, cost, weight, stage_costs, kind)
        seq = self.owners[name].seq
        self.tags[seq] = {}
        self.asked[seq] = self.planned[seq] = self.further[seq] = Fraction(0)
        self.earlier[seq] = (Fraction(0), Fraction(0))
        if not self.by_stage:
            self._ask(self.owners[name], 0, Fraction(cost))

    def submit(self, name: str, agent: str, p: int, d: int, stage: int) -> None:
        """Note an inference, which may be the first of its stage."""
        super().submit(name, agent, p, d, stage)
        if not self.by_stage:
            return
        owner = self.owners[agent]
        costs = owner.stage_costs or (owner.cost,)
        if stage < len(costs) and stage in self.tags[owner.seq]:
            return
        if stage < len(costs) or stage != self.latest.get(owner.seq, 0):
            got = Fraction(owner.delivered(self.work_of))
            self.earlier[owner.seq] = (self.asked[owner.seq], got)
            self.planned[owner.seq] = self.further[owner.seq] = Fraction(0)
        if stage < len(costs):
            self.planned[owner.seq] = Fraction(costs[stage])
            more = self.planned[owner.seq] * Fraction(owner.revised)
            more /= Fraction(owner.cost)
        else:
            more = Fraction(self.work_of(p, d, d))
            self.further[owner.seq] += more
        self._ask(owner, stage, self.asked[owner.seq] + more)

    def with_latest(self, owner: Owner) -> Fraction:
        """Return what an agent costs with its latest stage, revised in proportion."""
        plan = self.planned[owner.seq] * Fraction(owner.revised) / Fraction(owner.cost)
        return self.earlier[owner.seq][0] + plan + self.further[owner.seq]

    def serve(self, prefill: dict[str, int], decode: dict[str, int]) -> None:
        """Note tokens, and share them out."""
        before = {o.seq: o.delivered(self.work_of) for o in self.owners.values()}
        super().serve(prefill, decode)
        after = {o.seq: o.delivered(self.work_of) for o in self.owners.values()}
        if self.rate is None:
            self._share(sum(after.values()) - sum(before.values()))
        if self.growth is not None:
            for owner in self.owners.values():
                alive = [i for i in self.items.values() if i.agent is owner]
                told = [i for i in alive if i.running and i.id in decode]
                # No tokens are no news, but of what has none to produce.
                news = [i for i in told if decode[i.id] or not (i.produced or i.d)]
                earlier, service = self.earlier[owner.seq]
                got = after[owner.seq] - service
                if got > self.asked[owner.seq] - earlier and news:
                    grown = earlier + got * Fraction(self.growth)
                    self._ask(owner, self.latest[owner.seq], grown)

    def advance(self, seconds: Number) -> None:
        """Drive a clock that goes by time."""
        if self.rate is not None and seconds > 0:
            self._share(Fraction(seconds) * Fraction(self.rate))

    def revise(self, name: str, cost: Number) -> None:
        """Note another predicted cost: the latest stage gets its part of it."""
        super().revise(name, cost)
        owner = self.owners[name]
        if not self.by_stage:
            self._ask(owner, 0, Fraction(cost))
        elif self.tags[owner.seq]:
            self._ask(owner, self.latest[owner.seq], self.with_latest(owner))

    def leave(self, name: str) -> None:
        """Settle: what it got, and no more than it asked for, remains owed."""
        owner = self.owners[name]
        super().leave(name)
        if self.asked[owner.seq]:
            asked, before = self.earlier[owner.seq]
            got = Fraction(owner.delivered(self.work_of)) - before
            got = asked + min(got, self.asked[owner.seq] - asked)
            if got:
                self.fair.revise(owner.seq, got)
            if got and owner.seq in self.fair.wanting():
                self.ended.add(owner.seq)
            else:
                self.fair.leave(owner.seq)
        if not self.owners:  # nobody is left who would wait for it
            for seq in self.ended:
                self.fair.leave(seq)
            self.ended.clear()

    def key(self, item: Item) -> tuple[Number, ...]:
        """Return the tag, then the numbers of the agent and of the stage."""
        stage = item.stage if self.by_stage else 0
        return (self.tags[item.agent.seq][stage], item.agent.seq, stage)

    def tag(self, name: str) -> Fraction | None:
        """Return an agent's tag."""
        seq = self.owners[name].seq
        return self.fair.finish_level(seq) if self.asked[seq] else None

    def _ask(self, owner: Owner, stage: int, cost: Fraction) -> None:
        if self.asked[owner.seq]:
            self.fair.revise(owner.seq, cost)
        else:
            self.fair.arrive(owner.seq, cost, owner.weight)
        self.asked[owner.seq] = cost
        self.tags[owner.seq][stage] = self.fair.finish_level(owner.seq)
        self.latest[owner.seq] = stage

    def _share(self, work: Number) -> None:
        for seq, _ in self.fair.serve(work):
            if seq in self.ended:
                self.ended.remove(int(str(seq)))
                self.fair.leave(seq)


MODELS: dict[str, Callable[[], Model]] = {
    "fcfs": Model,
    "sjf": ByDecode,
    "sjf-cost": ByCost,
    "agent-fcfs": ByAgent,
    "srjf": ByRemaining,
    "vtc": TokenCounters,
    "vtc-priced": lambda: TokenCounters(Fraction(1, 2), 3),
    "justitia": Pampering,
    "justitia-stage": lambda: Pampering(by_stage=True),
    "justitia-growth": lambda: Pampering(growth=2),
    "justitia-stage-growth": lambda: Pampering(by_stage=True, growth=Fraction(3, 2)),
    "justitia-nominal": lambda: Pampering(rate=Fraction(7, 2)),
    "justitia-stage-reserved": lambda: Pampering(by_stage=True, work=reserved),
    "justitia-c": lambda: Pampering(work=compute),
    "mlfq": Queues,
    "mlfq-short": lambda: Queues(2, 3, 4, (1, Fraction(3, 2)), patience=6, period=3),
    "fairserve": Weighted,
    "fairserve-strict": lambda: Weighted((Fraction(1, 2), 3), (2, 4), 7, 5),
    "ayo": ByDepth,
}
"""The model of each variant in `tests.policy.builders`."""
