"""What fits: the admission rules of the exact server.

Theorem B holds under every one of them. Theorem A asks for a *guaranteed rate* R: that
"an inference is refused" implies "at least R is reserved".
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from justitia.proofs.plans import Item, Plan


@dataclass(slots=True)
class Running:
    """An inference in the engine, or on its way there.

    Attributes
    ----------
    to_prefill
        Prompt tokens, and after a preemption tokens of its own, to be computed before
        it can produce the next.
    produced
        Tokens produced so far.
    """

    item: Item
    p: int
    d: int
    to_prefill: int
    produced: int = 0

    @property
    def cached(self) -> int:
        """KV tokens that it holds."""
        return self.p + self.produced - self.to_prefill


class Admission(Protocol):
    """A rule for what may start."""

    def admits(self, running: Sequence[Running], candidate: Running) -> bool:
        """Return whether the candidate may run beside the running."""

    def overflows(self, running: Sequence[Running]) -> bool:
        """Return whether the next step of the running would not fit."""


@dataclass(frozen=True, slots=True)
class Slots:
    """At most `most` run at once; memory is no matter."""

    most: int

    def admits(self, running: Sequence[Running], candidate: Running) -> bool:
        """Return whether a slot is free."""
        return len(running) < self.most

    def overflows(self, running: Sequence[Running]) -> bool:
        """Return False."""
        return False


@dataclass(frozen=True, slots=True)
class Peak:
    """Reserve the peak p + d, in blocks of `block` tokens, and at most `most` slots.

    Nothing is ever preempted for memory.
    """

    capacity: int
    block: int = 1
    most: int | None = None

    def footprint(self, p: int, d: int) -> int:
        """Return what an inference reserves, in tokens."""
        return -(-(p + d) // self.block) * self.block

    def admits(self, running: Sequence[Running], candidate: Running) -> bool:
        """Return whether the peaks of all fit, and a slot is free."""
        if self.most is not None and len(running) >= self.most:
            return False
        taken = sum(self.footprint(one.p, one.d) for one in running)
        return taken + self.footprint(candidate.p, candidate.d) <= self.capacity

    def overflows(self, running: Sequence[Running]) -> bool:
        """Return False."""
        return False

    def guaranteed_rate(self, plans: Iterable[Plan]) -> int:
        """Return R: what is reserved at least when something is refused.

        M + u - (largest footprint) for a capacity M in blocks of u; with slots no more
        than these times the smallest footprint; all of M if all footprints are equal
        and divide it.
        """
        footprints = {
            self.footprint(p, d)
            for plan in plans
            for stage in plan.stages
            for p, d in stage
        }
        capacity = self.capacity // self.block * self.block
        rate = capacity + self.block - max(footprints)
        if len(footprints) == 1 and capacity % max(footprints) == 0:
            rate = capacity
        if self.most is not None:
            rate = min(rate, self.most * min(footprints))
        return rate


@dataclass(frozen=True, slots=True)
class Lookahead:
    """Start what fits in every step to come, as all grow and end; no reservation."""

    capacity: int

    def admits(self, running: Sequence[Running], candidate: Running) -> bool:
        """Return whether the memory suffices until the candidate ends."""
        for later in range(1, candidate.d - candidate.produced + 1):
            held = sum(
                one.p + one.produced + later
                for one in (*running, candidate)
                if one.produced + later <= one.d
            )
            if held > self.capacity:
                return False
        return True

    def overflows(self, running: Sequence[Running]) -> bool:
        """Return False."""
        return False


@dataclass(frozen=True, slots=True)
class Prompt:
    """Start what fits now, as most engines do, and preempt when it grows too large."""

    capacity: int

    def admits(self, running: Sequence[Running], candidate: Running) -> bool:
        """Return whether the next step of all would fit."""
        return not self.overflows((*running, candidate))

    def overflows(self, running: Sequence[Running]) -> bool:
        """Return whether the next step would hold more than there is."""
        held = sum(one.p + one.produced + 1 for one in running)
        return len(running) > 1 and held > self.capacity


@dataclass(slots=True)
class Whim:
    """Admit as a sequence of coins says, for no reason at all."""

    seed: int
    one_in: int = 2
    tossed: int = 0

    def admits(self, running: Sequence[Running], candidate: Running) -> bool:
        """Return what the next coin says."""
        self.tossed += 1
        return coin(self.seed, self.one_in)(self.tossed)

    def overflows(self, running: Sequence[Running]) -> bool:
        """Return False."""
        return False


def coin(seed: int, one_in: int) -> Callable[[int], bool]:
    """Return a coin that falls on yes about once in `one_in`, as `seed` says."""
    return lambda n: (seed * 2654435761 + n * n * 40503 + n * 9973) % 1009 % one_in == 0
