"""Three agents on a cache that holds three of the requests of the first.

A comes first and has the most to do, then B, then C. First come, first served, they
complete in that order; in the order of their tags, the other way round.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager

from justitia.engines.serving.prompts import made_up
from justitia.policy import KVTokenTime

CAPACITY = 512
PROMPT = 40
AGENTS: Mapping[str, tuple[int, int]] = {"A": (6, 120), "B": (5, 60), "C": (3, 20)}
"""Requests of each, and the tokens that each of those produces."""
FCFS = ["A", "B", "C"]
FAIR = ["C", "B", "A"]

Together = AbstractAsyncContextManager[None]
Send = Callable[[str, list[int], int], AsyncIterator[object]]
"""Sends a request of an agent, with a prompt and how many tokens it produces; yields
something for each part of the answer."""


def cost(agent: str) -> int:
    """Return what an agent costs, in KV token-time."""
    count, tokens = AGENTS[agent]
    return count * int(KVTokenTime()(PROMPT, tokens))


async def completed(
    send: Send, pause: Callable[[], Awaitable[None]], together: Together
) -> list[str]:
    """Return whose the requests were, in the order in which they completed.

    Parameters
    ----------
    pause
        Waits until the engine has what was sent.
    together
        Within it the engine is held, so that none of A has ended when C comes, however
        slow this process is.
    """
    ended: list[str] = []
    numbers = iter(range(10**6))

    async def one(agent: str, tokens: int) -> None:
        prompt = made_up(next(numbers), PROMPT, 512)
        async for _ in send(agent, prompt, tokens):
            pass
        ended.append(agent)

    async with asyncio.TaskGroup() as group, together:
        for agent, (count, tokens) in AGENTS.items():
            for _ in range(count):
                group.create_task(one(agent, tokens))
            await pause()
    return ended


def order(ended: list[str]) -> list[str]:
    """Return the agents in the order in which the last request of each completed."""
    return sorted(AGENTS, key=lambda agent: place(ended, agent))


def place(ended: list[str], agent: str) -> int:
    """Return how many tokens the requests had that had completed when an agent had."""
    last = len(ended) - ended[::-1].index(agent)
    return sum(AGENTS[one][1] for one in ended[:last])
