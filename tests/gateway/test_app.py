"""The gateway over HTTP, in front of an engine that does what a test says."""

import asyncio
import json
from typing import Any

import openai
import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from tests.gateway.fault_server import Faults
from tests.gateway.live import gateway, request, run

# What clients get ---------------------------------------------------------------------


@pytest.mark.parametrize("chat", [True, False])
def test_an_answer_comes_through_as_the_engine_sent_it_b51(chat: bool) -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            answer = await live.post(chat, max_tokens=3, n=2)
            assert answer.status_code == 200
            assert [c["index"] for c in answer.json()["choices"]] == [0, 1]
            assert answer.headers["content-type"] == "application/json"
            assert "set-cookie" not in answer.headers
            sent = json.dumps(request(chat, max_tokens=3, n=2))
            assert json.loads(faults.raw[0]) == json.loads(sent)
            await live.rests()

    run(doing())


STREAMS = [
    "", "cut:1", "cut:3", "crlf", "crlf cut:1", "endless", "endless cut:2", "nousage",
    "nulls", "tools", "tools crlf cut:5",
]  # fmt: skip


@pytest.mark.parametrize("user", STREAMS)
@pytest.mark.parametrize("chat", [True, False])
def test_a_stream_is_passed_on_byte_for_byte_b42_b51(chat: bool, user: str) -> None:
    if "tools" in user and not chat:
        pytest.skip("completions have no tools")

    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            answer = await live.post(
                chat, stream=True, user=user, max_tokens=5,
                stream_options={"include_usage": True},
            )  # fmt: skip
            assert answer.content == faults.sent[0]
            assert answer.headers["content-type"].startswith("text/event-stream")
            await live.rests()
            told = live.dispatcher.agents
            assert not told.requests

    run(doing())


@pytest.mark.parametrize("user", STREAMS)
def test_usage_that_was_not_asked_for_is_left_out_b43(user: str) -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            answer = await live.post(True, stream=True, user=user, max_tokens=5)
            assert faults.bodies[0]["stream_options"] == {"include_usage": True}
            ends = "\r\n" if "crlf" in user else "\n"
            events = faults.sent[0].decode().split(ends * 2)
            kept = [event for event in events if '"usage": {' not in event]
            assert len(kept) == len(events) - ("nousage" not in user)
            assert answer.content.decode() == (ends * 2).join(kept)
            await live.rests()

    run(doing())


def test_the_official_client_streams_with_and_without_usage_b43() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live, live.client() as client:
            for asked in (True, False):
                options: Any = {"include_usage": True} if asked else openai.omit
                stream = await client.chat.completions.create(
                    model="m",
                    messages=[{"role": "user", "content": "x"}],
                    stream=True,
                    max_tokens=4,
                    stream_options=options,
                )
                parts = [part async for part in stream]
                told = [part for part in parts if part.usage is not None]
                assert len(told) == asked
                assert all(part.choices == [] for part in told)
                text = "".join(
                    part.choices[0].delta.content or ""
                    for part in parts
                    if part.choices
                )
                assert text == "né 中文 🙂\\n"

    run(doing())


def test_what_is_counted_is_what_the_engine_says_or_what_was_seen_b43() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:
            model = live.dispatcher.agents.policy.cost_model
            # Thought to be of 35 tokens, and 5; the engine says 7 where it says it.
            for user, text, prompt in (("nousage", "x" * 100, 35), ("", "", 7)):
                before = live.dispatcher.delivered
                messages = [{"role": "user", "content": text}]
                await live.post(
                    True, stream=True, user=user, max_tokens=6, messages=messages
                )
                work = live.dispatcher.delivered - before
                assert work == model.delivered(prompt, 6, 6), user

    run(doing())


def test_errors_of_the_engine_come_through() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live, live.client() as client:
            with pytest.raises(openai.BadRequestError, match="told to"):
                await client.completions.create(model="m", prompt="", user="status:400")
            with pytest.raises(openai.RateLimitError):
                await client.completions.create(model="m", prompt="", user="status:429")
            await live.rests()

    run(doing())


