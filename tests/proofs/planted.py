"""Schedulers with one mistake each, and the properties that must find it.

Most are `SelectivePampering` with one thing changed, so that nothing else is broken.
"""

from collections.abc import Callable, Hashable, Iterator
from fractions import Fraction
from itertools import count
from typing import ClassVar

from justitia.policy import (
    Agent,
    AgentOrder,
    Inference,
    InferenceOrder,
    PolicyError,
    SelectivePampering,
    Step,
    VirtualClock,
    create,
)
from justitia.policy.exact import Exact, Number, exactly
from justitia.policy.justitia import _Pampered
from justitia.policy.ledger import Account, Entry

# The order ----------------------------------------------------------------------------


class LastInFirstOut(InferenceOrder):
    """The last to come is served first."""

    def key(self, entry: Entry) -> tuple[object, ...]:
        return (-entry.seq,)


class TiesById(SelectivePampering):
    """Equal tags are decided by the agent's id."""

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (*super().key(account, stage), account.agent.id)


class TiesByTheLast(SelectivePampering):
    """Equal tags are decided for the last to come."""

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (*super().key(account, stage), -account.seq)


class Backfills(SelectivePampering):
    """What comes after a head that was refused may start in its place."""

    def __init__(self) -> None:
        super().__init__()
        self._passed: str | None = None

    def refuse(self, inference_id: str) -> None:
        super().refuse(inference_id)
        self._passed = inference_id

    def served(self, step: Step) -> None:
        self._passed = None
        super().served(step)

    def walk(self) -> Iterator[Entry]:
        line = list(super().walk())
        if len(line) > 1 and line[0].inference.id == self._passed:
            line = [line[1], line[0], *line[2:]]
        return iter(line)

    def peek(self) -> Inference | None:
        first = next(self.walk(), None)
        return None if first is None else first.inference


# The clock ----------------------------------------------------------------------------


class ReallyUnfinished(AgentOrder):
    """Virtual time is shared by the agents that are really there, and no others."""

    def __init__(self) -> None:
        super().__init__()
        self.value = Fraction(0)
        self._tags: dict[int, Fraction] = {}

    def account(self, agent: Agent, seq: int) -> Account:
        self._tags[seq] = self.value + Fraction(agent.cost) / Fraction(agent.weight)
        return super().account(agent, seq)

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (self._tags[account.seq],)

    def served(self, step: Step) -> None:
        there = sum(Fraction(one.agent.weight) for one in self._accounts.values())
        work = sum(self.deliver(step).values())
        if work:
            self.value += Fraction(work) / there

    def revised(self, account: Account) -> None:
        now = self.value + Fraction(account.cost) / Fraction(account.agent.weight)
        self._tags[account.seq] = now
        self.reorder(account)

    def left(self, account: Account) -> None:
        del self._tags[account.seq]

    def tag(self, agent_id: str) -> Number:
        return self._tags[self._known(agent_id).seq]


class TagsRecomputed(SelectivePampering):
    """Whoever comes makes all tags anew, from the virtual time it comes at."""

    def account(self, agent: Agent, seq: int) -> Account:
        for other in self._accounts.values():
            assert isinstance(other, _Pampered)
            self.clock.leave(other.seq)
            self._promise(other, exactly(other.cost), 0)
        return super().account(agent, seq)


class TagAtSubmit(SelectivePampering):
    """An agent has its tag from its first inference on."""

    def __init__(self) -> None:
        super().__init__()
        self._has: set[int] = set()

    def submitted(self, entry: Entry) -> None:
        account = entry.account
        assert isinstance(account, _Pampered)
        if account.seq not in self._has:
            self._has.add(account.seq)
            self.clock.leave(account.seq)
            self._promise(account, exactly(account.cost))


class VictimsInOrder(SelectivePampering):
    """Who is first in the order gives way first."""

    def victims(self) -> Iterator[Inference]:
        return iter(list(super().victims())[::-1])


class VictimsById(SelectivePampering):
    """Who gives way is decided by the id."""

    def victims(self) -> Iterator[Inference]:
        return iter(sorted(super().victims(), key=lambda one: one.id))


