"""What goes wrong between clients and engines: nothing is lost, leaked or told."""

import asyncio
import json
import logging
import re
import socket
from pathlib import Path
from typing import Any

import openai
import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from justitia.gateway import logs
from justitia.gateway.app import Gateway
from justitia.gateway.serve import server
from tests.gateway.fault_server import Faults
from tests.gateway.live import (
    Live,
    gateway,
    listening,
    plain,
    request,
    reset,
    run,
    settings,
)

# Clients that go away ---------------------------------------------------------------


async def connect(
    live: Live, body: dict[str, Any]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await connect_to(live.port, body)


async def connect_to(
    port: int, body: dict[str, Any]
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=2**16)
    content = json.dumps(body).encode()
    writer.write(
        b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n"
        b"content-type: application/json\r\ncontent-length: %d\r\n\r\n%s"
        % (len(content), content)
    )
    await writer.drain()
    return reader, writer


PHASES = ("at once", "in line", "before the first byte", "mid-stream")


@pytest.mark.parametrize("phase", PHASES)
def test_two_hundred_clients_go_away_b39(phase: str) -> None:
    async def doing() -> None:
        faults = Faults()
        engine = {"slots": 8 if phase != "in line" else 1}
        async with gateway(faults, engine=engine) as live:
            blocker = None
            if phase == "in line":
                blocker = asyncio.create_task(live.post(user="hold"))
                await live.until(lambda: faults.running == 1)
            for _ in range(20):
                user = "pause" if phase == "mid-stream" else "hold"
                those = [
                    await connect(live, request(stream=True, user=user, max_tokens=9))
                    for _ in range(10)
                ]
                if phase == "in line":
                    await live.until(lambda: live.dispatcher.waiting == 10)
                elif phase == "before the first byte":
                    await live.until(lambda: faults.running >= 8)
                elif phase == "mid-stream":
                    for reader, _ in those[:8]:
                        await reader.readuntil(b"comment")
                for _, writer in those:
                    await reset(writer)
                left = 0 if blocker is None else 1
                await live.until(lambda: len(live.dispatcher) == left)  # noqa: B023
                live.dispatcher._check()
            faults.release.set()
            if blocker is not None:
                assert (await blocker).status_code == 200
            assert (await live.post()).status_code == 200
            await live.rests()
            await live.until(lambda: faults.running == 0)
            assert live.dispatcher.active_agents("everybody") == 0
            if phase != "at once":  # each of them was there, and has ended once
                assert live.dispatcher.over == 201 + (blocker is not None)
                told = (await live.http.get("/metrics")).text
                gone = re.search(r'code="client_gone".*status="499",.*} (\S+)', told)
                assert gone is not None
                assert float(gone[1]) == 200

    run(doing())


def test_two_hundred_clients_go_away_while_their_end_is_awaited_b39(
    tmp_path: Path,
) -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults, store=str(tmp_path / "x.db")) as live:
            stuck = asyncio.Event()

            async def finish(inferences: object) -> None:
                await stuck.wait()

            memory = live.gateway.memory
            assert memory is not None
            memory.store.finish, kept = finish, memory.store.finish  # type: ignore[method-assign]
            for _ in range(20):
                those = [
                    await connect(live, request(stream=True, max_tokens=2))
                    for _ in range(10)
                ]
                for reader, _ in those:
                    await reader.readuntil(b"comment")
                for _, writer in those:
                    await reset(writer)
                await live.rests()
            memory.store.finish = kept  # type: ignore[method-assign]
            assert (await live.post()).status_code == 200
            await live.rests()

    run(doing())


def test_a_client_that_goes_while_its_body_comes_leaves_nothing() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:
            _, writer = await asyncio.open_connection("127.0.0.1", live.port)
            writer.write(
                b"POST /v1/completions HTTP/1.1\r\nhost: x\r\n"
                b"content-length: 100\r\n\r\n{"
            )
            await writer.drain()
            await reset(writer)
            assert (await live.post()).status_code == 200
            await live.rests()

    run(doing())


