"""Servers without the policy in them, what they do by themselves, and by priorities."""

import asyncio
import gc
from collections.abc import AsyncIterator, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("sglang", reason="SGLang is not installed: see docs/sglang.md")

import httpx

from justitia.engines.serving.priorities import SGLANG, Priorities
from justitia.engines.serving.probe import PriorityIgnored, probe
from tests.engines.servers import MODEL, PATIENCE, Server
from tests.engines.sglang.experiment import (
    AGENTS,
    CAPACITY,
    FAIR,
    FCFS,
    completed,
    cost,
    order,
    place,
)
from tests.engines.sglang.servers import JUSTITIA, SMALL, STOCK, held, server

PRIORITIES = (
    "--enable-priority-scheduling",
    "--schedule-low-priority-values-first",
    "--disable-priority-preemption",
)
_SMALLER = f"--max-total-tokens={CAPACITY}"


@pytest.fixture(autouse=True)
def _collected() -> Iterator[None]:
    """Let what a test's sockets warn of when they are collected be of that test."""
    yield
    gc.collect()


@pytest.fixture(scope="module")
def plain(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    command = (*STOCK, f"--model-path={model}", *SMALL, _SMALLER)
    with server(command, tmp_path_factory.mktemp("plain")) as one:
        yield one


@pytest.fixture(scope="module")
def prioritised(
    model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Server]:
    command = (*STOCK, f"--model-path={model}", *SMALL, _SMALLER, *PRIORITIES)
    with server(command, tmp_path_factory.mktemp("priority")) as one:
        yield one


@pytest.fixture(scope="module")
def governed(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    command = (*JUSTITIA, f"--model={model}", "--", *SMALL, _SMALLER)
    with server(command, tmp_path_factory.mktemp("governed")) as one:
        yield one


# The same agents, on each ------------------------------------------------------------


async def there(server: Server, count: int) -> None:
    """Return once that many requests are in the scheduler, waiting or running."""
    for _ in range(PATIENCE * 10):
        answer = await asyncio.to_thread(server.http.get, "/v1/loads")
        (load,) = answer.raise_for_status().json()["loads"]
        if load["num_waiting_reqs"] + load["num_running_reqs"] == count:
            return
        await asyncio.sleep(0.1)
    raise AssertionError(f"not {count} in {load}")


def experiment(server: Server, said: dict[str, dict[str, Any]]) -> list[str]:
    """Return whose the requests were, as they completed; `said` is by agent."""

    async def run() -> list[str]:
        async with httpx.AsyncClient(
            base_url=server.url, timeout=PATIENCE, trust_env=False
        ) as client:

            async def send(
                agent: str, prompt: list[int], tokens: int
            ) -> AsyncIterator[str]:
                body = {
                    "model": MODEL,
                    "prompt": prompt,
                    "max_tokens": tokens,
                    "ignore_eos": True,
                    "stream": True,
                    **said.get(agent, {}),
                }
                async with client.stream("POST", "/v1/completions", json=body) as one:
                    assert one.status_code == 200, await one.aread()
                    async for line in one.aiter_lines():
                        yield line

            sent = iter(accumulate(count for count, _ in AGENTS.values()))
            return await completed(
                send, lambda: there(server, next(sent)), held(server)
            )

    return asyncio.run(run())


@pytest.fixture(scope="module")
def first_come(plain: Server) -> list[str]:
    return experiment(plain, {})


def test_sglang_alone_is_first_come_first_served(first_come: list[str]) -> None:
    assert order(first_come) == FCFS


def test_with_the_policy_small_agents_are_sooner(
    governed: Server, first_come: list[str]
) -> None:
    said = {
        agent: {"custom_params": {"justitia": {"agent": agent, "cost": cost(agent)}}}
        for agent in FCFS
    }
    ended = experiment(governed, said)
    assert order(ended) == FAIR
    for agent in ("B", "C"):
        assert place(ended, agent) < place(first_come, agent)
    assert governed.wait(waiting=0, running=0)["faults"]["claim"] == 0


def test_with_priorities_small_agents_are_sooner_b15(
    prioritised: Server, first_come: list[str]
) -> None:
    priorities = Priorities(SGLANG)
    said = {agent: {"priority": priorities.give(cost(agent))} for agent in FCFS}
    ended = experiment(prioritised, said)
    assert order(ended) == FAIR
    for agent in ("B", "C"):
        assert place(ended, agent) < place(first_come, agent)


# Whether a server honours priorities -------------------------------------------------


def test_a_server_with_priorities_passes(prioritised: Server) -> None:
    asyncio.run(probe(f"{prioritised.url}/v1"))


@pytest.mark.parametrize("which", ["plain", "governed"])
def test_a_server_that_ignores_priorities_is_refused_b17(
    which: str, request: pytest.FixtureRequest
) -> None:
    one: Server = request.getfixturevalue(which)
    with pytest.raises(PriorityIgnored, match="--enable-priority-scheduling"):
        asyncio.run(probe(f"{one.url}/v1"))


def test_the_whole_range_is_taken_and_no_more_b16(prioritised: Server) -> None:
    for priority, well in (
        (SGLANG.least, True),
        (SGLANG.most, True),
        (SGLANG.least - 1, False),
        (SGLANG.most + 1, False),
        (130.5, False),
        ("130", None),
    ):
        body = {
            "model": MODEL, "prompt": "a", "max_tokens": 1, "priority": priority
        }  # fmt: skip
        answer = prioritised.http.post("/v1/completions", json=body)
        if well is not None:
            assert (answer.status_code == 200) == well, answer.text
        assert answer.status_code in (200, 400)


def test_requests_start_in_the_order_of_their_tags_b16(prioritised: Server) -> None:
    priorities = Priorities(SGLANG)
    tags = [130.7, 2**63 + 1, 130.2, 2_304_128_000, 2**63]
    ended: list[float] = []

    async def one(
        client: httpx.AsyncClient, tag: float, begun: asyncio.Event | None = None
    ) -> None:
        body = {
            "model": MODEL,
            "prompt": f"{tag} is the tag",
            "max_tokens": 400,
            "ignore_eos": True,
            "stream": True,
            "priority": priorities.give(tag),
        }
        async with client.stream("POST", "/v1/completions", json=body) as answer:
            assert answer.status_code == 200, await answer.aread()
            async for _ in answer.aiter_lines():
                if begun is not None:
                    begun.set()
        ended.append(tag)

    async def run() -> None:
        async with httpx.AsyncClient(
            base_url=prioritised.url, timeout=PATIENCE, trust_env=False
        ) as client:
            begun = asyncio.Event()
            async with asyncio.TaskGroup() as group, held(prioritised):
                # It leaves no room for another of its size.
                group.create_task(one(client, 1, begun))
                await begun.wait()
                for tag in tags:
                    group.create_task(one(client, tag))
                await there(prioritised, 1 + len(tags))

    asyncio.run(run())
    assert ended == [1, *sorted(tags)]