class _StaleClock(VirtualClock):
    __slots__ = ()

    def serve(self, work: Number) -> list[tuple[Hashable, Exact]]:
        if self._weight:
            self._value += Fraction(work) / self._weight
        gone: list[tuple[Hashable, Exact]] = []
        while self._active and self._head()[1] <= self._value:
            member = self._head()[3]
            gone.append((member.key, 0))
            self._remove(member)
        return gone


class StaleRate(SelectivePampering):
    """A step that crosses departures is shared by those who were there before it."""

    def __init__(self) -> None:
        super().__init__()
        self.clock = _StaleClock()


class DroppedAtItsEnd(SelectivePampering):
    """An agent that ends is taken out of the reference at once."""

    def left(self, account: Account) -> None:
        self.clock.leave(account.seq)


class OwedInFull(SelectivePampering):
    """An agent that is cancelled stays in the reference for all that it asked for."""

    def left(self, account: Account) -> None:
        assert isinstance(account, _Pampered)
        account.service = account.promised
        super().left(account)


class SettledWithoutWeight(SelectivePampering):
    """What an agent did not get is taken out of its tag as if its weight were 1."""

    def left(self, account: Account) -> None:
        assert isinstance(account, _Pampered)
        less = account.promised - exactly(account.service)
        if less > 0:
            account.service = account.promised - less * Fraction(account.agent.weight)
        super().left(account)


class SettledBeyond(SelectivePampering):
    """An agent stays in the reference for all it got, though it asked for less."""

    def left(self, account: Account) -> None:
        assert isinstance(account, _Pampered)
        account.promised = max(account.promised, exactly(account.service))
        super().left(account)


class HeldIsService(SelectivePampering):
    """KV that is held while a prompt is computed counts as service."""

    def __init__(self) -> None:
        super().__init__()
        self._held: dict[str, int] = {}

    def served(self, step: Step) -> None:
        for one, tokens in step.prefill.items():
            self._held[one] = self._held.get(one, 0) + tokens
            if one in self._running and not self._running[one].produced:
                self._share(self._held[one])
        super().served(step)

    def finish(self, inference_id: str) -> bool:
        self._held.pop(inference_id, None)
        return super().finish(inference_id)


def nominal_clock() -> SelectivePampering:
    """Make one whose reference gets the engine's capacity, whatever it delivers."""
    return SelectivePampering(clock="nominal", capacity=10)


class NominalSteps(SelectivePampering):
    """Every step is taken to deliver as much as the engine could."""

    def served(self, step: Step) -> None:
        self.deliver(step)
        self._share(10)


class GoesBack(SelectivePampering):
    """Virtual time begins anew when the reference has nobody."""

    def served(self, step: Step) -> None:
        super().served(step)
        if not self.clock.active:
            self.clock._value = 0


class WeightIgnored(SelectivePampering):
    """All agents have the same weight."""

    def arrive(self, agent: Agent) -> None:
        if isinstance(agent, Agent):
            agent = Agent(agent.id, agent.cost, 1, agent.kind, agent.stage_costs)
        super().arrive(agent)


class WeightInTagsAlone(SelectivePampering):
    """Weights make tags smaller, and virtual time no slower."""

    def account(self, agent: Agent, seq: int) -> Account:
        account = super().account(agent, seq)
        member = self.clock._members[seq]
        self.clock._weight += 1 - member.weight
        member.weight = 1
        return account


class ReviseIgnored(SelectivePampering):
    """A revised cost changes nothing."""

    def revised(self, account: Account) -> None:
        pass


class RevisedFromNow(SelectivePampering):
    """A revised cost gives the tag of an agent that arrives just now."""

    def revised(self, account: Account) -> None:
        assert isinstance(account, _Pampered)
        self.clock.leave(account.seq)
        self._promise(account, exactly(account.cost), 0)


class OneTagForAllStages(SelectivePampering):
    """Takes tags="stage", and gives one tag an agent all the same."""

    def __init__(self, *, tags: str = "agent") -> None:
        super().__init__()