@pytest.mark.parametrize(
    ("body", "status", "param"),
    [
        (b"", 400, None),
        (b"[1]", 400, None),
        (b"{", 400, None),
        (b"\xff", 400, None),
        (b'{"a": NaN}', 400, None),
        (b"[" * 100_000, 400, None),
        (b'{"x": ' + b"9" * 5000 + b"}", 400, None),
        (b"{}", 400, "prompt"),
        (b'{"prompt": 1}', 400, "prompt"),
        (b'{"prompt": []}', 400, "prompt"),
        (b'{"prompt": "a", "max_tokens": -1}', 400, "max_tokens"),
        (b'{"prompt": "a", "max_tokens": 1e99}', 400, "max_tokens"),
        (b'{"prompt": "a", "n": 0}', 400, "n"),
        (b'{"prompt": "a", "n": 1000}', 400, "n"),
        (b'{"prompt": ["a"], "n": true}', 400, "n"),
        (b'{"prompt": "a", "stream": 1}', 400, "stream"),
        (b'{"prompt": "a", "model": 1}', 400, "model"),
        (b'{"prompt": "a", "model": "unknown"}', 404, "model"),
        (b'{"prompt": "a", "justitia": 1}', 400, "justitia"),
        (b'{"prompt": "a", "justitia": {"cost": -1}}', 400, "justitia.cost"),
        (b'{"prompt": "a", "stream": true, "temperature": 1e400}', 400, None),
    ],
)
def test_what_cannot_be_served_is_refused_in_openais_form(
    body: bytes, status: int, param: str | None
) -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            answer = await live.http.post("/v1/completions", content=body)
            error = answer.json()["error"]
            assert (answer.status_code, error["param"]) == (status, param)
            assert set(error) == {"message", "type", "param", "code"}
            assert not faults.bodies
            await live.rests()

    run(doing())


def test_a_body_that_is_too_large_is_refused_and_not_kept() -> None:
    async def doing() -> None:
        async with gateway(Faults(), limits={"body_bytes": 1000}) as live:
            answer = await live.post(prompt="x" * 2000)
            assert answer.status_code == 413
            assert (await live.post(prompt="x")).status_code == 200

    run(doing())


def test_models_are_those_of_the_engines() -> None:
    async def doing() -> None:
        async with gateway(Faults(), Faults(models=("k/1", "m"))) as live:
            await live.until(lambda: all(e.up for e in live.dispatcher.fleet))
            async with live.client() as client:
                assert {m.id async for m in client.models.list()} == {"m", "k/1"}
            assert (await live.http.get("/v1/models/k/1")).json()["id"] == "k/1"
            assert (await live.http.get("/v1/models/x")).status_code == 404
            assert (await live.http.get("/v1/completions")).status_code == 405
            assert (await live.http.get("/nowhere")).status_code == 404

    run(doing())


# Order ------------------------------------------------------------------------------


def test_agents_go_in_the_order_of_their_tags() -> None:
    async def doing() -> None:
        faults = Faults()
        async with (
            gateway(faults, engine={"slots": 1}) as live,
            live.client() as client,
        ):
            ended: list[str] = []

            async def one(agent: str, **told: Any) -> None:
                await client.completions.create(
                    model="m", prompt="x", max_tokens=5, user="hold",
                    extra_body={"justitia": {"agent": agent, **told}},
                )  # fmt: skip
                ended.append(agent)

            tasks = [asyncio.create_task(one("first", cost=10))]
            await live.until(lambda: faults.running == 1)
            tasks += [asyncio.create_task(one("big", cost=10**6)) for _ in range(5)]
            await live.until(lambda: live.dispatcher.waiting == 5)
            tasks += [asyncio.create_task(one("small", cost=50)) for _ in range(2)]
            await live.until(lambda: live.dispatcher.waiting == 7)
            faults.release.set()
            await asyncio.gather(*tasks)
            assert ended == ["first", "small", "small", *["big"] * 5]
            assert faults.most_running == 1
            assert all("justitia" not in body for body in faults.bodies)
            await live.rests()

    run(doing())


