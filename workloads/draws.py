"""Random draws that are the same on every Python.

`random.Random` promises only that ``random()`` keeps giving the same numbers for a
seed; what its other methods make of them has changed before. So they are made here.
"""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

Item = TypeVar("Item")


def stream(seed: int, name: str) -> Random:
    """Return a generator of its own for each use of a seed.

    Seeded with a string, which Python hashes with SHA-512, so the streams of two names
    have nothing to do with each other and one does not move when another is used more.
    """
    return Random(f"{seed}/{name}")


def below(rng: Random, count: int) -> int:
    """Return an int from 0 to count-1, all equally likely (count at most 2**53)."""
    return int(rng.random() * count)


def shuffled(rng: Random, items: Sequence[Item]) -> list[Item]:
    """Return the items in random order. O(n)."""
    return picked(rng, items, len(items))


def picked(rng: Random, items: Sequence[Item], count: int) -> list[Item]:
    """Return `count` of the items without replacement, in random order. O(n)."""
    pool = list(items)
    for place in range(count):
        other = place + below(rng, len(pool) - place)
        pool[place], pool[other] = pool[other], pool[place]
    return pool[:count]


def drawn(rng: Random, items: Sequence[Item], count: int) -> list[Item]:
    """Return `count` of the items: each at most once while there are enough.

    Beyond that all of them once, and the rest with replacement.
    """
    if count <= len(items):
        return picked(rng, items, count)
    rest = [items[below(rng, len(items))] for _ in range(count - len(items))]
    return shuffled(rng, items) + rest