class SettledAsAWhole(SelectivePampering):
    """Takes what an early stage was predicted too much out of the last one."""

    def left(self, account: Account) -> None:
        assert isinstance(account, _Pampered)
        account.before = account.served_before = 0
        super().left(account)


class BlindToCosts(SelectivePampering):
    """Takes a cost model, and counts in KV token-time all the same."""

    def __init__(self, *, cost: str = "kv") -> None:
        super().__init__()


# Coming back, and going --------------------------------------------------------------


class ChargedTwice(SelectivePampering):
    """What was taken back is delivered its tokens once more."""

    def requeued(self, entry: Entry) -> None:
        super().requeued(entry)
        self._share(entry.work)


class BackToTheEnd(SelectivePampering):
    """What was taken back goes to the end of its agent's line."""

    def requeued(self, entry: Entry) -> None:
        entry.seq = self._next()
        super().requeued(entry)


class LosesWhatComesBack(SelectivePampering):
    """What was taken back the second time is in no line."""

    def __init__(self) -> None:
        super().__init__()
        self._back: set[int] = set()

    def enqueue(self, entry: Entry) -> None:
        if entry.seq not in self._back:
            super().enqueue(entry)
        self._back.discard(entry.seq)

    def dequeue(self, entry: Entry) -> None:
        if entry.account.groups.get(0) and entry.seq in entry.account.groups[0].entries:
            super().dequeue(entry)

    def requeued(self, entry: Entry) -> None:
        if entry.produced:
            self._back.add(entry.seq)
        super().requeued(entry)


class Leaks(SelectivePampering):
    """Who left is remembered for ever."""

    def __init__(self) -> None:
        super().__init__()
        self._gone: list[Account] = []

    def left(self, account: Account) -> None:
        super().left(account)
        self._gone.append(account)


class Counts(SelectivePampering):
    """How many tokens an inference has had is remembered for ever, by its id."""

    def __init__(self) -> None:
        super().__init__()
        self._had: dict[str, int] = {}

    def served(self, step: Step) -> None:
        super().served(step)
        self._had |= step.decode


class KeepsTheRunning(SelectivePampering):
    """What runs is still there after its agent has left."""

    def leave(self, agent_id: str) -> bool:
        account = self._accounts.get(agent_id)
        kept = {} if account is None else dict(account.live)
        said = super().leave(agent_id)
        self._running |= {one: entry for one, entry in kept.items() if entry.produced}
        return said


# Answers ------------------------------------------------------------------------------


class Raises(SelectivePampering):
    """Has forgotten that an agent may leave before it was served."""

    def left(self, account: Account) -> None:
        self.clock.leave(account.seq)
        _ = 1 / account.service


class StartsInSilence(SelectivePampering):
    """start answers nothing."""

    def start(self, inference_id: str) -> Inference:
        super().start(inference_id)
        return None  # type: ignore[return-value]


class RaisesOnStrangers(SelectivePampering):
    """A step must be of those who run."""

    def served(self, step: Step) -> None:
        for one in step.decode:
            _ = self._running[one]
        super().served(step)


class ServesTheWaiting(SelectivePampering):
    """Who waits is delivered what a step says."""

    def served(self, step: Step) -> None:
        for one, tokens in step.decode.items():
            if one in self._waiting:
                self._share(tokens)
        super().served(step)


class EatsTheStep(SelectivePampering):
    """Takes out of a step what it has read."""

    def served(self, step: Step) -> None:
        super().served(step)
        step.decode.clear()  # type: ignore[attr-defined]


class OrderIsNotPops(SelectivePampering):
    """order() lists the agents as they came, and pop takes the smallest tag."""

    def order(self) -> Iterator[Inference]:
        entries = sorted(self._waiting.values(), key=lambda entry: entry.seq)
        return (entry.inference for entry in entries)


class EndlessOrder(SelectivePampering):
    """order() never ends."""

    def order(self) -> Iterator[Inference]:
        while True:
            yield from list(super().order())
            if not self._waiting:
                return


class NotTheSame(SelectivePampering):
    """Another object, made later, has another order."""

    made: ClassVar[Iterator[int]] = count()

    def __init__(self) -> None:
        super().__init__()
        self._sign = -1 if next(self.made) % 2 else 1

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (self._sign * account.seq,)