# Engines that fail ------------------------------------------------------------------


def test_a_call_is_sent_again_when_its_engine_is_gone() -> None:
    async def doing() -> None:
        dying, well = Faults(), Faults()
        async with gateway(dying, well, limits={"health_seconds": 0.2}) as live:
            engines = live.dispatcher.fleet.engines
            await live.until(lambda: all(engine.up for engine in engines))
            engines[1].up = False
            running = asyncio.create_task(live.post(user="hold"))
            await live.until(lambda: dying.running == 1)
            upstream = live.gateway.upstreams[engines[0].name]
            live.dispatcher.up(engines[1])
            well.release.set()
            # Its connections break, as those of a process that was killed.
            upstream.connections.close()
            answer = await running
            assert answer.status_code == 200
            assert len(well.bodies) == 1
            assert live.dispatcher.sent_again == 1
            await live.until(lambda: engines[0].up)  # it was well all the time
            await live.rests()

    run(doing())


def test_calls_wait_for_an_engine_that_is_gone_and_go_on_when_it_is_back() -> None:
    async def doing() -> None:
        faults = Faults()
        limits = {"health_seconds": 0.05}
        async with gateway(faults, limits=limits) as live:
            engine = live.dispatcher.fleet.engines[0]
            faults.well = False
            await live.until(lambda: not engine.up)
            running = [asyncio.create_task(live.post()) for _ in range(5)]
            await live.until(lambda: live.dispatcher.waiting == 5)
            faults.well = True
            answers = await asyncio.gather(*running)
            assert {answer.status_code for answer in answers} == {200}
            await live.rests()

    run(doing())


def test_an_engine_that_breaks_off_mid_stream_ends_with_a_clear_error() -> None:
    async def doing() -> None:
        faults = Faults()
        limits = {"health_seconds": 0.05}
        async with gateway(faults, limits=limits) as live, live.client() as client:
            got = []

            async def reading() -> None:
                stream = await client.completions.create(
                    model="m", prompt="x", stream=True, max_tokens=9, user="die:4"
                )
                async for part in stream:
                    got.append(part)

            with pytest.raises(openai.APIError, match="the engine is gone"):
                await reading()
            assert len(got) == 3
            assert len(faults.bodies) == 1  # never twice, once something was read
            assert (await live.post()).status_code == 200
            await live.rests()

    run(doing())


@pytest.mark.parametrize("user", ["die:0", "status:503", "status:502", "status:504"])
def test_an_engine_that_always_fails_is_tried_twice(user: str) -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults, limits={"health_seconds": 0.05}) as live:
            answer = await live.post(stream=True, user=user)
            assert answer.status_code == 502
            assert answer.json()["error"]["code"] == "engine_lost"
            assert len(faults.bodies) == 2
            assert (await live.post()).status_code == 200
            await live.rests()

    run(doing())


def test_an_engine_that_is_silent_is_504_b48() -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults, limits={"idle_seconds": 0.3}) as live:
            answer = await live.post(user="hold")
            assert answer.status_code == 504
            assert answer.json()["error"]["code"] == "engine_timeout"
            late = await live.post(user="pause", stream=True)
            assert late.status_code == 200
            assert "engine_timeout" in late.text
            await live.rests()
            await live.until(lambda: faults.running == 0)

    run(doing())


def test_a_stream_may_take_longer_than_any_one_limit_b48() -> None:
    async def doing() -> None:
        faults = Faults()
        limits = {"idle_seconds": 0.4, "stall_seconds": 0.4, "queue_seconds": 5.0}
        async with gateway(faults, engine={"slots": 1}, limits=limits) as live:
            asks = [
                live.post(stream=True, user="slow", max_tokens=40) for _ in range(3)
            ]
            answers = await asyncio.gather(*asks)
            assert all(answer.text.endswith("data: [DONE]\n\n") for answer in answers)
            await live.rests()

    run(doing())


