"""SGLang's own server, started by `justitia serve`, and its clients."""

import asyncio
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

pytest.importorskip("sglang", reason="SGLang is not installed: see docs/sglang.md")

import httpx
import openai
from prometheus_client.parser import (
    text_string_to_metric_families as parsed,
)

from tests.engines.hostile import hostile
from tests.engines.servers import (
    KEY,
    MODEL,
    PATIENCE,
    Server,
    client,
    rests,
    with_client,
)
from tests.engines.sglang.servers import (
    JUSTITIA,
    SMALL,
    STOCK,
    held,
    process,
    server,
)

CAPACITY = 2048
QUEUE = 250
LINGER = 100
"""Iterations for which an agent without a request is remembered."""


@pytest.fixture(scope="module")
def served(model: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    command = (
        *JUSTITIA, f"--model={model}", "--", *SMALL, f"--api-key={KEY}",
        f"--max-total-tokens={CAPACITY}", "--enable-metrics",
        f"--max-queued-requests={QUEUE}",
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("served")
    with server(command, folder, JUSTITIA_LINGER=f"{LINGER / 100}") as one:
        yield one


_prompts = iter(range(10**9))


async def ask(
    client: openai.AsyncOpenAI,
    tokens: int = 8,
    **more: Any,
) -> Any:
    """Send a request of a prompt that no other shares."""
    claim = {field: more.pop(field) for field in CLAIM if field in more}
    extra = {"ignore_eos": True, **more.pop("extra_body", {})}
    if claim:
        extra["custom_params"] = {"justitia": claim}
    return await client.completions.create(
        model=MODEL,
        prompt=f"{next(_prompts):09} token of the agent",
        max_tokens=tokens,
        temperature=1,
        extra_body=extra,
        **more,
    )


async def there(served: Server, count: int) -> dict[str, Any]:
    """Return the state once that many requests wait or run."""
    return await asyncio.to_thread(
        served.until, lambda state: state["waiting"] + state["running"] == count
    )


CLAIM = ("agent", "cost", "kind", "weight", "stage", "inferences", "tokens")


# In force --------------------------------------------------------------------------


def test_the_server_says_that_the_policy_is_in_force(served: Server) -> None:
    assert "is in force: policy justitia, admission none" in served.log.read_text()
    state = served.state()
    assert (state["engine"], state["policy"]) == ("sglang", "justitia")
    assert state["capacity_tokens"] == CAPACITY


def test_the_state_is_in_server_info(served: Server) -> None:
    told = served.http.get("/server_info").raise_for_status().json()
    (rank,) = told["internal_states"]
    assert rank["justitia"] == served.state()
    assert rank["max_total_tokens"] == CAPACITY  # SGLang's own is there, too
    assert told["justitia"]["policy"] == "justitia"


def test_health_checks_are_no_agents(served: Server) -> None:
    before = rests(served)
    assert served.http.get("/health_generate").status_code == 200
    assert rests(served) == before


def test_agents_go_in_the_order_of_their_tags(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> list[str]:
        ended: list[str] = []

        async def one(agent: str, tokens: int, cost: int, count: int) -> None:
            await ask(client, tokens, agent=agent, cost=cost, inferences=count)
            ended.append(agent)

        async with asyncio.TaskGroup() as group, held(served):
            for _ in range(200):
                group.create_task(one("long", 100, 200 * 8_000, 200))
            await there(served, 200)
            for _ in range(2):
                group.create_task(one("short", 10, 2 * 500, 2))
            await there(served, 202)
        return ended

    ended = with_client(served, doing)
    last = max(place for place, agent in enumerate(ended) if agent == "short")
    # First come, first served, the last of the short agent would start after all of the
    # long one, and no more than 63 others run with it.
    assert ended[last + 1 :].count("long") >= 64
    rests(served)


def test_a_request_without_an_agent_is_served_beside_agents_b18(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(12):
                group.create_task(ask(client, 200, agent="big", cost=10**6))
            group.create_task(ask(client, 4))

    with_client(served, doing)
    rests(served)


def test_a_long_queue_keeps_no_health_check_waiting(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> list[int]:
        async with asyncio.TaskGroup() as group, held(served):
            for _ in range(200):
                group.create_task(ask(client, 60, agent="q"))
            await there(served, 200)
            codes = [
                (await asyncio.to_thread(served.http.get, path)).status_code
                for path in ("/health", "/health_generate")
            ]
            assert (await asyncio.to_thread(served.state))["waiting"] > 0
        return codes

    assert with_client(served, doing) == [200, 200]
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


def test_chat(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> str:
        answer = await client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Is 7 even?"}],
            max_tokens=10,
            extra_body={
                "ignore_eos": True,
                "custom_params": {"justitia": {"agent": "chat"}},
            },
        )
        return str(answer.choices[0].finish_reason)

    assert with_client(served, doing) == "length"
    assert delete(served, "chat").status_code == 200


def test_sglangs_own_endpoint(served: Server) -> None:
    body = {
        "text": "a",
        "sampling_params": {
            "max_new_tokens": 5,
            "ignore_eos": True,
            "custom_params": {"justitia": {"agent": "generate"}},
        },
    }
    answer = served.http.post("/generate", json=body)
    assert answer.json()["meta_info"]["completion_tokens"] == 5
    assert delete(served, "generate").status_code == 200


def test_four_choices_are_five_requests_of_one_agent(served: Server) -> None:
    """SGLang computes the prompt first, for all of them."""

    async def doing(client: openai.AsyncOpenAI) -> list[str]:
        answer = await ask(client, 12, agent="four", n=4, inferences=5)
        return [choice.finish_reason for choice in answer.choices]

    assert with_client(served, doing) == ["length"] * 4
    assert delete(served, "four").status_code == 404  # it ended with its fifth
    rests(served)


def test_a_session_is_an_agent(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> None:
        await ask(client, extra_body={"session_id": "a session"})
        await ask(client, extra_headers={"x-smg-routing-key": "a key"})

    with_client(served, doing)
    assert delete(served, "a session").status_code == 200
    assert delete(served, "a key").status_code == 200


@pytest.mark.parametrize("choices", [1, 4])
def test_clients_that_go_away_leave_nothing_b24(served: Server, choices: int) -> None:
    """While running, after the first token, and while waiting."""

    async def doing(client: openai.AsyncOpenAI) -> None:
        for _ in range(5):
            stream = await ask(client, 400, agent="gone", n=choices, stream=True)
            waiting = [
                asyncio.create_task(ask(client, 400, agent="gone", n=choices))
                for _ in range(8)
            ]
            async for _part in stream:
                break
            await stream.close()
            await asyncio.sleep(0)
            for one in waiting:
                one.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)

    with_client(served, doing)
    rests(served)


def test_a_thousand_cancelled_agents_leave_nothing_behind(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> None:
        for wave in range(1_000 // QUEUE):
            async with held(served):
                one_wave = [
                    asyncio.create_task(
                        ask(client, 400, agent=f"{wave}-{n}", cost=60_000, kind="gone")
                    )
                    for n in range(QUEUE)
                ]
                await there(served, QUEUE)
            for one in one_wave:
                one.cancel()
            await asyncio.gather(*one_wave, return_exceptions=True)
            await asyncio.to_thread(rests, served)

    with_client(served, doing)
    forget(served)


def forget(served: Server) -> None:
    """Have the agents of earlier tests forgotten: it takes iterations, no time."""
    with_client(served, lambda client: ask(client, LINGER + 10))
    served.wait(waiting=0, running=0, agents=0, agents_active=0)


def test_an_abort_is_of_one_request_b25(served: Server) -> None:
    """Of ids that clients chose; SGLang would end all that begin with that one."""

    async def doing(client: openai.AsyncOpenAI) -> list[str]:
        async def one(rid: str, tokens: int) -> str:
            answer = await ask(client, tokens, agent="chooser", extra_body={"rid": rid})
            return str(answer.choices[0].finish_reason)

        async with held(served):
            names = ("a10", "a11", "a1")
            tasks = [asyncio.create_task(one(rid, 480)) for rid in names]
            await there(served, 3)
            waiting = [asyncio.create_task(one(f"a1-{n}", 100)) for n in range(12)]
            state = await there(served, 15)
            assert state["waiting"] >= 4
            for rid in ("a1", ""):
                (
                    await asyncio.to_thread(
                        served.http.post, "/abort_request", json={"rid": rid}
                    )
                ).raise_for_status()
        return list(await asyncio.gather(*tasks, *waiting))

    assert with_client(served, doing) == ["length"] * 2 + ["abort"] + ["length"] * 12
    rests(served)


def test_one_without_an_id_can_be_dismissed_alone(served: Server) -> None:
    """An empty id is taken, and every id begins so: SGLang would end everybody's."""

    async def doing(client: openai.AsyncOpenAI) -> list[str]:
        async def one(agent: str, **more: Any) -> str:
            answer = await ask(client, 480, agent=agent, **more)
            return str(answer.choices[0].finish_reason)

        async with held(served):
            tasks = [
                asyncio.create_task(one("nameless", extra_body={"rid": ""})),
                asyncio.create_task(one("bystander")),
            ]
            await there(served, 2)
            gone = await asyncio.to_thread(delete, served, "nameless")
            assert gone.json() == {"id": "nameless", "aborted": 1}
        return list(await asyncio.gather(*tasks))

    assert with_client(served, doing) == ["abort", "length"]
    rests(served)


def test_a_full_queue_is_a_503(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> list[object]:
        async with held(served):
            many = [
                asyncio.create_task(ask(client, 50, agent="many"))
                for _ in range(QUEUE + 100)
            ]
            await asyncio.wait(many, return_when=asyncio.FIRST_EXCEPTION)
        return list(await asyncio.gather(*many, return_exceptions=True))

    answers = with_client(served, doing)
    refused = [one for one in answers if isinstance(one, BaseException)]
    assert {getattr(one, "status_code", one) for one in refused} == {503}
    assert len(refused) <= 100
    assert rests(served)["faults"]["claim"] == 0
    assert delete(served, "many").json()["aborted"] == 0


# What clients must not do -----------------------------------------------------------

HOSTILE = [
    *((f"{{{member}}}", field) for member, field in hostile()),
    ('{"cost": true}', "cost"),
    ('{"agnet": "a1"}', "unknown"),
    ('{"agent": {"__class__": "x"}}', "agent"),
    ("7", "claim"),
    ('"a1"', "claim"),
    ('["agent", "a1"]', "claim"),
]


def raw(served: Server, claim: str) -> httpx.Response:
    body = (
        f'{{"model": "{MODEL}", "prompt": "{next(_prompts)}", "max_tokens": 3, '
        f'"custom_params": {{"justitia": {claim}}}}}'
    )
    return served.http.post(
        "/v1/completions", content=body, headers={"Content-Type": "application/json"}
    )


@pytest.mark.parametrize(("claim", "field"), HOSTILE, ids=lambda value: value[:40])
def test_a_value_that_cannot_be_used_is_left_out_and_counted(
    served: Server, claim: str, field: str
) -> None:
    before = rests(served)["faults"]
    answer = raw(served, claim)
    assert answer.status_code == 200, answer.text
    after = rests(served)["faults"]
    assert {f: after[f] - before[f] for f in after if after[f] != before[f]} == {
        field: 1
    }


def test_what_cannot_be_used_is_in_the_log_that_a_user_sees(served: Server) -> None:
    """At SGLang's own level, with what is allowed, and not once a request."""
    for _ in range(20):
        assert raw(served, '{"weight": "heavy"}').status_code == 200
    rests(served)
    lines = [
        line
        for line in served.log.read_text().splitlines()
        if "a request goes on without what cannot be used of it: weight must be" in line
    ]
    assert lines
    assert "from 0.01 to 100" in lines[-1]
    assert len(lines) <= 2


@pytest.mark.parametrize(
    "claim",
    [
        '{"cost": NaN}',
        '{"cost": 1e400}',
        f'{{"cost": {10**30}}}',
        "[" * 500 + "]" * 500,
        "[" * 5_000 + "]" * 5_000,
        f'{{"agent": "{"x" * 5_000_000}"}}',
    ],
    ids=lambda value: value[:20],
)
def test_what_sglang_itself_may_refuse_does_no_harm(served: Server, claim: str) -> None:
    before = served.state()["faults"]
    assert raw(served, claim).status_code in (200, 400, 500)
    after = rests(served)["faults"]
    assert sum(after.values()) - sum(before.values()) <= 1
    assert raw(served, "{}").status_code == 200


@pytest.mark.parametrize("tokens", [None, 0, -1, 10**6, "absent"])
def test_any_number_of_tokens_is_served_or_refused_b29(
    served: Server, tokens: object
) -> None:
    body = {
        "model": MODEL,
        "prompt": "a",
        "custom_params": {"justitia": {"agent": "b29"}},
    }
    if tokens != "absent":
        body["max_tokens"] = tokens  # type: ignore[assignment]
    answer = served.http.post("/v1/completions", json=body)
    assert answer.status_code == (200 if tokens == "absent" else 400), answer.text
    rests(served)


def test_a_prompt_that_only_computes_is_served_b29(served: Server) -> None:
    body = {"text": "a b c", "sampling_params": {"max_new_tokens": 0}}
    assert served.http.post("/generate", json=body).status_code == 200
    rests(served)


def test_a_prompt_beyond_the_cache_is_refused_b21(served: Server) -> None:
    before = rests(served)
    for count in (CAPACITY + 1, 3_000, 10_000):
        body = {"model": MODEL, "prompt": [5] * count, "max_tokens": 3}
        assert served.http.post("/v1/completions", json=body).status_code == 400
    after = rests(served)
    assert after["virtual_time"] == before["virtual_time"]
    assert after["agents"] == before["agents"]


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
    assert delete(served, agent).json() == {"id": agent, "aborted": 0}
    assert delete(served, agent).status_code == 404


def test_a_dismissal_ends_the_requests_of_that_agent_only_b25(served: Server) -> None:
    async def doing(client: openai.AsyncOpenAI) -> dict[str, list[str]]:
        async def end(agent: str) -> str:
            answer = await ask(client, 480, agent=agent)
            return str(answer.choices[0].finish_reason)

        names = ("a10", "a11", "a1")
        async with held(served):
            ends = {
                agent: [asyncio.create_task(end(agent)) for _ in range(4)]
                for agent in names
            }
            await there(served, 12)
            assert (await asyncio.to_thread(delete, served, "")).status_code == 400
            gone = await asyncio.to_thread(delete, served, "a1")
            assert gone.json() == {"id": "a1", "aborted": 4}
        return {agent: list(await asyncio.gather(*ends[agent])) for agent in names}

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
        ('{"id": "x", "cost": 1, "priority": 9}', "priority"),
        (f'{{"id": "{"x" * 10_000}", "cost": 1}}', "id"),
        ("[]", None),
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
                one.patch(agent, json={"cost": 1}),
                one.delete(agent),
            ):
                assert answer.status_code in (401, 404)
                assert "policy" not in answer.text
    assert delete(served, "x").status_code == 404


# Metrics ------------------------------------------------------------------------------


def test_metrics_are_among_sglangs_own(served: Server) -> None:
    with_client(served, lambda client: ask(client, agent="secret id", kind="SC"))
    assert delete(served, "secret id").status_code == 200
    state = rests(served)
    text = ""
    while 'kind="SC"' not in text:  # what was asked for a second ago is good enough
        with client(served.url) as one:  # as SGLang has it, no key is needed here
            text = one.get("/metrics").raise_for_status().text
    assert "sglang:num_queue_reqs" in text
    assert "secret id" not in text
    families = {each.name: each for each in parsed(text)}
    ours = {n: each for n, each in families.items() if n.startswith("justitia_")}
    assert len(ours) == 14
    (info,) = ours["justitia_adapter_info"].samples
    assert info.labels["engine"] == "sglang"
    assert info.labels["policy"] == "justitia"
    faults = {
        sample.labels["field"]: sample.value
        for sample in ours["justitia_faults"].samples
    }
    assert faults == state["faults"]
    starts = sum(
        sample.value
        for name in ("slack", "lag")
        for sample in ours[f"justitia_start_{name}_token_steps"].samples
        if sample.name.endswith("_count")
    )
    assert starts > 0
    for name, family in ours.items():
        assert family.documentation
        assert "agent" not in {k for s in family.samples for k in s.labels}, name
    paths = {
        sample.labels.get("endpoint")
        for family in families.values()
        for sample in family.samples
    }
    assert "/justitia/agents/{id:path}" in paths  # SGLang counts calls by it
    assert not [path for path in paths if path and "secret" in path]


def test_openmetrics_and_a_slash_are_answered_too(served: Server) -> None:
    accept = {"Accept": "application/openmetrics-text; version=1.0.0"}
    told = served.http.get("/metrics", headers=accept)
    assert told.headers["content-type"].startswith("application/openmetrics-text")
    assert "justitia_adapter_info" in told.text
    assert told.text.endswith("# EOF\n")
    assert served.http.get("/metrics/").status_code == 200


# The end ------------------------------------------------------------------------------


def test_the_engine_is_alive_after_all_of_this(served: Server) -> None:
    forget(served)
    with_client(served, ask)
    assert "justitia/engines" not in served.log.read_text()  # in no traceback


def test_a_scheduler_that_dies_takes_the_server_with_it(served: Server) -> None:
    """The last of this server: SGLang ends all of its processes."""
    (scheduler,) = [
        pid for pid, name in group(served).items() if "sglang::scheduler" in name
    ]
    os.kill(scheduler, signal.SIGKILL)
    assert served.process.wait(PATIENCE) != 0
    for _ in range(PATIENCE * 10):
        if not group(served):
            break
        time.sleep(0.1)
    assert group(served) == {}
    assert "scheduler_0" in served.log.read_text()


def group(served: Server) -> dict[int, str]:
    """Return the commands of a server's processes, without those that have ended."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        pid = int(path.parent.name)
        with suppress(OSError):
            if os.getpgid(pid) == served.process.pid and (text := path.read_text()):
                found[pid] = text
    return found


def test_what_only_the_scheduler_can_refuse_is_said_and_ends_the_server(
    model: Path, tmp_path: Path
) -> None:
    command = (
        *STOCK, f"--model-path={model}", *SMALL, f"--max-total-tokens={CAPACITY}",
        "--schedule-policy=lof",
    )  # fmt: skip
    with process(command, tmp_path, {"JUSTITIA_POLICY": "justitia"}) as (started, log):
        assert started.wait(PATIENCE) != 0
    assert "--schedule-policy lof has no effect with a policy" in log.read_text()
