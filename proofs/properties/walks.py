"""Histories of verbs in any order that is allowed, as plain lists that shrink well.

An `Event` says what happens and, by number, to whom of those who are there; what cannot
happen is left out. So any list is a history, and so is any part of one.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from hypothesis import strategies as st

from justitia.policy import Agent, Inference, Step
from justitia.proofs.plans import Number, Size
from justitia.proofs.recorder import Recorder
from justitia.proofs.strategies import costs, sizes, weights

NAMES = "dbeacf"
"""Of agents, in order of arrival: no order by name is that."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happens.

    Attributes
    ----------
    what
        A verb, or ``"join"`` for an agent that arrives and submits inferences.
    who
        A number that picks who of those that it can happen to.
    cost, weight, sizes
        Of an agent that joins; `cost` of one that is revised.
    tokens
        What each of the running produces in a step, in turn; 0 and it computes a
        prompt token instead.
    """

    what: str
    who: int = 0
    cost: Number = 1
    weight: Number = 1
    sizes: tuple[Size, ...] = ()
    tokens: tuple[int, ...] = (1,)


picks = st.integers(0, 5)


def events(*verbs: str) -> st.SearchStrategy[Event]:
    """Draw events of some verbs."""
    one: dict[str, st.SearchStrategy[Event]] = {
        "join": st.builds(
            Event,
            st.just("join"),
            cost=costs(),
            weight=weights(),
            sizes=st.lists(sizes(), min_size=1, max_size=2).map(tuple),
        ),
        "submit": st.builds(Event, st.just("submit"), picks, sizes=st.tuples(sizes())),
        "serve": st.builds(
            Event,
            st.just("serve"),
            tokens=st.lists(st.integers(0, 3), min_size=1, max_size=3).map(tuple),
        ),
        "revise": st.builds(Event, st.just("revise"), picks, cost=costs()),
    }
    plain = [
        st.builds(Event, st.just(verb), picks) for verb in verbs if verb not in one
    ]
    return st.one_of(*(one[verb] for verb in verbs if verb in one), *plain)


def histories(*verbs: str, most: int = 12) -> st.SearchStrategy[list[Event]]:
    """Draw lists of events that begin with one to three agents."""
    begin = st.lists(events("join"), min_size=1, max_size=3)
    rest = st.lists(events(*verbs), max_size=most)
    return st.tuples(begin, rest).map(lambda parts: [*parts[0], *parts[1]])


_LIVES = (
    ("start", "serve", "requeue"),
    ("start", "serve", "finish"),
    ("start", "serve", "leave"),
    ("start", "start", "serve", "requeue", "start"),
    ("start", "requeue"),
    ("start", "leave"),
    ("start", "submit", "serve"),
    ("leave", "join"),
    ("serve",),
)


def lives(most: int = 4) -> st.SearchStrategy[list[Event]]:
    """Draw lists of events made of such parts as inferences' lives have.

    Of verbs drawn one by one few would follow one another so.
    """
    begin = st.lists(events("join"), min_size=1, max_size=3)
    parts = [st.tuples(*map(events, verbs)) for verbs in _LIVES]
    rest = st.lists(st.one_of(parts), min_size=1, max_size=most)
    return st.tuples(begin, rest).map(
        lambda drawn: [*drawn[0], *(event for part in drawn[1] for event in part)]
    )


ALL = (
    "join", "submit", "serve", "start", "start", "requeue", "finish", "leave", "revise",
    "refuse", "advance",
)  # fmt: skip
"""Everything that may happen; a start is twice as likely."""


class Walk:
    """Tells a policy events, by its own books of who is there.

    Parameters
    ----------
    policy
        Told what happens.
    others
        Told the same.
    backwards
        The mappings in a step are told to the others in the opposite order.
    names
        Of agents, in order of arrival.
    """

    def __init__(
        self,
        policy: Recorder,
        *others: Recorder,
        backwards: bool = False,
        names: Sequence[str] = NAMES,
    ) -> None:
        self.policy, self.others, self.backwards = policy, others, backwards
        self.names = names
        self._joined = 0
        self._submitted: dict[str, int] = {}
        self.last_started: str | None = None

    def tell(self, event: Event) -> bool:
        """Tell of an event; return whether it could happen."""
        happen: Callable[[Event], bool] = getattr(self, f"_{event.what}")
        return happen(event)

    def tell_all(self, history: Sequence[Event]) -> Iterator[Event]:
        """Tell of events one by one; yield each that could happen."""
        for event in history:
            if self.tell(event):
                yield event

    def _each(self, verb: str, *arguments: Any) -> None:  # noqa: ANN401 - of a verb
        for policy in (self.policy, *self.others):
            getattr(policy, verb)(*arguments)

    def _join(self, event: Event) -> bool:
        free = [name for name in self.names if name not in self.policy.agents]
        if not free:
            return False
        name = next((n for n in self.names[self._joined :] if n in free), free[0])
        self._joined += 1
        self._submitted[name] = 0  # who comes again has the ids of before
        self._each("arrive", Agent(name, event.cost, event.weight))
        for size in event.sizes:
            self._put(name, size)
        return True

    def _submit(self, event: Event) -> bool:
        if not self.policy.agents:
            return False
        self._put(pick(list(self.policy.agents), event.who), event.sizes[0])
        return True

    def _put(self, name: str, size: Size) -> None:
        number = self._submitted[name]
        self._submitted[name] = number + 1
        self._each("submit", Inference(f"{name}/{number}", name, *size))

    def _start(self, event: Event) -> bool:
        head = self.policy.peek()
        if head is None:
            return False
        # Mostly the head; an engine may pass over what is not ready to run.
        waiting = list(self.policy.waiting)
        one = pick(waiting, event.who) if event.who > 3 else head.id
        self._each("start", one)
        self.last_started = one
        return True

    def _serve(self, event: Event) -> bool:
        if not self.policy.running:
            return False
        given = [
            (one, event.tokens[number % len(event.tokens)])
            for number, one in enumerate(self.policy.running)
        ]
        self._step(given)
        return True

    def _step(self, given: Sequence[tuple[str, int]]) -> None:
        self.policy.serve(_step(given))
        for other in self.others:
            other.serve(_step(given[::-1] if self.backwards else given))

    def _requeue(self, event: Event) -> bool:
        if not self.policy.running:
            return False
        self._each("requeue", pick(list(self.policy.running), event.who))
        return True

    def _finish(self, event: Event) -> bool:
        if not self.policy.running:
            return False
        self._each("finish", pick(list(self.policy.running), event.who))
        return True

    def _leave(self, event: Event) -> bool:
        if not self.policy.agents:
            return False
        self._each("leave", pick(list(self.policy.agents), event.who))
        return True

    def _revise(self, event: Event) -> bool:
        if not self.policy.agents:
            return False
        self._each("revise", pick(list(self.policy.agents), event.who), event.cost)
        return True

    def _refuse(self, event: Event) -> bool:
        head = self.policy.peek()
        if head is None or not self.policy.running:
            return False
        self._each("refuse", head.id)
        return True

    def _advance(self, event: Event) -> bool:
        self._each("advance", 1)
        return True


def _step(given: Sequence[tuple[str, int]]) -> Step:
    return Step(
        {one: 1 for one, tokens in given if not tokens},
        {one: tokens for one, tokens in given if tokens},
    )


def pick(items: Sequence[T], number: int) -> T:
    """Return one of the items, which there must be."""
    return items[number % len(items)]
