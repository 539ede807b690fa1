"""A state machine that drives any scheduler beside the fair reference.

It tells the scheduler whatever can happen, in any order that the verbs of
`justitia.policy.Policy` allow and in some that they do not, and after each event asks
it for everything that it shows. To put a scheduler of your own through it::

    class MyMachine(PolicyMachine):
        def make(self): return MyPolicy()
    TestMine = MyMachine.TestCase  # for pytest or unittest

The scheduler need not be ours, nor import anything of ours: it is any object with the
verbs. ``refuse``, ``advance``, ``tag``, ``clock.value`` and ``_check`` are used where
it has them.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, ClassVar, TypeAlias, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from justitia.policy import Agent, Inference, PolicyError, Step
from justitia.proofs.plans import Number, Size, Work, delivered, kv_token_time
from justitia.proofs.reference import FairReference
from justitia.proofs.strategies import costs, sizes, weights

AGENTS = ("a", "a1", "a11", "b")
INFERENCES = tuple(f"i{number}" for number in range(12))

T = TypeVar("T")
picks = st.integers(0, 2**16)
"""An index into what happens to be there, taken modulo its length."""
Arrival: TypeAlias = tuple[tuple[Number, ...], Number, list[Size]]
"""The predicted cost of each stage, the weight, and the first stage or nothing."""

arrivals: st.SearchStrategy[Arrival] = st.tuples(
    st.lists(costs(), min_size=1, max_size=3).map(tuple),
    weights(),
    st.lists(sizes(), max_size=4),
)
News: TypeAlias = tuple[int, int, int]
"""An index of whom, prompt tokens computed, tokens produced."""

news: st.SearchStrategy[list[News]] = st.lists(
    st.tuples(picks, st.integers(0, 3), st.integers(0, 2)), max_size=2
)
crowds = st.lists(arrivals, min_size=1, max_size=3)


@dataclass(eq=False, slots=True)
class Guest:
    """An agent that the scheduler was told of.

    One that comes again under an old name is another.

    Attributes
    ----------
    costs
        The predicted cost of each stage, as it said when it arrived.
    total
        Its predicted cost as last revised.
    asked
        What the reference was told that it wants; 0 before it was told anything.
    got
        What it was delivered.
    earlier
        `asked` and `got` as they were when its latest stage became ready.
    ready
        How many of its stages are.
    tags
        The level at which the reference finishes each stage, or the agent (as 0).
    """

    name: str
    seq: int
    weight: Number
    costs: tuple[Number, ...]
    total: Fraction
    asked: Fraction = Fraction(0)
    got: Fraction = Fraction(0)
    earlier: tuple[Fraction, Fraction] = (Fraction(0), Fraction(0))
    ready: int = 0
    tags: dict[int, Fraction] = field(default_factory=dict)

    def part(self, stages: int) -> Fraction:
        """Return what the first stages cost, of the total as last revised."""
        said = [Fraction(cost) for cost in self.costs]
        return sum(said[:stages], Fraction(0)) / sum(said) * self.total


@dataclass(eq=False, slots=True)
class Call:
    """An inference that is alive."""

    name: str
    guest: Guest
    stage: int
    seq: int
    p: int
    d: int
    running: bool = False
    produced: int = 0


class PolicyMachine(RuleBasedStateMachine):
    """Whatever happens, a scheduler keeps its books, and its order if it is fair.

    Checked after every event:

    - *totality*: what was submitted and has not ended is either in ``order()`` or in
      ``victims()``, once; ``peek()`` is the head of the line;
    - *order*: the line is in order of the levels at which the fair reference finishes
      the agents (or stages), of equal ones in order of arrival, and the victims are in
      the opposite order;
    - *tags*: they are these levels, exactly; an arrival changes nobody else's; virtual
      time never goes back;
    - *conservation*: what the reference was served is what the steps delivered, and
      none of it is lost to those who want it;
    - `_check`, where there is one.

    Now and then: that repeated ``pop`` gives ``order()``, that starts taken back before
    a step leave no trace, that ``refuse`` and ``advance`` leave a fair line as it is,
    that ids that are not there, or are there already, are refused and change nothing.
    In the end everybody leaves, and nothing is left.

    Attributes
    ----------
    by_stage
        Each stage has a tag of its own, set when it is submitted.
    fair
        Whether order and tags are checked. All else is asked of every scheduler. One
        of another order says in `expected` what it is.
    work
        The work of an inference, the unit of costs.
    refusals
        What the scheduler raises on a bad id.
    """

    by_stage: ClassVar[bool] = False
    fair: ClassVar[bool] = True
    work: Work = staticmethod(kv_token_time)
    refusals: ClassVar[tuple[type[Exception], ...]] = (PolicyError,)

    def make(self) -> Any:  # noqa: ANN401 - anything with the verbs
        """Return a new scheduler."""
        raise NotImplementedError

    def expected(self, alive: Sequence[Call]) -> Sequence[Call] | None:
        """Return the order that inferences should stand in, or None if it is not known.

        Called with all that wait, and with all that run, who should give way in the
        opposite order.
        """
        return sorted(alive, key=self._place) if self.fair else None

    @initialize(crowd=crowds)
    def begin(self, crowd: list[Arrival]) -> None:
        """Make the scheduler, and the reference; let the first agents come."""
        self.policy = self.make()
        self.reference = FairReference()
        self.guests: dict[str, Guest] = {}
        self.calls: dict[str, Call] = {}
        self.settled: set[int] = set()
        self.seq = 0
        self.delivered = Fraction(0)
        self.quiet_until = Fraction(20)  # so that it is not idle all the time
        self.virtual_time: Number = 0
        self._arrive(0, crowd)

    # What happens ---------------------------------------------------------------

    @precondition(lambda self: len(self.guests) < len(AGENTS))
    @rule(index=picks, crowd=crowds)
    def arrive(self, index: int, crowd: list[Arrival]) -> None:
        """Let agents come, with their first stage or before it is ready."""
        self._arrive(index, crowd)

    @precondition(lambda self: self._unready() and len(self.calls) < len(INFERENCES))
    @rule(index=picks, stage=st.lists(sizes(), min_size=1, max_size=4))
    def submit(self, index: int, stage: list[Size]) -> None:
        """Let a stage become ready, as a whole."""
        self._submit(_pick(self._unready(), index), stage)

    @precondition(lambda self: self._waiting())
    @rule(index=picks)
    def start(self, index: int) -> None:
        """Start one that need not be the head, which was not ready to run, say."""
        self._start(_pick(self._waiting(), index).name)

    @precondition(lambda self: self.calls)
    @rule(times=st.integers(0, 3), news=news)
    def step(self, times: int, news: list[News]) -> None:
        """Start the first few in line; all that run produce a token, or as `news` say.

        Some of these are of what does not run: it was sent back, or cancelled.
        """
        for head in [item.id for item in self.policy.order()][:times]:
            self._start(head)
        names = [call.name for call in self._running()]
        decode = dict.fromkeys(names, 1)
        names += [call.name for call in self._waiting()[:1]] + ["ghost"]
        prefill = {}
        for index, computed, produced in news:
            name = _pick(names, index)
            prefill[name], decode[name] = computed, produced
        self.policy.serve(Step(prefill, decode))
        self._serve(decode)

    @precondition(lambda self: self.calls)
    @rule(steps=st.integers(1, 4), slots=st.integers(1, 4))
    def run(self, steps: int, slots: int) -> None:
        """Do what an engine does all day, for a few steps."""
        for _ in range(steps):
            while len(self._running()) < slots and self._waiting():
                self._start(self.policy.peek().id)
            decode = {call.name: 1 for call in self._running()}
            self.policy.serve(Step({}, decode))
            self._serve(decode)
            for call in [one for one in self._running() if one.produced >= one.d]:
                assert self.policy.finish(call.name)
                del self.calls[call.name]

    @precondition(lambda self: self._running())
    @rule(index=picks)
    def requeue(self, index: int) -> None:
        """Preempt."""
        call = _pick(self._running(), index)
        self.policy.requeue(call.name)
        call.running = False

    @precondition(lambda self: self.calls)
    @rule(index=picks)
    def finish(self, index: int) -> None:
        """End an inference, waiting or running."""
        name = _pick(self.calls, index)
        assert self.policy.finish(name)
        del self.calls[name]
        assert not self.policy.finish(name)

    @precondition(lambda self: len(self.guests) > 1)
    @rule(index=picks)
    def leave(self, index: int) -> None:
        """End an agent, with all it has."""
        self._leave(_pick(self.guests, index))

    @precondition(lambda self: self.delivered >= self.quiet_until)
    @rule(index=picks, crowd=crowds)
    def everybody_leaves(self, index: int, crowd: list[Arrival]) -> None:
        """Be idle for a moment: nobody is owed anything any more. Others come."""
        self._clear()
        self.quiet_until = self.delivered + 20
        self._arrive(index, crowd)

    @rule(index=picks, cost=costs())
    def revise(self, index: int, cost: Number) -> None:
        """Predict another total; with tags by stage the latest gets its part of it."""
        guest = _pick(self.guests.values(), index)
        self.policy.revise(guest.name, cost)
        guest.total = Fraction(cost)
        if not self.by_stage:
            self._ask(guest, 0, guest.total)
        elif guest.ready:
            part = guest.part(guest.ready) - guest.part(guest.ready - 1)
            self._ask(guest, guest.ready - 1, guest.earlier[0] + part)

    # What leaves no trace -----------------------------------------------------------

    @precondition(lambda self: self._waiting())
    @rule(seconds=st.integers(-3, 9))
    def wait(self, seconds: int) -> None:
        """Have no room for the head, and let time pass."""
        if hasattr(self.policy, "refuse"):
            self.policy.refuse(self.policy.peek().id)
        if hasattr(self.policy, "advance"):
            self.policy.advance(seconds)

    @precondition(lambda self: self._waiting())
    @rule()
    def pop_all_and_undo(self) -> None:
        """Start the whole line, and take it all back before a step."""
        order = [item.id for item in self.policy.order()]
        popped = []
        while (head := self.policy.peek()) is not None:
            popped.append(head.id)
            self.policy.start(head.id)
        assert popped == order, "order() is not what repeated pop gives"
        for name in reversed(popped):
            self.policy.requeue(name)
        assert [item.id for item in self.policy.order()] == order

    @precondition(lambda self: self.calls)
    @rule(index=picks)
    def misuse(self, index: int) -> None:
        """Speak of what is not there, or do what was done already."""
        policy = self.policy
        assert not policy.finish("ghost")
        assert not policy.leave("ghost")
        wrong: list[tuple[Callable[..., object], tuple[object, ...]]] = [
            (policy.start, ("ghost",)),
            (policy.requeue, ("ghost",)),
            (policy.revise, ("ghost", 1)),
            (policy.submit, (Inference("ghost", "ghost", 1, 1),)),
        ]
        for guest in self.guests.values():
            wrong.append((policy.arrive, (Agent(guest.name, 1),)))
        for call in self.calls.values():
            again = Inference(call.name, call.guest.name, 1, 1, call.stage)
            wrong.append((policy.submit, (again,)))
            verb = policy.start if call.running else policy.requeue
            wrong.append((verb, (call.name,)))
        verb, arguments = _pick(wrong, index)
        try:
            verb(*arguments)
        except self.refusals:
            pass
        else:
            raise AssertionError(f"{verb.__name__}{arguments} was not refused")

    # What must hold -----------------------------------------------------------------

    @invariant()
    def books_are_kept(self) -> None:
        """Assert totality, and the order."""
        policy = self.policy
        if hasattr(policy, "_check"):
            policy._check()
        order = [item.id for item in policy.order()]
        victims = [item.id for item in policy.victims()]
        waiting, running = self._waiting(), self._running()
        assert sorted(order) == sorted(call.name for call in waiting)
        assert sorted(victims) == sorted(call.name for call in running)
        head = policy.peek()
        assert (None if head is None else head.id) == (order[0] if order else None)
        expected = self.expected(waiting)
        if expected is not None:
            assert order == [call.name for call in expected], "the line is out of order"
        expected = self.expected(running)
        if expected is not None:
            assert victims == [call.name for call in expected][::-1]

    @invariant()
    def time_is_fair(self) -> None:
        """Assert that tags are the reference's, and that nothing was made or lost."""
        reference = self.reference
        reference._check()
        assert reference.served + reference.lost == self.delivered
        if not self.fair:
            return
        told = getattr(self.policy, "tag", None)
        for guest in self.guests.values():
            if guest.tags:
                # Set when it was asked for, and not touched by anything since.
                level = reference.finish_level(guest.seq)
                assert level == guest.tags[max(guest.tags)]
                tag = None if told is None else told(guest.name)
                assert tag is None or tag == level, "a tag is not fair"
        value = getattr(getattr(self.policy, "clock", None), "value", None)
        if value is not None and not callable(value):
            assert value == reference.level >= self.virtual_time
            self.virtual_time = value

    def teardown(self) -> None:
        """Let everybody leave."""
        if hasattr(self, "policy"):
            self._clear()

    # Both at once -------------------------------------------------------------------

    def _arrive(self, index: int, crowd: list[Arrival]) -> None:
        free = [name for name in AGENTS if name not in self.guests]
        for stage_costs, weight, stage in crowd[: len(free)]:
            name = _pick(free, index)
            free.remove(name)
            total = sum(stage_costs)
            self.policy.arrive(Agent(name, total, weight, stage_costs=stage_costs))
            self.seq += 1
            guest = Guest(name, self.seq, weight, stage_costs, Fraction(total))
            self.guests[name] = guest
            if not self.by_stage:
                self._ask(guest, 0, guest.total)
            self._submit(guest, stage)

    def _submit(self, guest: Guest, stage: Sequence[Size]) -> None:
        """Let the next stage of an agent become ready, as far as there are names."""
        free = [name for name in INFERENCES if name not in self.calls]
        if not free or not stage:
            return
        number = guest.ready
        guest.ready += 1
        if self.by_stage:
            new = guest.part(number + 1) - guest.part(number)
            guest.earlier = (guest.asked, guest.got)
            self._ask(guest, number, guest.asked + new)
        for name, (p, d) in zip(free, stage, strict=False):
            self.seq += 1
            self.policy.submit(Inference(name, guest.name, p, d, number))
            self.calls[name] = Call(name, guest, number, self.seq, p, d)

    def _start(self, name: str) -> None:
        assert self.policy.start(name).id == name
        self.calls[name].running = True

    def _serve(self, decode: Mapping[str, int]) -> None:
        """Share what those that run were delivered."""
        work = Fraction(0)
        for call in self._running():
            if count := decode.get(call.name, 0):
                got = -delivered(self.work, (call.p, call.d), call.produced)
                call.produced += count
                got += delivered(self.work, (call.p, call.d), call.produced)
                call.guest.got += got
                work += got
        self.delivered += work
        for seq, _ in self.reference.serve(work):
            if seq in self.settled:
                self.settled.remove(int(str(seq)))
                self.reference.leave(seq)

    def _leave(self, name: str) -> None:
        """End an agent; the reference owes it no more than it was delivered.

        What an earlier stage was predicted too much it keeps: see `bounds.replay`.
        """
        assert self.policy.leave(name)
        assert not self.policy.leave(name)
        guest = self.guests.pop(name)
        self.calls = {n: c for n, c in self.calls.items() if c.guest is not guest}
        if guest.asked:
            asked, before = guest.earlier
            got = asked + min(guest.got - before, guest.asked - asked)
            if got:
                self.reference.revise(guest.seq, got)
            if got and self.reference.wanted(guest.seq):
                self.settled.add(guest.seq)
            else:
                self.reference.leave(guest.seq)
        if not self.guests:  # nobody is left who would wait for it
            for seq in self.settled:
                self.reference.leave(seq)
            self.settled.clear()

    def _clear(self) -> None:
        """Let everybody leave; assert that nothing is left."""
        for name in list(self.guests):
            self._leave(name)
            self.books_are_kept()
        assert self.policy.peek() is None
        assert not self.settled
        assert not self.reference.wanting()

    # What there is ------------------------------------------------------------------

    def _waiting(self) -> list[Call]:
        return [call for call in self.calls.values() if not call.running]

    def _running(self) -> list[Call]:
        return [call for call in self.calls.values() if call.running]

    def _unready(self) -> list[Guest]:
        return [g for g in self.guests.values() if g.ready < len(g.costs)]

    def _place(self, call: Call) -> tuple[Fraction, int, int, int]:
        stage = call.stage if self.by_stage else 0
        return (call.guest.tags[stage], call.guest.seq, stage, call.seq)

    def _ask(self, guest: Guest, stage: int, cost: Fraction) -> None:
        """Let the reference know what an agent wants; note the tag that it gets."""
        if guest.asked:
            self.reference.revise(guest.seq, cost)
        else:
            self.reference.arrive(guest.seq, cost, guest.weight)
        guest.asked = cost
        guest.tags[stage] = self.reference.finish_level(guest.seq)


def _pick(items: Iterable[T], index: int) -> T:
    choice = list(items)
    return choice[index % len(choice)]
