"""Loads that tell the parts of a step's time from each other.

Few and many sequences with short and long contexts, short and long prompts, and agents
as they come in workloads. All within what the engine has room for.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from justitia.engines.scaling import scaled_to
from justitia.engines.scenario import BASE_LOAD, window
from justitia.engines.serving.backend import Limits
from justitia.engines.sim.preset import Preset
from justitia.workloads import AgentSpec, InferenceSpec, paper_mix, poisson

DECODE = 16
"""Tokens that each sequence of a load of one shape produces."""
SHORT = 16
"""Tokens of a short prompt."""
AGENTS = 20
"""In a load of agents."""
DENSITY = 2
"""Of their arrivals, where it is known how fast the engine is."""
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


def of_agents(room: int, seed: int, guess: Preset | None) -> Sequence[AgentSpec]:
    """Return agents of all classes, made to fit, that come as those of a workload do.

    So what it takes to let a request in is part of steps as it is there. Without a
    guess of how fast the engine is they come at once.
    """
    fitted = scaled_to(paper_mix(AGENTS, seed), room).agents
    if guess is None:
        return [replace(spec, arrival=0.0) for spec in fitted]
    seconds = window(guess, fitted, BASE_LOAD * DENSITY)
    times = poisson(len(fitted), seconds, seed)
    return [replace(s, arrival=time) for s, time in zip(fitted, times, strict=True)]