def test_who_waits_for_too_long_is_503_queue_timeout_b48() -> None:
    async def doing() -> None:
        faults = Faults()
        limits = {"queue_seconds": 0.2}
        async with gateway(faults, engine={"slots": 1}, limits=limits) as live:
            running = asyncio.create_task(live.post(user="hold"))
            await live.until(lambda: faults.running == 1)
            answer = await live.post()
            assert answer.status_code == 503
            assert answer.json()["error"]["code"] == "queue_timeout"
            faults.release.set()
            assert (await running).status_code == 200
            await live.rests()

    run(doing())


def test_an_engine_that_does_not_let_us_in_is_502() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:
            answer = await live.post(user="status:401")
            assert (answer.status_code, answer.json()["error"]["code"]) == (
                502, "engine_refused"
            )  # fmt: skip
            await live.rests()

    run(doing())


# Secrets and tenants ----------------------------------------------------------------

KEYS = {"acme": "CANARY-acme", "other": "CANARY-other"}
TENANTS = [{"name": name, "keys": [key]} for name, key in KEYS.items()]


def bearer(key: str) -> dict[str, str]:
    return {"authorization": f"Bearer {key}"}


@pytest.mark.parametrize("engine_key", ["CANARY-engine", None])
def test_no_secret_goes_on_or_is_written_b45(
    engine_key: str | None, caplog: pytest.LogCaptureFixture
) -> None:
    canaries = {
        "x-api-key": "CANARY-1", "x-goog-api-key": "CANARY-2", "cookie": "CANARY-3",
        "api-key": "CANARY-4", "proxy-authorization": "CANARY-5",
        **bearer(KEYS["acme"]),
    }  # fmt: skip
    caplog.set_level(logging.DEBUG)

    async def doing() -> None:
        faults = Faults()
        engine = {} if engine_key is None else {"key": engine_key}
        async with gateway(faults, engine=engine, tenants=TENANTS) as live:
            for user in ("", "status:400", "status:401", "die:0", "status:503"):
                for stream in (True, False):
                    answer = await live.http.post(
                        "/v1/completions",
                        json=request(user=user, stream=stream),
                        headers=canaries,
                    )
                    assert "CANARY" not in f"{answer.headers} {answer.text}"
            for headers in faults.headers:
                expected = None if engine_key is None else f"Bearer {engine_key}"
                assert headers.pop("authorization", None) == expected
                assert "CANARY" not in str(headers)
                assert set(headers) <= {
                    "host", "accept", "accept-encoding", "connection", "user-agent",
                    "content-length", "content-type",
                }  # fmt: skip
            assert "CANARY" not in (await live.http.get("/metrics")).text

    run(doing())
    assert caplog.records
    ours = [r for r in caplog.records if not r.name.startswith(("openai", "hpack"))]
    for record in ours:
        for form in (logs.Text(), logs.Json()):
            assert "CANARY" not in form.format(record)
        assert "CANARY" not in str(record.__dict__)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("wrong"),
        bearer(KEYS["acme"] + "x"),
        {"authorization": KEYS["acme"]},
        {"authorization": f"Basic {KEYS['acme']}"},
        {"x-api-key": KEYS["acme"]},
    ],
)
def test_without_a_key_nothing_is_told(headers: dict[str, str]) -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults, tenants=TENANTS) as live:
            live.http.headers.update(headers)
            answers = [
                await live.post(),
                await live.post(True),
                await live.http.get("/v1/models"),
                await live.http.post("/v1/agents", json={"cost": 1}),
                await live.http.get("/v1/agents/a"),
                await live.http.delete("/v1/agents/a"),
            ]
            assert {answer.status_code for answer in answers} == {401}
            assert {a.json()["error"]["code"] for a in answers} == {"invalid_api_key"}
            assert not faults.bodies

    run(doing())


