"""The engines behind the gateway: what each has room for, and which fits best."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence

from justitia.policy import PolicyError
from justitia.policy.exact import shown

MOST_MARKS = 8_192
"""Beginnings of prompts that are remembered of an engine; the oldest go first."""


class Engine:
    """One engine, by the gateway's own books.

    Attributes
    ----------
    name
        Short, for logs and metrics.
    capacity
        KV tokens of its cache; None: not known, it has `slots`.
    slots
        Inferences that it runs at once at most; None: as many as there is room for.
    models
        What it serves, with the tokens of context of each, None where not known; empty:
        whatever it is asked for.
    up
        Whether it answers. Nothing is sent to one that does not.
    used, running
        KV tokens that are set aside in it, and inferences.

    Notes
    -----
    Complexity: O(1) all, but for O(marks of the prompt) where they are compared.
    """

    def __init__(
        self,
        name: str,
        *,
        capacity: int | None = None,
        slots: int | None = None,
        models: dict[str, int | None] | None = None,
    ) -> None:
        self.name = name
        self.capacity = capacity
        self.slots = slots
        self.models = models or {}
        self.up = False
        self.used = 0
        self.running = 0
        self._marks: OrderedDict[bytes, None] = OrderedDict()

    def __repr__(self) -> str:
        return f"<Engine {self.name}>"

    @property
    def load(self) -> float:
        """The part of it that is in use."""
        parts = [0.0]
        if self.capacity:
            parts.append(self.used / self.capacity)
        if self.slots:
            parts.append(self.running / self.slots)
        return max(parts)

    def serves(self, model: str | None) -> bool:
        """Return whether a request for a model may be sent there."""
        return model is None or not self.models or model in self.models

    def share(self, tokens: int) -> int:
        """Return how much of it a need takes: no more than there is.

        What needs more than all runs alone: lengths are estimates, and whether it is
        really too long is the engine's to say.
        """
        return tokens if self.capacity is None else min(tokens, self.capacity)

    def fits(self, tokens: int, inferences: int) -> bool:
        """Return whether there is room beside what runs."""
        if self.capacity is not None and (
            self.used + self.share(tokens) > self.capacity
        ):
            return False
        slots = self.slots
        return slots is None or self.running + min(inferences, slots) <= slots

    def take(self, tokens: int, inferences: int) -> None:
        """Set something aside."""
        self.used += tokens
        self.running += inferences

    def give_back(self, tokens: int, inferences: int) -> None:
        """Free what was set aside."""
        if tokens > self.used or inferences > self.running:
            raise PolicyError(
                f"engine {shown(self.name)} does not hold {tokens} tokens of "
                f"{inferences} inferences"
            )
        self.used -= tokens
        self.running -= inferences

    def known(self, marks: Sequence[bytes]) -> int:
        """Return how long a beginning it is likely to have cached; more is longer."""
        for index, mark in enumerate(marks):
            if mark in self._marks:
                return len(marks) - index
        return 0

    def remember(self, marks: Sequence[bytes]) -> None:
        """Take note of a prompt that is sent there."""
        for mark in marks:
            self._marks[mark] = None
            self._marks.move_to_end(mark)
        while len(self._marks) > MOST_MARKS:
            self._marks.popitem(last=False)

    def forget(self) -> None:
        """Take note that it was started anew: its cache is empty."""
        self._marks.clear()


def total(sizes: Iterable[int | None]) -> int | None:
    """Return the sum, None where one of them is not known.

    >>> total([100, 20]), total([100, None])
    (120, None)
    """
    added = 0
    for size in sizes:
        if size is None:
            return None
        added += size
    return added


class Fleet:
    """All engines of a gateway; there is one line for all of them.

    Parameters
    ----------
    engines
        With names of their own.
    """

    def __init__(self, engines: Sequence[Engine]) -> None:
        self.engines = tuple(engines)

    def __iter__(self) -> Iterator[Engine]:
        return iter(self.engines)

    def serving(self, model: str | None) -> list[Engine]:
        """Return the engines that are up and serve a model."""
        return [one for one in self.engines if one.up and one.serves(model)]

    def knows(self, model: str | None) -> bool:
        """Return whether any engine may serve a model, up or not."""
        return any(engine.serves(model) for engine in self.engines)

    @property
    def capacity(self) -> int | None:
        """KV tokens of all engines, up or not; None where one of them is not known."""
        return total(one.capacity for one in self.engines)

    @property
    def models(self) -> dict[str, int | None]:
        """What is served, by those that are up, with the longest context of each."""
        found: dict[str, int | None] = {}
        for engine in self.engines:
            if engine.up:
                for model, context in engine.models.items():
                    longest = found.get(model)
                    found[model] = max(longest or 0, context or 0) or None
        return found

    def context(self, model: str | None) -> int | None:
        """Return the longest context of a model; None where nobody says."""
        if model is None:
            return max((c for c in self.models.values() if c), default=None)
        return self.models.get(model)

    @staticmethod
    def best(engines: Sequence[Engine], marks: Sequence[bytes]) -> Engine:
        """Return the engine that knows most of a prompt; the least loaded of those."""
        return min(engines, key=lambda one: (-one.known(marks), one.load))