class AsTheStepSays(AgentOrder):
    """The agent that the last step names first is next."""

    def __init__(self) -> None:
        super().__init__()
        self._first = ""

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (account.agent.id != self._first,)

    def served(self, step: Step) -> None:
        for one in step.decode:
            if one in self._running:
                self._first = self._running[one].account.agent.id
                break
        for account in self._accounts.values():
            self.reorder(account)

    def left(self, account: Account) -> None:
        if self._first == account.agent.id:
            self._first = ""


class AlwaysTrue(SelectivePampering):
    """finish and leave say True of whatever they are told."""

    def finish(self, inference_id: str) -> bool:
        super().finish(inference_id)
        return True

    def leave(self, agent_id: str) -> bool:
        super().leave(agent_id)
        return True


class TakesTwice(SelectivePampering):
    """An agent that is there already is taken for another."""

    def arrive(self, agent: Agent) -> None:
        if agent.id not in self._accounts:
            super().arrive(agent)


class ChargesTheRefused(SelectivePampering):
    """A start that is refused has moved virtual time already."""

    def start(self, inference_id: str) -> Inference:
        if inference_id not in self._waiting:
            self._share(1)
            raise PolicyError(f"{inference_id} is not waiting")
        return super().start(inference_id)


class BadBooks(SelectivePampering):
    """Counts the running, and forgets that they may be taken back."""

    def __init__(self) -> None:
        super().__init__()
        self._count = 0

    def started(self, entry: Entry) -> None:
        self._count += 1
        super().started(entry)

    def finish(self, inference_id: str) -> bool:
        self._count -= inference_id in self._running
        return super().finish(inference_id)

    def _check(self) -> None:
        super()._check()
        assert self._count == len(self._running), "the count is wrong"


def shortest_remaining() -> object:
    """Make one that lets large agents starve."""
    return create("srjf")


FAULTS: dict[Callable[..., object], str] = {
    LastInFirstOut: "fair-order first-come-ties theorem-b",
    TiesById: "first-come-ties",
    TiesByTheLast: "first-come-ties",
    Backfills: "head-stays",
    ReallyUnfinished: "active-in-reference ended-stays",
    TagsRecomputed: "tags-stay",
    TagAtSubmit: "tag-at-arrival",
    VictimsInOrder: "victims-reversed",
    VictimsById: "victims-reversed",
    StaleRate: "rate-at-departures",
    DroppedAtItsEnd: "ended-stays",
    OwedInFull: "ended-stays",
    SettledWithoutWeight: "ended-stays",
    SettledBeyond: "ended-stays",
    HeldIsService: "prefill-is-nothing",
    nominal_clock: "delivered-not-nominal",
    NominalSteps: "delivered-not-nominal",
    GoesBack: "never-back",
    WeightIgnored: "weights",
    WeightInTagsAlone: "weights",
    ReviseIgnored: "revise",
    RevisedFromNow: "revise",
    OneTagForAllStages: "theorem-b-stages",
    SettledAsAWhole: "stages-settled",
    BlindToCosts: "theorem-b-reserved theorem-b-compute",
    ChargedTwice: "requeue-returns",
    BackToTheEnd: "requeue-returns",
    LosesWhatComesBack: "total",
    Leaks: "no-leak",
    Counts: "no-leak",
    KeepsTheRunning: "total",
    Raises: "total",
    StartsInSilence: "start-returns",
    RaisesOnStrangers: "steps-pass-over",
    ServesTheWaiting: "steps-pass-over",
    EatsTheStep: "steps-pass-over",
    OrderIsNotPops: "order-is-pops",
    EndlessOrder: "total",
    NotTheSame: "deterministic",
    AsTheStepSays: "deterministic",
    AlwaysTrue: "unknown-ids",
    TakesTwice: "bad-input",
    ChargesTheRefused: "bad-input",
    BadBooks: "checks",
    shortest_remaining: "no-starvation theorem-b",
}
"""Each with the properties that must be broken, whatever the seed."""