def test_tenants_cannot_name_each_others_agents_b50() -> None:
    async def doing() -> None:
        async with gateway(Faults(), tenants=TENANTS) as live:
            acme, other = map(bearer, KEYS.values())
            agent = {"id": "a", "cost": 1000}
            for headers in (acme, other):
                made = await live.http.post("/v1/agents", json=agent, headers=headers)
                assert made.status_code == 201
            gone = await live.http.delete("/v1/agents/a", headers=acme)
            assert gone.status_code == 200
            assert (
                await live.http.get("/v1/agents/a", headers=acme)
            ).status_code == 404
            seen = await live.http.get("/v1/agents/a", headers=other)
            assert seen.status_code == 200
            path = "/v1/agents/..%2Fother%2Fa"
            assert (await live.http.get(path, headers=acme)).status_code == 404

    run(doing())


def test_a_thousand_agents_of_a_tenant_get_one_share_b50() -> None:
    async def doing() -> None:
        faults = Faults()
        tenants = [{**one, "most_agents": 60} for one in TENANTS]
        async with gateway(faults, tenants=tenants, engine={"slots": 1}) as live:
            acme, other = map(bearer, KEYS.values())
            ended: list[str] = []

            async def one(headers: dict[str, str], agent: str) -> None:
                answer = await live.http.post(
                    "/v1/completions",
                    json=request(user="hold", max_tokens=5),
                    headers={**headers, "x-justitia-agent-id": agent},
                )
                assert answer.status_code == 200
                ended.append(agent[0])

            tasks = [asyncio.create_task(one(acme, "first"))]
            await live.until(lambda: faults.running == 1)
            many = [f"m{number}" for number in range(50)]
            tasks += [asyncio.create_task(one(acme, name)) for name in many]
            tasks += [asyncio.create_task(one(other, "single")) for _ in range(10)]
            await live.until(lambda: live.dispatcher.waiting == 60)
            live.dispatcher._check()
            faults.release.set()
            await asyncio.gather(*tasks)
            # Ten of one agent go while the fifty agents of the other get ten turns.
            assert ended.index("s") <= 12
            last = len(ended) - 1 - ended[::-1].index("s")
            assert last <= 22
            await live.rests()

    run(doing())


def test_a_tenant_has_its_limits_b50() -> None:
    async def doing() -> None:
        faults = Faults()
        tenants = [{**one, "most_agents": 3, "most_waiting": 2} for one in TENANTS]
        async with gateway(faults, tenants=tenants, engine={"slots": 1}) as live:
            live.http.headers.update(bearer(KEYS["acme"]))
            tasks = [asyncio.create_task(live.post(user="hold"))]
            await live.until(lambda: faults.running == 1)
            tasks += [asyncio.create_task(live.post()) for _ in range(2)]
            await live.until(lambda: live.dispatcher.waiting == 2)
            answer = await live.post()
            assert (answer.status_code, answer.json()["error"]["code"]) == (
                429, "too_many_requests"
            )  # fmt: skip
            faults.release.set()
            assert {a.status_code for a in await asyncio.gather(*tasks)} == {200}
            await live.rests()

    run(doing())


# Identity ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "body", "agent"),
    [
        ({"X-Justitia-Agent-Id": "a"}, {"agent": "b"}, "a"),
        ({"X-Dynamo-Session-ID": "c"}, {"agent": "b"}, "b"),
        (
            {"x-gateway-inference-fairness-id": "d", "x-dynamo-session-id": "c"},
            None,
            "d",
        ),
        (
            {
                "x-llm-d-inference-fairness-id": "e",
                "x-gateway-inference-fairness-id": "d",
            },
            None,
            "e",
        ),
        ({"x-claude-code-session-id": "f", "session-id": "g"}, None, "f"),
        ({"session_id": "h"}, None, "h"),
        ({"x-session-affinity": "i", "x-session-id": "j"}, None, "i"),
        ({"x-session-id": "j"}, {"kind": "K"}, "j"),
        ({}, {"agent": 7}, "7"),
    ],
)
def test_the_agent_is_the_first_that_is_named(
    headers: dict[str, str], body: dict[str, Any] | None, agent: str
) -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:
            more: dict[str, Any] = {} if body is None else {"justitia": body}
            answer = await live.http.post(
                "/v1/completions", json=request(**more), headers=headers
            )
            assert answer.status_code == 200
            assert (await live.http.get(f"/v1/agents/{agent}")).status_code == 200
            assert len(live.dispatcher.agents) == 1

    run(doing())