def test_admission_is_by_predicted_kv() -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults, engine={"capacity": 100}) as live:
            tasks = [
                asyncio.create_task(
                    live.post(prompt=[1] * 30, max_tokens=20, user="hold")
                )
                for _ in range(5)
            ]
            await live.until(lambda: live.dispatcher.waiting == 3)
            await asyncio.sleep(0.05)
            assert faults.running == 2
            faults.release.set()
            answers = await asyncio.gather(*tasks)
            assert [answer.status_code for answer in answers] == [200] * 5
            assert faults.most_running == 2
            await live.rests()

    run(doing())


@pytest.mark.parametrize("owner", ["vllm", "sglang"])
def test_an_engine_that_keeps_the_order_is_told_priorities(owner: str) -> None:
    async def doing() -> None:
        faults = Faults(owner=owner)
        engine = {"kind": owner, "slots": 1}
        async with gateway(faults, engine=engine, dispatch="engine") as live:
            tasks = []
            for cost in (500, 100, 300):
                told = {"agent": str(cost), "cost": cost}
                tasks.append(asyncio.create_task(live.post(user="hold", justitia=told)))
                await live.until(lambda: faults.running == len(tasks))
            faults.release.set()
            await asyncio.gather(*tasks)
            big, small, middle = (body["priority"] for body in faults.bodies)
            assert small < middle < big
            await live.rests()

    run(doing())


@pytest.mark.parametrize("owner", ["vllm", "sglang"])
def test_a_scheduler_of_ours_in_the_engine_is_told_what_the_client_said(
    owner: str,
) -> None:
    async def doing() -> None:
        faults = Faults(owner=owner)
        engine = {"kind": owner, "orders": "justitia"}
        async with gateway(faults, engine=engine, dispatch="engine") as live:
            told = {"agent": "a", "cost": 500, "kind": "K", "stage_costs": [200, 300]}
            await live.post(justitia=told, max_tokens=5)
            (body,) = faults.bodies
            if owner == "sglang":
                said = body["custom_params"]["justitia"]
            else:
                said = {
                    k.removeprefix("justitia_"): v
                    for k, v in body["vllm_xargs"].items()
                }
            assert {k: said[k] for k in told} == told
            assert "priority" not in body

    run(doing())


# Agents -----------------------------------------------------------------------------


def test_an_agent_is_announced_looked_at_and_ended() -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults, engine={"slots": 1}) as live:
            announced = await live.http.post(
                "/v1/agents", json={"id": "a/ b", "cost": 1000, "kind": "K"}
            )
            assert announced.status_code == 201
            told = announced.json()
            assert (told["id"], told["cost"], told["tag"]) == ("a/ b", 1000, 1000)
            assert told["reference_finish"]["work"] == 1000
            assert told["promised_finish"]["work"] >= 1000
            again = await live.http.post("/v1/agents", json={"id": "a/ b", "cost": 1})
            assert (again.status_code, again.json()["error"]["code"]) == (
                409, "agent_exists"
            )  # fmt: skip
            other = (await live.http.post("/v1/agents", json={"cost": 500})).json()
            assert other["reference_finish"]["work"] == 1000  # half of 500 each, twice
            running = asyncio.create_task(
                live.post(user="hold", justitia={"agent": "a/ b"})
            )
            await live.until(lambda: faults.running == 1)
            waiting = asyncio.create_task(live.post(justitia={"agent": "a/ b"}))
            await live.until(lambda: live.dispatcher.waiting == 1)
            path = "/v1/agents/a%2F%20b"
            seen = (await live.http.get(path)).json()
            assert (seen["waiting"], seen["running"]) == (1, 1)
            gone = (await live.http.delete(path)).json()
            assert gone["cancelled"] == 2
            for one in (running, waiting):
                answer = await one
                assert answer.status_code == 499
                assert answer.json()["error"]["code"] == "agent_cancelled"
            assert (await live.http.get(path)).status_code == 404
            assert (await live.http.delete(path)).status_code == 404
            await live.until(lambda: faults.running == 0)
            await live.rests()

    run(doing())


