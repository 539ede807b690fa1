"""Loads that tell the parts of a step's time from each other.

Few and many sequences with short and long contexts, short and long prompts, and agents
as they come in workloads. All within what the engine has room for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from justitia.engines.scaling import scaled_to
from justitia.engines.serving.backend import Limits
from justitia.workloads import AgentSpec, InferenceSpec, paper_mix

DECODE = 16
"""Tokens that each sequence of a load of one shape produces."""
SHORT = 16
"""Tokens of a short prompt."""
AGENTS = 12
"""In a load of agents."""
_SHARE = 0.9
"""Of the cache that a load of one shape fills at most."""


def shapes(limits: Limits, room: int) -> Iterator[tuple[str, tuple[int, int, int]]]:
    """Yield loads of one shape: what for, and sequences, prompt and decode tokens.

    Parameters
    ----------
    room
        Tokens of prompt and output that one request may have.
    """
    capacity = int(limits.capacity_tokens * _SHARE)
    most = max(1, min(limits.max_num_seqs, capacity // (SHORT + DECODE)))
    for count in doubling(1, most):
        short = min(SHORT, max(1, room - DECODE))
        decode = min(DECODE, room - short)
        yield "decode", (count, short, decode)
        long = min(room, capacity // count) - DECODE
        if long > 2 * SHORT:
            yield "context", (count, long, DECODE)
    longest = min(room - 1, capacity)
    for tokens in doubling(SHORT, min(limits.max_num_batched_tokens, capacity)):
        count = -(-tokens // longest)
        yield "prompt", (count, max(1, tokens // count), 1)


def doubling(first: int, last: int) -> list[int]:
    """Return `first`, twice that, and so on, and `last`.

    >>> doubling(1, 10), doubling(16, 8)
    ([1, 2, 4, 8, 10], [8])
    """
    numbers, number = [], first
    while number < last:
        numbers.append(number)
        number *= 2
    return [*numbers, last]


def of_one_shape(count: int, prompt: int, decode: int) -> list[AgentSpec]:
    """Return agents of one inference each that are all alike."""
    alike = (InferenceSpec(prompt, decode),)
    return [AgentSpec(f"{number}", alike, arrival=0.0) for number in range(count)]


def of_agents(room: int, seed: int) -> Sequence[AgentSpec]:
    """Return agents of all classes that come at once, made to fit."""
    fitted = scaled_to(paper_mix(AGENTS, seed), room).agents
    return [replace(spec, arrival=0.0) for spec in fitted]
