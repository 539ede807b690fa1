"""The real OpenAI server, started by `justitia serve`, and its clients."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: see docs/vllm.md")

import httpx
import openai
from prometheus_client.parser import (
    text_string_to_metric_families as parsed,
)

from tests.engines.hostile import hostile
from tests.engines.servers import KEY, MODEL, Server, client, rests, with_client
from tests.engines.vllm.servers import JUSTITIA, SMALL, held, server

NO_SPACES = (
    "--structured-outputs-config="
    '{"backend": "xgrammar", "disable_any_whitespace": true}'
)


@pytest.fixture(scope="module")
def served(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    command = (
        *JUSTITIA, f"--model={model}", "--", *SMALL, f"--api-key={KEY}", NO_SPACES
    )  # fmt: skip
    with server(
        command, tmp_path_factory.mktemp("served"), JUSTITIA_LINGER="10"
    ) as one:
        yield one


_prompts = iter(range(10**9))


async def ask(
    client: openai.AsyncOpenAI,
    tokens: int = 8,
    **more: Any,
) -> Any:
    """Send a request of a prompt that no other shares."""
    claim = {f"justitia_{k}": more.pop(k) for k in CLAIM if k in more}
    extra = {"ignore_eos": True, **more.pop("extra_body", {})}
    if claim:
        extra["vllm_xargs"] = claim
    return await client.completions.create(
        model=MODEL,
        prompt=f"{next(_prompts):09} token of the agent",
        max_tokens=tokens,
        temperature=1,
        extra_body=extra,
        **more,
    )


CLAIM = ("agent", "cost", "kind", "weight", "stage", "inferences", "tokens")


# In force --------------------------------------------------------------------------


def test_the_server_says_that_the_policy_is_in_force(served: Server) -> None:
    assert "is in force: policy justitia, admission none" in served.log.read_text()
    state = served.state()
    assert (state["engine"], state["policy"]) == ("vllm", "justitia")
    assert state["capacity_tokens"] == 63 * 32


def test_agents_go_in_the_order_of_their_tags(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> list[str]:
        ended: list[str] = []

        async def one(agent: str, tokens: int, cost: int, count: int) -> None:
            await ask(client, tokens, agent=agent, cost=cost, inferences=count)
            ended.append(agent)

        with held(served):
            long = [
                asyncio.create_task(one("long", 200, 120 * 24_000, 120))
                for _ in range(120)
            ]
            await asyncio.to_thread(served.wait, waiting=120)
            short = [
                asyncio.create_task(one("short", 10, 2 * 500, 2)) for _ in range(2)
            ]
            await asyncio.to_thread(served.wait, waiting=122)
        await asyncio.gather(*long, *short)
        return ended

    # First come, first served, they would be among the last.
    assert with_client(served, doing)[:2] == ["short", "short"]
    rests(served)


def test_a_request_without_an_agent_is_served_beside_agents_b18(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(12):
                group.create_task(ask(client, 200, agent="big", cost=10**6))
            group.create_task(ask(client, 4))

    with_client(served, doing)
    rests(served)


# What clients do --------------------------------------------------------------------


def test_streaming(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> int:
        stream = await ask(
            client, 20, agent="s", stream=True, stream_options={"include_usage": True}
        )
        return int([part.usage async for part in stream][-1].completion_tokens)

    assert with_client(served, doing) == 20
    rests(served)


def test_four_choices_are_four_requests_of_one_agent(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> list[str]:
        answer = await ask(client, 12, agent="four", n=4, inferences=4)
        return [choice.finish_reason for choice in answer.choices]

    assert with_client(served, doing) == ["length"] * 4
    assert delete(served, "four").status_code == 404  # it ended with its fourth
    rests(served)


def test_chat_with_structured_output(served: Server) -> None:
    schema = {
        "type": "object",
        "properties": {"answer": {"enum": ["yes", "no"]}},
        "required": ["answer"],
        "additionalProperties": False,
    }

    async def doing(client: openai.AsyncOpenAI) -> list[Any]:
        others = [ask(client, 100, agent="other") for _ in range(3)]
        chats = [
            client.chat.completions.create(
                model=MODEL,
                messages=[{"role": "user", "content": f"Is {number} even?"}],
                max_tokens=60,
                response_format={
                    "type": "json_schema",
                    "json_schema": {"name": "a", "schema": schema},
                },
                extra_body={"vllm_xargs": {"justitia_agent": "structured"}},
            )
            for number in range(3)
        ]
        return list(await asyncio.gather(*chats, *others))[:3]

    for answer in with_client(served, doing):
        told = json.loads(answer.choices[0].message.content)
        assert told["answer"] in ("yes", "no")
    rests(served)


def test_a_session_is_an_agent(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> None:
        await ask(client, extra_headers={"X-Session-ID": "a session"})
        await ask(client, extra_body={"session_id": "another"})

    with_client(served, doing)
    assert delete(served, "a session").status_code == 200
    assert delete(served, "another").status_code == 200


@pytest.mark.parametrize("choices", [1, 4])
def test_clients_that_go_away_leave_nothing_b24(served: Server, choices: int) -> None:
    """While running, after the first token, and while waiting."""

    async def doing(client: openai.AsyncOpenAI) -> None:
        for _ in range(10):
            streams = [
                await ask(client, 400, agent="gone", n=choices, stream=True)
                for _ in range(2)
            ]
            waiting = [
                asyncio.create_task(ask(client, 400, agent="gone", n=choices))
                for _ in range(8)
            ]
            async for _part in streams[0]:
                break
            for stream in streams:
                await stream.close()
            await asyncio.sleep(0)
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    with_client(served, doing)
    rests(served)


async def cancelled(tasks: list[asyncio.Task[Any]]) -> None:
    for one in tasks:
        one.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def test_a_thousand_cancelled_agents_leave_nothing_behind(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> None:
        for wave in range(10):
            with held(served):
                one_wave = [
                    asyncio.create_task(
                        ask(client, 400, agent=f"{wave}-{n}", cost=60_000, kind="gone")
                    )
                    for n in range(100)
                ]
                await asyncio.to_thread(served.wait, waiting=100)
                if wave % 2:  # they all wait
                    await cancelled(one_wave)
            if not wave % 2:  # some of them run
                await asyncio.to_thread(
                    served.until, lambda state: state["waiting"] < 100
                )
                await cancelled(one_wave)

    with_client(served, doing)
    state = served.wait(waiting=0, running=0, agents=0, agents_active=0)
    assert state["faults"] == served.state()["faults"]
    with_client(served, ask)


# What clients must not do -----------------------------------------------------------

HOSTILE = [
    *hostile("justitia_"),
    ('"justitia_cost": 1e400', "cost"),
    ('"justitia_agent": "q", "justitia_agnet": 1, "justitia_kost": 1', "unknown"),
    ('"justitia_cost": 5, "justitia_stage_costs": [5, 10]', "stage_costs"),
]


def raw(served: Server, xargs: str) -> httpx.Response:
    body = (
        f'{{"model": "{MODEL}", "prompt": "{next(_prompts)}", "max_tokens": 3, '
        f'"vllm_xargs": {{{xargs}}}}}'
    )
    return served.http.post(
        "/v1/completions", content=body, headers={"Content-Type": "application/json"}
    )


@pytest.mark.parametrize(("xargs", "field"), HOSTILE, ids=lambda value: value[:40])
def test_a_value_that_cannot_be_used_is_left_out_and_counted(
    served: Server, xargs: str, field: str
) -> None:
    before = rests(served)["faults"]
    answer = raw(served, xargs)
    assert answer.status_code == 200, answer.text
    after = rests(served)["faults"]
    assert {f: after[f] - before[f] for f in after if after[f] != before[f]} == {
        field: 1
    }


def test_the_servers_log_says_what_could_not_be_used(served: Server) -> None:
    assert raw(served, '"justitia_weight": 1e150').status_code == 200
    rests(served)
    lines = [
        line
        for line in served.log.read_text().splitlines()
        if "goes on without what cannot be used of it: weight must be" in line
    ]
    assert lines  # once a minute: of this weight, or of one that was wrong before
    assert "WARNING" in lines[0]
    assert "complaints.py" in lines[0]  # in vLLM's own form


def test_an_agent_of_a_number_is_that_of_its_text(served: Server) -> None:
    assert raw(served, '"justitia_agent": 7').status_code == 200
    assert served.http.get("/justitia/agents/7").json()["cost"] is None
    assert delete(served, "7").status_code == 200


@pytest.mark.parametrize(
    "xargs",
    ['"justitia_cost": NaN', '"justitia_agent": {}', f'"justitia_cost": {10**30}'],
)
def test_what_vllm_itself_refuses_never_reaches_the_engine(
    served: Server, xargs: str
) -> None:
    before = served.state()["faults"]
    assert raw(served, xargs).status_code in (200, 400, 422)
    after = rests(served)["faults"]
    assert sum(after.values()) - sum(before.values()) <= 1


@pytest.mark.parametrize("tokens", [None, 0, -1, 10**6, "absent"])
def test_any_number_of_tokens_is_served_or_refused_b29(
    served: Server, tokens: object
) -> None:
    body = {"model": MODEL, "prompt": "a", "vllm_xargs": {"justitia_agent": "b29"}}
    if tokens != "absent":
        body["max_tokens"] = tokens  # type: ignore[assignment]
    answer = served.http.post("/v1/completions", json=body)
    assert answer.status_code in (200, 400), answer.text
    if tokens == -1:
        assert answer.status_code == 400
    rests(served)


# Agents that are announced ------------------------------------------------------------


def post(served: Server, **given: object) -> httpx.Response:
    return served.http.post("/justitia/agents", json=given)


def delete(served: Server, agent: str) -> httpx.Response:
    return served.http.delete(f"/justitia/agents/{quote(agent, safe='')}")


@pytest.mark.parametrize(
    "agent", ["plain", "a/b//c", "ä ü", "?#&%2F", "日本語", "../x"]
)
def test_an_agent_is_announced_and_dismissed(served: Server, agent: str) -> None:
    told = post(served, id=agent, cost=100, kind="MRS", weight=2, inferences=3)
    assert told.status_code == 201, told.text
    tag = told.json()["tag"]
    assert told.json()["id"] == agent
    assert post(served, id=agent, cost=100).status_code == 409
    path = f"/justitia/agents/{quote(agent, safe='')}"
    revised = served.http.patch(path, json={"cost": 200})
    assert revised.json()["tag"] == tag + 50
    told = served.http.get(path)
    assert told.json() == {
        "id": agent, "kind": "MRS", "weight": 2, "cost": 200, "tag": tag + 50,
        "waiting": 0, "running": 0, "delivered": 0, "active": True,
    }  # fmt: skip
    assert delete(served, agent).json() == {"id": agent, "aborted": 0}
    assert delete(served, agent).status_code == 404


def test_a_dismissal_ends_the_requests_of_that_agent_only_b25(served: Server) -> None:
    async def end(client: openai.AsyncOpenAI, agent: str) -> str:
        answer = await ask(client, 480, agent=agent)
        return str(answer.choices[0].finish_reason)

    async def doing(client: openai.AsyncOpenAI) -> dict[str, list[str]]:
        names = ("a10", "a11", "a1")
        with held(served):
            ends = [
                asyncio.gather(*(end(client, agent) for _ in range(4)))
                for agent in names
            ]
            await asyncio.to_thread(served.wait, waiting=12)
            assert (await asyncio.to_thread(delete, served, "")).status_code == 400
            gone = await asyncio.to_thread(delete, served, "a1")
            assert gone.json() == {"id": "a1", "aborted": 4}
        return dict(zip(names, await asyncio.gather(*ends), strict=True))

    ends = with_client(served, doing)
    assert ends == {"a1": ["abort"] * 4, "a10": ["length"] * 4, "a11": ["length"] * 4}
    rests(served)


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ('{"id": "x"}', "cost"),
        ('{"cost": 1}', "id"),
        ('{"id": "x", "cost": NaN}', "cost"),
        ('{"id": "x", "cost": 1e400}', "cost"),
        ('{"id": "x", "cost": 1, "weight": 0}', "weight"),
        ('{"id": "x", "cost": 1, "stage_costs": [0]}', "stage_costs"),
        ('{"id": "x", "cost": 1, "priority": 9}', "priority"),
        (f'{{"id": "{"x" * 10_000}", "cost": 1}}', "id"),
        ("[]", None),
        ("{", None),
        ("[" * 100_000, None),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_cannot_be_announced_is_refused(
    served: Server, body: str, field: str | None
) -> None:
    answer = served.http.post("/justitia/agents", content=body)
    assert answer.status_code == 400
    error = answer.json()["error"]
    assert (error["param"], error["code"]) == (field, 400)
    assert error["message"]


def test_a_server_with_a_key_shows_nothing_without_it(served: Server) -> None:
    agent = "/justitia/agents/x"
    for key in (None, "wrong"):
        with client(served.url, key) as one:
            for answer in (
                one.get("/justitia/state"),
                one.get("/justitia/metrics"),
                one.get("//justitia/state"),
                one.post("/justitia/agents", json={"id": "x", "cost": 1}),
                one.get(agent),
                one.patch(agent, json={"cost": 1}),
                one.delete(agent),
            ):
                assert answer.status_code in (401, 404)
                assert "policy" not in answer.text
    assert delete(served, "x").status_code == 404


# Metrics ------------------------------------------------------------------------------


def test_metrics_are_among_vllms_own(served: Server) -> None:
    with_client(served, lambda client: ask(client, agent="secret id", kind="SC"))
    assert delete(served, "secret id").status_code == 200
    state = rests(served)
    text = ""
    while 'kind="SC"' not in text:  # what was asked for a second ago is good enough
        with client(served.url) as one:  # as vLLM has it, no key is needed here
            text = one.get("/metrics").raise_for_status().text
    assert "vllm:num_requests_running" in text
    assert "secret id" not in text
    families = {each.name: each for each in parsed(text) if "justitia" in each.name}
    assert len(families) == 14
    (info,) = families["justitia_adapter_info"].samples
    assert info.labels["engine"] == "vllm"
    assert info.labels["engine_version"] == state["engine_version"]
    assert info.labels["policy"] == "justitia"
    faults = {
        sample.labels["field"]: sample.value
        for sample in families["justitia_faults"].samples
    }
    assert faults == state["faults"]
    starts = sum(
        sample.value
        for name in ("slack", "lag")
        for sample in families[f"justitia_start_{name}_token_steps"].samples
        if sample.name.endswith("_count")
    )
    assert starts > 0
    for name, family in families.items():
        assert family.documentation
        assert "agent" not in {k for s in family.samples for k in s.labels}, name


def test_the_engine_is_alive_after_all_of_this(served: Server) -> None:
    state = served.wait(waiting=0, running=0, agents=0)
    assert state["agents_active"] == 0
    with_client(served, ask)
    # The front end logs a request that it refuses with one, in development mode.
    lines = served.log.read_text().splitlines()
    assert [one for one in lines if "EngineCore" in one and "Traceback" in one] == []