def test_prompts_are_predicted() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:
            given = {"prompts": [["word " * 100] * 3, ["x"]], "max_tokens": 10}
            told = (await live.http.post("/v1/agents", json=given)).json()
            assert 3 * 10 * 100 < told["cost"] < 3 * 10 * 400

    run(doing())


def test_what_an_announcement_may_say_is_told_whole() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:
            for given in ({"cost": 1, "unknown": 2}, {"id": "a"}):
                answer = await live.http.post("/v1/agents", json=given)
                assert "prompts" in answer.json()["error"]["message"]

    run(doing())


def test_a_promise_is_of_what_an_engine_may_produce_not_of_what_clients_say() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:

            async def promised(name: str) -> float:
                given = {"id": name, "cost": 1000}
                told = (await live.http.post("/v1/agents", json=given)).json()
                ahead = told["reference_finish"]["work"]
                return float(told["promised_finish"]["work"] - ahead)

            # Nobody has asked for anything: as many as are thought of a request.
            assert await promised("first") == 10_000 * 256
            await live.post(model="nobody's", max_tokens=10**6)
            assert await promised("second") == 10_000 * 256
            # The engine's context is 4,096 tokens.
            await live.post(max_tokens=10**6)
            assert await promised("third") == 10_000 * 4096

    run(doing())


@pytest.mark.parametrize(
    "given",
    [
        {"id": ""},
        {"id": "a\nb", "cost": 1},
        {"id": "x" * 300, "cost": 1},
        {"cost": -1},
        {"cost": 1, "prompts": ["a"]},
        {"prompts": [1]},
        {"prompts": []},
        {"prompts": "a"},
        {"prompts": ["a"], "max_tokens": 0},
        {"cost": 1, "unknown": 2},
        {},
    ],
)
def test_agents_that_cannot_be_are_refused(given: dict[str, Any]) -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:
            answer = await live.http.post("/v1/agents", json=given)
            assert answer.status_code == 400
            assert answer.json()["error"]["type"] == "invalid_request_error"
            assert len(live.dispatcher.agents) == 0

    run(doing())


# Health -----------------------------------------------------------------------------


def test_health_readiness_and_metrics() -> None:
    async def doing() -> None:
        faults = Faults(well=False)
        limits = {"health_seconds": 0.05}
        async with gateway(faults, ready=False, limits=limits) as live:
            assert (await live.http.get("/healthz")).status_code == 200
            assert (await live.http.get("/readyz")).status_code == 503
            faults.well = True
            await live.until(lambda: live.dispatcher.fleet.engines[0].up)
            assert (await live.http.get("/readyz")).json()["ready"] is True
            await live.post(justitia={"agent": "CANARY-ID", "kind": "K"})
            text = (await live.http.get("/metrics")).text
            assert 'code="",endpoint="completions",status="200"' in text
            assert "justitia_virtual_time_token_steps" in text
            assert "CANARY-ID" not in text
            faults.well = False
            await live.until(lambda: not live.dispatcher.fleet.engines[0].up)
            assert (await live.http.get("/readyz")).status_code == 503

    run(doing())


def test_the_capacity_is_read_from_vllms_metrics() -> None:
    async def doing() -> None:
        info = 'vllm:cache_config_info{block_size="16",num_gpu_blocks="65"} 1.0\n'
        faults = Faults(
            owner="vllm", metrics=f"# TYPE vllm:cache_config_info gauge\n{info}"
        )
        async with gateway(faults, engine={"capacity": "auto"}) as live:
            assert live.dispatcher.fleet.engines[0].capacity == 64 * 16

    run(doing())


def test_an_engine_of_unknown_size_is_not_used() -> None:
    async def doing() -> None:
        faults = Faults()
        limits = {"queue_seconds": 0.2}
        async with gateway(
            faults, ready=False, engine={"capacity": "auto"}, limits=limits
        ) as live:
            answer = await live.post()
            assert answer.status_code == 503
            assert (await live.http.get("/readyz")).status_code == 503

    run(doing())
