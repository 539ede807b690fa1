"""Agents as they really are: what an exact run starts from.

A `Plan` says when an agent comes, what it will really compute, and what was predicted
of it. A policy is never shown one; it sees what `justitia.proofs.lines` tells of it.
"""

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import NamedTuple, TypeAlias

Number: TypeAlias = int | float | Fraction
Size: TypeAlias = tuple[int, int]
"""Prompt tokens p and decode tokens d, d at least 1."""
Work: TypeAlias = Callable[[int, int], Number]
"""The work of an inference with p prompt tokens after n tokens; see `delivered`."""


class Item(NamedTuple):
    """One inference: the number of its agent, its stage, its place in the stage."""

    agent: int
    stage: int
    place: int

    def __str__(self) -> str:
        return f"a{self.agent}/{self.stage}.{self.place}"


@dataclass(frozen=True, slots=True)
class Plan:
    """An agent: its arrival, its stages, its weight, and what was predicted.

    Attributes
    ----------
    arrival
        The step at whose beginning it arrives.
    stages
        Of each stage its inferences (p, d). Stage k + 1 becomes ready at the beginning
        of the step after the one in which the last of stage k ended.
    weight
        Its weight.
    predicted
        The predicted cost of each stage; empty when predictions are exact.
    cancelled
        The step at whose beginning it is cancelled if it is still here, or None.
    """

    arrival: int
    stages: tuple[tuple[Size, ...], ...]
    weight: Number = 1
    predicted: tuple[Number, ...] = ()
    cancelled: int | None = None

    def __post_init__(self) -> None:
        if not self.stages or not all(self.stages):
            raise ValueError("an agent needs a stage, and a stage an inference")
        if self.predicted and len(self.predicted) != len(self.stages):
            raise ValueError("predict the cost of every stage, or of none")
        for p, d in (size for stage in self.stages for size in stage):
            if p < 0 or d < 1:
                raise ValueError(f"p must be at least 0 and d at least 1, not {(p, d)}")

    def real_costs(self, work: Work) -> tuple[Fraction, ...]:
        """Return what each stage really costs if it runs to its end."""
        return tuple(
            sum((Fraction(work(p, d)) for p, d in stage), Fraction(0))
            for stage in self.stages
        )

    def costs(self, work: Work) -> tuple[Fraction, ...]:
        """Return what each stage was predicted to cost."""
        return tuple(Fraction(c) for c in self.predicted) or self.real_costs(work)


def kv_token_time(p: int, n: int) -> int:
    """Return the KV tokens held in each step that produced one of n tokens, added up.

    Source: section 4.2 of the Justitia paper, summed exactly.

    >>> kv_token_time(5, 3)  # 6 + 7 + 8
    21
    """
    return sum(p + i for i in range(1, n + 1))


@dataclass(frozen=True, slots=True)
class ReservedTokenTime:
    """The work of setting p + d tokens aside, in whole blocks, for each token produced.

    >>> ReservedTokenTime()(10, 5), ReservedTokenTime(block=16).delivered(10, 2, 5)
    (75, 32)
    """

    block: int = 1

    def __call__(self, p: int, d: int) -> int:
        """Return the work of all d tokens."""
        return self.delivered(p, d, d)

    def delivered(self, p: int, n: int, d: int) -> int:
        """Return the work after n of d tokens produced."""
        return -(-(p + d) // self.block) * self.block * n


def delivered(work: Work, size: Size, produced: int) -> Fraction:
    """Return what an inference got by producing some tokens; 0 before the first.

    A measure that depends on d has a method `delivered` with p, n and d, as the cost
    models of `justitia.policy` do, and is asked that.

    >>> delivered(kv_token_time, (5, 9), 3)
    Fraction(21, 1)
    """
    p, d = size
    if not produced:
        return Fraction(0)
    so_far = getattr(work, "delivered", None)
    if so_far is not None:
        return Fraction(so_far(p, produced, d))
    return Fraction(work(p, produced))
