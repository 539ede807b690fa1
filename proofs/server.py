"""A discrete server that is exact and obvious: steps 0, 1, 2, …, one token a step.

It is what the theorems speak of. In each step the server lets agents arrive, starts the
head of a `Line` for as long as an `Admission` takes it (the first that is refused ends
the step's admissions), and serves what runs. What it did is a `History`, from which
`justitia.proofs.bounds` reads how late everything was.

The server knows no policy and shares no code with one. `justitia.proofs.lines` has a
line in the order of the fair reference, and one that asks a policy.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Protocol

from justitia.proofs.admissions import Admission, Running
from justitia.proofs.plans import Item, Plan, Work, delivered, kv_token_time

Coin = Callable[[int], bool]
"""Tossed for the 1st, 2nd, 3rd time, …; says whether something happens."""


class Line(Protocol):
    """Whatever keeps the line; told what happens, asked who is next."""

    def arrive(self, agent: int, plan: Plan) -> None:
        """Take note of an agent, at the beginning of a step."""

    def ready(self, items: Sequence[Item]) -> None:
        """Take the inferences of a stage in line; they become ready together."""

    def head(self) -> Item | None:
        """Return who is next, or None."""

    def start(self, item: Item) -> None:
        """Take note that it runs."""

    def refuse(self, item: Item) -> None:
        """Take note that the head did not fit."""

    def victim(self) -> Item | None:
        """Return who of the running gives way first, or None."""

    def requeue(self, item: Item) -> None:
        """Take it back in line."""

    def serve(
        self, prefill: Mapping[Item, int], decode: Mapping[Item, int], work: Fraction
    ) -> None:
        """Take note of a step: prompt tokens, tokens produced, work delivered."""

    def finish(self, item: Item) -> None:
        """Take note that an inference ended."""

    def leave(self, agent: int) -> None:
        """Take note that an agent ended or was cancelled, with all it still had."""


@dataclass(frozen=True, slots=True)
class Event:
    """One step.

    Attributes
    ----------
    arrived
        Agents that arrived at its beginning, in order.
    ready
        Stages (agent, stage) that became ready at its beginning, in order.
    cancelled
        Agents that were cancelled at its beginning, before anything arrived.
    requeued
        Inferences that were sent back to the line at its beginning.
    entered
        Inferences that were started or started again in it, in order.
    refused
        The head that was refused, or None.
    ran
        Inferences in the engine in this step.
    service
        What it delivered, by inference; only what is above 0.
    held
        KV tokens in the cache at its end, of all that ran.
    waited
        Whether anything was left waiting in it.
    left
        Agents that left at its end, since all of theirs was done.
    """

    arrived: tuple[int, ...]
    ready: tuple[tuple[int, int], ...]
    cancelled: tuple[int, ...]
    requeued: tuple[Item, ...]
    entered: tuple[Item, ...]
    refused: Item | None
    ran: tuple[Item, ...]
    service: Mapping[Item, Fraction]
    held: int
    waited: bool
    left: tuple[int, ...]

    @property
    def delivered(self) -> Fraction:
        """What the step delivered in all."""
        return sum(self.service.values(), Fraction(0))


@dataclass(frozen=True, slots=True)
class History:
    """What a server did, step by step.

    Attributes
    ----------
    plans
        The agents, by number.
    work
        The measure of service.
    events
        One for each step.
    starts, finishes
        The step of each first start; the step before which each was done.
    """

    plans: tuple[Plan, ...]
    work: Work
    events: tuple[Event, ...]
    starts: Mapping[Item, int]
    finishes: Mapping[Item, int]

    def agent_finishes(self) -> dict[int, int]:
        """Return when each agent that was not cancelled had all of its done."""
        gone = {agent for event in self.events for agent in event.cancelled}
        last: dict[int, int] = {}
        for item, step in self.finishes.items():
            if item.agent not in gone:
                last[item.agent] = max(step, last.get(item.agent, 0))
        return last


def never(_: int) -> bool:
    """Toss a coin that falls on no."""
    return False


@dataclass(slots=True)
class Server:
    """One run; see `run`.

    Parameters
    ----------
    plans
        The agents. Those of one step arrive in this order.
    line
        Who keeps the line.
    admission
        What fits. Anything may start while nothing runs.
    chunk
        The most prompt tokens of an inference in one step; its first token is produced
        in the step that computes the last of them. None: no limit, as in Theorem A.
    pauses
        Tossed for each running inference in each step: it makes no progress.
    preempts
        Tossed in each step: the first victim is sent back, and will compute its prompt
        and its tokens again, for which nothing is delivered.
    work
        The measure of service.
    most_steps
        After so many steps a run is given up as stuck.
    """

    plans: Sequence[Plan]
    line: Line
    admission: Admission
    chunk: int | None = None
    pauses: Coin = never
    preempts: Coin = never
    work: Work = kv_token_time
    most_steps: int = 10_000
    _live: dict[Item, Running] = field(default_factory=dict)
    _running: dict[Item, Running] = field(default_factory=dict)
    _due: list[tuple[int, int]] = field(default_factory=list)
    _events: list[Event] = field(default_factory=list)
    _starts: dict[Item, int] = field(default_factory=dict)
    _finishes: dict[Item, int] = field(default_factory=dict)
    _tossed: dict[str, int] = field(default_factory=dict)
    _here: set[int] = field(default_factory=set)

    def run(self) -> History:
        """Run until everything is done.

        Raises
        ------
        Stuck
            When inferences wait and the line has no head while nothing runs, or after
            `most_steps`.
        """
        while self._here or any(p.arrival >= self._step for p in self.plans):
            if self._step >= self.most_steps:
                raise Stuck(f"not done after {self.most_steps} steps")
            self._one_step()
        return History(
            tuple(self.plans),
            self.work,
            tuple(self._events),
            self._starts,
            self._finishes,
        )

    @property
    def _step(self) -> int:
        return len(self._events)

    def _one_step(self) -> None:
        cancelled = self._cancel()
        arrived, ready = self._arrivals()
        requeued = self._preempt()
        entered, refused = self._admit()
        ran = tuple(self._running)
        waited = len(self._live) > len(self._running)
        service = self._serve()
        held = sum(r.cached for r in self._running.values())
        left = self._complete()
        self._events.append(
            Event(
                arrived,
                ready,
                cancelled,
                requeued,
                entered,
                refused,
                ran,
                service,
                held,
                waited,
                left,
            )
        )

    def _cancel(self) -> tuple[int, ...]:
        gone = tuple(
            agent
            for agent, plan in enumerate(self.plans)
            if plan.cancelled == self._step and agent in self._here
        )
        for agent in gone:
            self._leave(agent)
        return gone

    def _arrivals(self) -> tuple[tuple[int, ...], tuple[tuple[int, int], ...]]:
        """Let agents arrive, and stages become ready, by the number of the agent."""
        arrived = []
        for agent, plan in enumerate(self.plans):
            if plan.arrival == self._step:
                arrived.append(agent)
                self._due.append((agent, 0))
        ready = tuple(sorted(self._due))
        self._due.clear()
        for agent, stage in ready:
            plan = self.plans[agent]
            if stage == 0:
                self._here.add(agent)
                self.line.arrive(agent, plan)
            items = []
            for index, (p, d) in enumerate(plan.stages[stage]):
                item = Item(agent, stage, index)
                self._live[item] = Running(item, p, d, p)
                items.append(item)
            self.line.ready(items)
        return tuple(arrived), ready

    def _preempt(self) -> tuple[Item, ...]:
        gone: list[Item] = []
        wanted = bool(self._running) and self._toss("preempts", self.preempts)
        while wanted or self.admission.overflows(list(self._running.values())):
            item = self.line.victim()
            if item is None:
                break
            self.line.requeue(item)
            running = self._running.pop(item)
            running.to_prefill = running.p + running.produced
            gone.append(item)
            wanted = False
        return tuple(gone)

    def _admit(self) -> tuple[tuple[Item, ...], Item | None]:
        entered: list[Item] = []
        while (item := self.line.head()) is not None:
            candidate = self._live[item]
            running = list(self._running.values())
            if running and not self.admission.admits(running, candidate):
                self.line.refuse(item)
                return tuple(entered), item
            self.line.start(item)
            self._running[item] = candidate
            self._starts.setdefault(item, self._step)
            entered.append(item)
        if not self._running and self._live:
            raise Stuck(f"nobody is next in step {self._step}, and some are waiting")
        return tuple(entered), None

    def _serve(self) -> dict[Item, Fraction]:
        prefill: dict[Item, int] = {}
        decode: dict[Item, int] = {}
        service: dict[Item, Fraction] = {}
        for item, running in self._running.items():
            if self._toss("pauses", self.pauses):
                continue
            chunk = running.to_prefill
            if self.chunk is not None and chunk > self.chunk:
                prefill[item] = self.chunk
                running.to_prefill -= self.chunk
                continue
            prefill[item], running.to_prefill = chunk, 0
            decode[item] = 1
            size, produced = (running.p, running.d), running.produced
            running.produced += 1
            got = delivered(self.work, size, produced + 1)
            got -= delivered(self.work, size, produced)
            if got:
                service[item] = got
        self.line.serve(prefill, decode, sum(service.values(), Fraction(0)))
        return service

    def _complete(self) -> tuple[int, ...]:
        done = [r for r in self._running.values() if r.produced == r.d]
        for running in done:
            item = running.item
            self.line.finish(item)
            del self._running[item], self._live[item]
            self._finishes[item] = self._step + 1
        left = []
        for agent, stage in sorted({(r.item.agent, r.item.stage) for r in done}):
            if any(item.agent == agent for item in self._live):
                continue
            if stage + 1 < len(self.plans[agent].stages):
                self._due.append((agent, stage + 1))
            else:
                left.append(agent)
                self._leave(agent)
        return tuple(left)

    def _leave(self, agent: int) -> None:
        self._here.discard(agent)
        self._due = [due for due in self._due if due[0] != agent]
        for item in [item for item in self._live if item.agent == agent]:
            del self._live[item]
            self._running.pop(item, None)
        self.line.leave(agent)

    def _toss(self, name: str, coin: Coin) -> bool:
        self._tossed[name] = self._tossed.get(name, 0) + 1
        return coin(self._tossed[name])


class Stuck(AssertionError):
    """A server that cannot go on: the line starves somebody."""
