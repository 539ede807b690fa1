"""Whole counts from shares."""

from collections.abc import Mapping
from random import Random

from justitia.workloads.draws import shuffled


def split(total: int, shares: Mapping[str, int], rng: Random) -> dict[str, int]:
    """Divide a count by largest remainder, in exact arithmetic.

    Equal remainders are served in an order that `rng` decides, so that over many seeds
    nobody is favoured.

    Parameters
    ----------
    total
        What is divided; not negative.
    shares
        How much each is to get, relative to the others; their sum is positive.

    Returns
    -------
    dict
        Counts in the order of `shares` that add up to `total`, each less than 1 off.
    """
    whole = sum(shares.values())
    counts = {name: total * share // whole for name, share in shares.items()}
    order = sorted(
        shuffled(rng, list(shares)),
        key=lambda name: total * shares[name] % whole,
        reverse=True,
    )
    for name in order[: total - sum(counts.values())]:
        counts[name] += 1
    return counts