@pytest.mark.parametrize(
    "headers",
    [
        [("x-justitia-agent-id", "x" * 10_000)],
        [("x-justitia-agent-id", "")],
        [("x-justitia-agent-id", "a"), ("x-justitia-agent-id", "b")],
        [("x-justitia-agent-id", b"\xff")],
        [("x-justitia-agent-id", "a\u2028b".encode())],
        [("x-justitia-cost", "-1")],
        [("x-justitia-cost", "nan")],
        [("x-justitia-cost", "1e999")],
        [("x-justitia-stage", "one")],
        [("x-justitia-weight", "1000000")],
        [("x-session-id", "x" * 10_000)],
    ],
)
def test_hostile_identities_are_400_b50(headers: list[tuple[str, Any]]) -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            answer = await live.http.post(
                "/v1/completions", json=request(), headers=headers
            )
            assert answer.status_code == 400
            assert answer.json()["error"]["code"] == "invalid_identity"
            assert answer.json()["error"]["param"] == headers[0][0]
            assert not faults.bodies
            assert len(live.dispatcher.agents) == 0

    run(doing())


def test_headers_cannot_be_injected_b50() -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            for value in (b"\nx: y", b"\rx", b"\x00"):
                reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
                writer.write(
                    b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
                    b"x-justitia-agent-id: a" + value + b"\r\n"
                    b'content-length: 15\r\n\r\n{"prompt": "a"}'
                )
                told = await reader.read()
                assert told.startswith((b"HTTP/1.1 400", b"HTTP/1.1 200"))
                writer.close()
            for headers in faults.headers:
                assert "x" not in headers
            answer = await live.post(justitia={"agent": "a\r\nset-cookie: x"})
            assert answer.status_code == 400
            assert "set-cookie" not in answer.headers
            await live.rests()

    run(doing())


# Many -------------------------------------------------------------------------------


def test_many_clients_get_each_its_own_answer() -> None:
    async def doing() -> None:
        one, two = Faults(), Faults()
        async with gateway(one, two, engine={"capacity": 400}) as live:
            await live.until(lambda: all(e.up for e in live.dispatcher.fleet))

            async def ask(number: int) -> None:
                tokens = number % 7 + 1
                answer = await live.post(
                    number % 2 == 0,
                    stream=number % 3 == 0,
                    max_tokens=tokens,
                    justitia={"agent": str(number % 20)},
                )
                assert answer.status_code == 200
                if number % 3:
                    (choice,) = answer.json()["choices"]
                    text = choice.get("text") or choice["message"]["content"]
                    assert text == "word " * tokens
                else:
                    assert answer.text.count('"index"') >= tokens
                    assert answer.text.endswith("data: [DONE]\n\n")

            await asyncio.gather(*map(ask, range(200)))
            assert len(one.bodies) + len(two.bodies) == 200
            assert min(len(one.bodies), len(two.bodies)) > 20
            await live.rests()

    run(doing())


def test_an_engine_that_starts_late_is_taken_in() -> None:
    async def doing() -> None:
        with socket.socket() as one:
            one.bind(("127.0.0.1", 0))
            port = one.getsockname()[1]
        late = Gateway(
            settings([f"http://127.0.0.1:{port}"], limits={"health_seconds": 0.05})
        )
        engine = late.dispatcher.fleet.engines[0]
        async with listening(server(late)):
            await asyncio.sleep(0.2)
            assert [engine.up] == [False]
            async with listening(plain(Faults().app), port):
                for _ in range(1000):
                    await asyncio.sleep(0.01)
                    if engine.up:
                        break
                assert engine.up

    run(doing())
