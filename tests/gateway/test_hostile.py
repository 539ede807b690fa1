"""Bodies, connections and engines that are what nobody should send."""

import asyncio
import contextlib
import gzip
import json
import re
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import httpx
import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from justitia.gateway import heads, idlers
from justitia.gateway.app import Gateway
from justitia.gateway.serve import server
from tests.gateway.fault_server import Faults
from tests.gateway.live import Live, gateway, listening, request, run, settings

# Bodies -----------------------------------------------------------------------------


def test_what_two_readers_may_read_in_two_ways_is_refused() -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            for body in (
                b'{"model": "m", "prompt": "a", "n": 1, "n": 100}',
                b'{"model": "m", "prompt": "a", "x": {"y": 1, "y": 2}}',
                '{"model": "m", "prompt": "a"}'.encode("utf-16"),
                b'\xef\xbb\xbf{"model": "m", "prompt": "a"}',
                b"\x1f\x8b\x08\x00",
            ):
                answer = await live.http.post("/v1/completions", content=body)
                assert answer.status_code == 400, body
                assert answer.json()["error"]["code"] == "invalid_json"
            assert not faults.bodies

    run(doing())


def test_half_a_surrogate_is_refused_or_passed_on_and_never_a_failure(
    tmp_path: Path,
) -> None:
    half = '"\\ud800"'

    async def doing() -> None:
        faults = Faults()
        store = str(tmp_path / "x.db")
        async with gateway(faults, store=store, keep_prompts=True) as live:

            async def post(path: str, body: str) -> int:
                answer = await live.http.post(path, content=body.encode())
                return answer.status_code

            text = "/v1/completions"
            assert await post(text, f'{{"model": "m", "prompt": {half}}}') == 200
            body = f'{{"model": "m", "prompt": {half}, {half}: 1}}'
            assert await post(text, body) == 200
            assert await post(text, f'{{"model": {half}, "prompt": "a"}}') == 404
            for field in ("agent", "kind", "\\ud800"):
                said = f'{{"{field}": {half}}}'
                body = f'{{"model": "m", "prompt": "a", "justitia": {said}}}'
                assert await post(text, body) == 400
            for field in ("id", "kind", "\\ud800"):
                body = f'{{"cost": 1, "{field}": {half}}}'
                assert await post("/v1/agents", body) == 400
            assert await post("/v1/agents", f'{{"prompts": [{half}]}}') == 201
            chat = f'{{"model": "m", "messages": [{{"role": {half}}}]}}'
            assert await post("/v1/chat/completions", chat) == 200
            assert (await live.post()).status_code == 200
            memory = live.gateway.memory
            assert memory is not None
            assert not memory.store.broken
            await live.rests()

    run(doing())


@pytest.mark.parametrize("field", ["tools", "tool_calls", "role", "justitia", "x"])
def test_nothing_is_too_deep_to_be_answered(field: str) -> None:
    """Somewhere a body is read, and what is made of it goes a little deeper."""

    async def doing() -> None:
        async with gateway(Faults()) as live:
            statuses = set()
            for depth in [*range(20, 900, 110), *range(900, 1000, 3)]:
                deep = "[" * depth + "]" * depth
                message = f'"role": "user", "{field}": {deep}'
                if field == "role":
                    message = f'"role": {deep}'
                body = (
                    f'{{"model": "m", "stream": true, "messages": [{{{message}}}], '
                    f'"{field}": {deep}}}'
                )
                answer = await live.http.post(
                    "/v1/chat/completions", content=body.encode()
                )
                statuses.add(answer.status_code)
            assert statuses <= {200, 400}
            await live.rests()

    run(doing())


def test_a_client_that_wants_no_running_usage_gets_none() -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            options = {"continuous_usage_stats": True}
            await live.post(stream=True, stream_options=options)
            assert faults.bodies[0]["stream_options"] == {
                "continuous_usage_stats": False, "include_usage": True,
            }  # fmt: skip

    run(doing())


def test_costs_that_no_clock_could_hold_are_refused_and_spoil_nothing() -> None:
    async def doing() -> None:
        tenants = [{"name": "a", "keys": ["k"]}]
        async with gateway(Faults(), tenants=tenants) as live:
            live.http.headers["authorization"] = "Bearer k"
            for _ in range(3):
                agent = await live.http.post("/v1/agents", json={"cost": 1e150})
                assert agent.status_code == 400
                assert (await live.post(justitia={"cost": 1e150})).status_code == 400
                costs = {"stage_costs": [1e149]}
                assert (await live.post(justitia=costs)).status_code == 400
                agent = await live.http.post("/v1/agents", json={"cost": 10**30})
                assert agent.status_code == 201
            assert (await live.post()).status_code == 200
            await live.rests()

    run(doing())


def test_null_is_nothing_said() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:
            nothing = dict.fromkeys(("cost", "kind", "weight", "stage_costs"))
            for given, status in (
                ({"prompts": ["a"], **nothing}, 201),
                ({**nothing, "cost": 5, "prompts": None, "max_tokens": None}, 201),
                ({"cost": 5, "model": {}}, 400),
                ({"cost": 5, "max_tokens": 0}, 400),
            ):
                answer = await live.http.post("/v1/agents", json=given)
                assert answer.status_code == status, (given, answer.text)
            names = ("n", "max_tokens", "stream", "justitia", "best_of")
            nulls: dict[str, Any] = dict.fromkeys(names)
            assert (await live.post(**nulls)).status_code == 200
            assert (await live.post(justitia=nothing)).status_code == 200
            await live.rests()

    run(doing())


def test_prompts_of_all_forms_are_counted() -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            for prompt, count in (
                ([1, 2, 3], 1), ([[1], [2, 3]], 2), (["a", "b", "c"], 3), ("", 1),
            ):  # fmt: skip
                held = asyncio.create_task(live.post(prompt=prompt, n=2, user="hold"))
                await live.until(lambda: faults.running == 1)
                (engine,) = live.dispatcher.fleet
                assert engine.running == 2 * count
                faults.release.set()
                assert (await held).status_code == 200
                faults.release.clear()
            parts = [
                {"type": "text", "text": "what is it?"},
                {"type": "image_url", "image_url": {"url": "data:image/png;base64,AA"}},
            ]
            told = {"role": "tool", "tool_call_id": "x", "content": "rain"}
            messages = [{"role": "user", "content": parts}, told]
            assert (await live.post(True, messages=messages)).status_code == 200
            assert faults.bodies[-1]["messages"] == messages
            await live.rests()

    run(doing())


# Connections ------------------------------------------------------------------------


async def speak(live: Live, said: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
    told = b""
    with contextlib.suppress(OSError):  # who is refused may be cut off as it speaks
        writer.write(said)
        told = await reader.read()
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return told


def post(content: bytes, headers: bytes, path: bytes = b"/v1/completions") -> bytes:
    return b"POST %s HTTP/1.1\r\nhost: x\r\n%s\r\n\r\n%s" % (path, headers, content)


BODY = json.dumps(request(max_tokens=1)).encode()
SIZE = b"content-length: %d" % len(BODY)
H2C = b"connection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\nhttp2-settings: AAMA"
CHUNKED = b"%x\r\n%s\r\n0\r\n" % (len(BODY), BODY)


@pytest.mark.parametrize(
    ("said", "statuses"),
    [
        (post(BODY, SIZE) + post(BODY, SIZE + b"\r\nconnection: close"), [200, 200]),
        (
            post(CHUNKED + b"\r\n", b"transfer-encoding: chunked\r\nconnection: close"),
            [200],
        ),
        (
            post(
                CHUNKED + b"x-justitia-agent-id: trailed\r\n\r\n",
                b"transfer-encoding: chunked\r\nconnection: close",
            ),
            [200],
        ),
        (post(BODY, SIZE + b"\r\ncontent-length: 5\r\nconnection: close"), [400]),
        # Java's client asks for HTTP/2 with each request to a place that is not TLS.
        (
            post(BODY, SIZE + b"\r\n" + H2C)
            + post(BODY, SIZE + b"\r\n" + H2C.replace(b" Up", b" close, Up")),
            [200, 200],
        ),
        (b"OPTIONS /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n",
         [405]),
        (b"HEAD /v1/models HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n", [200]),
        (b"nonsense\r\n\r\n", [400]),
    ],
)  # fmt: skip
def test_connections(said: bytes, statuses: list[int]) -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            told = await speak(live, said)
            found = [int(s) for s in re.findall(rb"HTTP/1.1 (\d+)", told)]
            assert found == statuses, told
            assert "agent/everybody/trailed" not in live.dispatcher.agents._agents
            assert len(faults.bodies) == statuses.count(200) * (b"POST" in said)
            assert (await live.post()).status_code == 200
            await live.rests()

    run(doing())


@pytest.mark.parametrize(
    "said",
    [
        post(b"", b"x: " + b"y" * 2**21),
        post(b"", b"x: y\r\n" * 2**18),
        b"GET /" + b"y" * 2**21,
        post(CHUNKED + b"x: " + b"y" * 2**21, b"transfer-encoding: chunked"),
        post(CHUNKED + b"x: y\r\n" * 2**18, b"transfer-encoding: chunked"),
    ],
)
def test_a_head_without_end_is_cut_off(said: bytes) -> None:
    """It may be cut off before it can read why."""

    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            told = await speak(live, said)
            assert not told or told.startswith(b"HTTP/1.1 400"), told[:100]
            await live.rests()

    run(doing())


def test_what_is_not_there_is_said_in_openais_form_too() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:
            for method, path, status, allowed in (
                ("GET", "/nowhere", 404, None),
                ("GET", "/v1/completions/", 404, None),
                ("PUT", "/v1/completions", 405, "POST"),
                ("PATCH", "/v1/agents/a", 405, "DELETE, GET, HEAD"),
                ("POST", "/v1/models", 405, "GET, HEAD"),
            ):
                answer = await live.http.request(method, path)
                assert answer.status_code == status
                assert answer.json()["error"]["code"] in (
                    "not_found", "method_not_allowed"
                )  # fmt: skip
                assert answer.headers.get("allow") == allowed

    run(doing())


def test_a_failure_of_the_gateway_itself_is_said_in_openais_form() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:

            def fails(*_: object) -> None:
                raise RuntimeError("SECRET")

            live.dispatcher.agents.announce = fails
            answer = await live.http.post("/v1/agents", json={"cost": 1})
            assert answer.status_code == 500
            assert answer.json()["error"]["code"] == "internal_error"
            assert "SECRET" not in answer.text

    run(doing())


NAMES = ["a/b", "ä中🙂", "50%", "a%2Fb", "a b?c#d", "a//b", "/", "x" * 256]


def test_any_agent_can_be_asked_for_by_its_name() -> None:
    async def doing() -> None:
        async with gateway(Faults()) as live:
            for name in NAMES:
                made = await live.http.post("/v1/agents", json={"id": name, "cost": 5})
                assert made.status_code == 201
            for name in NAMES:
                encoded = "".join(f"%{byte:02X}" for byte in name.encode())
                path = f"/v1/agents/{encoded}"
                assert (await live.http.get(path)).json()["id"] == name
                assert (await live.http.delete(path)).json()["id"] == name
            assert len(live.dispatcher.agents) == 0

    run(doing())


def test_an_agent_that_is_ended_while_it_streams_is_told_so() -> None:
    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            told = {"agent": "a"}
            async with live.http.stream(
                "POST", "/v1/completions",
                json=request(stream=True, user="pause", max_tokens=4, justitia=told),
            ) as stream:  # fmt: skip
                parts = stream.aiter_bytes()
                first = await anext(parts)
                gone = (await live.http.delete("/v1/agents/a")).json()
                assert gone["cancelled"] == 1
                rest = first + b"".join([part async for part in parts])
            last = rest.decode().strip().split("\n\n")[-1]
            error = json.loads(last.removeprefix("data: "))["error"]
            assert error["code"] == "agent_cancelled"
            assert b"[DONE]" not in rest
            await live.rests()
            await live.until(lambda: faults.running == 0)

    run(doing())


@pytest.mark.parametrize("parser", ["httptools", "h11"])
def test_who_asks_for_nothing_is_cut_off(
    parser: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And who is served is not, however long that takes."""
    monkeypatch.setattr(idlers, "IDLE_SECONDS", 0.15)
    if parser == "h11":
        monkeypatch.setattr(heads, "find_spec", lambda name: None)

    async def drip(live: Live, said: bytes) -> bytes:
        """Say it, and then a byte at a time for ever; return what is answered."""
        reader, writer = await asyncio.open_connection("127.0.0.1", live.port)

        async def dripping() -> None:
            writer.write(said)
            while True:
                writer.write(b"x")
                await asyncio.sleep(0.01)

        one = asyncio.create_task(dripping())
        told = b""
        with contextlib.suppress(OSError):
            while part := await reader.read(2**16):
                told += part
        one.cancel()
        writer.transport.abort()
        return told

    async def silent(live: Live) -> bytes:
        reader, writer = await asyncio.open_connection("127.0.0.1", live.port)
        told = await reader.read()
        writer.close()
        return told

    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            held = asyncio.create_task(live.post(user="hold"))
            long = b"content-length: 99999999"
            async with asyncio.timeout(20):
                assert await silent(live) == b""
                assert await drip(live, b"POST /v1/completions HTTP/1.1\r\nx: ") == b""
                told = await drip(live, post(b"", long, b"/nowhere"))
                assert told.startswith(b"HTTP/1.1 404")
                again = await drip(
                    live, b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\nGET /"
                )
                assert again.startswith(b"HTTP/1.1 200")
            faults.release.set()
            assert (await held).status_code == 200
            await live.rests()

    run(doing())


def test_an_answer_that_nobody_reads_is_not_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(idlers, "IDLE_SECONDS", 0.05)

    async def doing() -> None:
        faults = Faults()
        async with gateway(faults) as live:
            sock = socket.socket()
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2**12)
            sock.setblocking(False)
            await asyncio.get_running_loop().sock_connect(
                sock, ("127.0.0.1", live.port)
            )
            body = json.dumps(request(max_tokens=2 * 10**6)).encode()
            sock.send(post(body, b"content-length: %d" % len(body)))
            await live.until(lambda: len(faults.bodies) == 1)
            await live.rests()
            await live.until(lambda: not live.connections)
            sock.close()

    run(doing())


def test_requests_that_wait_for_an_answer_before_are_not_kept_without_end() -> None:
    one = b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"
    last = one.replace(b"\r\n\r\n", b"\r\nconnection: close\r\n\r\n")

    async def doing() -> None:
        async with gateway(Faults()) as live:
            told = await speak(live, one * 20 + last)
            assert told.count(b"HTTP/1.1 200") == 21
            told = await speak(live, one * 5_000 + last)
            assert told.count(b"HTTP/1.1 200") < 5_000

    run(doing())


# Engines ----------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def before(answer: bytes, **more: Any) -> AsyncIterator[tuple[Live, list[bytes]]]:
    """A gateway before an engine that is well, and answers each request in bytes."""
    asked: list[bytes] = []
    models = b'{"data": [{"id": "m"}]}'
    well = b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%s" % (
        len(models), models,
    )  # fmt: skip

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError, asyncio.IncompleteReadError):
            head = await reader.readuntil(b"\r\n\r\n")
            looks = head.startswith(b"GET")
            if not looks:
                asked.append(head)
                size = re.search(rb"content-length: (\d+)", head, re.I)
                assert size is not None
                await reader.readexactly(int(size[1]))
            writer.write(well if looks else answer)
            await writer.drain()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    engine = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = engine.sockets[0].getsockname()[1]
    limits = {"health_seconds": 0.05, **more.pop("limits", {})}
    made = Gateway(settings([f"http://127.0.0.1:{port}"], limits=limits, **more))
    async with (
        engine,
        listening(server(made)) as gateway_port,
        httpx.AsyncClient(
            base_url=f"http://127.0.0.1:{gateway_port}", trust_env=False, timeout=60
        ) as http,
    ):
        live = Live(made, gateway_port, http)
        await live.until(lambda: made.dispatcher.fleet.engines[0].up)
        yield live, asked


JSON = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n"
LOST = {"engine_lost"}


@pytest.mark.parametrize(
    ("answer", "status", "code"),
    [
        (JSON + b"content-length: 2\r\n\r\n{]", 200, None),
        (JSON + b'content-length: 15\r\n\r\n{"usage": [[1]]}', 200, None),
        (JSON + b'\r\n{"usage": {"completion_tokens": 1e9}}', 200, None),
        (JSON + b'\r\n{"usage": {"prompt_tokens": true}, "choices": {}}', 200, None),
        (JSON + b"content-length: 900\r\n\r\n{}", 502, "engine_lost"),
        (JSON + b"content-length: -5\r\n\r\n{}", 502, "engine_lost"),
        (JSON + b"x: y\r\n" * 100_000, 502, "engine_lost"),
        (b"nonsense\r\n\r\n", 502, "engine_lost"),
        (b"", 502, "engine_lost"),
        (
            b"HTTP/1.1 302 Found\r\nlocation: http://127.0.0.1:1/\r\n"
            b"content-length: 0\r\n\r\n",
            502,
            "engine_refused",
        ),
        (b"HTTP/1.1 500 Oh\r\ncontent-length: 2\r\n\r\nno", 500, None),
        (b"HTTP/1.1 999 Oh\r\ncontent-length: 2\r\n\r\nno", 502, "engine_lost"),
        (JSON + b"retry-after: \x01\r\ncontent-length: 2\r\n\r\n{}", 200, None),
    ],
)
def test_engines_that_answer_nonsense(
    answer: bytes, status: int, code: str | None
) -> None:
    async def doing() -> None:
        async with before(answer, engine={"key": "CANARY"}) as (live, asked):
            told = await live.post()
            assert told.status_code == status, told.text
            if code is not None:
                assert told.json()["error"]["code"] == code
            assert len(asked) == 1 + (code == "engine_lost")
            await live.rests()

    run(doing())


def test_an_engine_that_sends_elsewhere_is_not_followed_with_the_key() -> None:
    async def doing() -> None:
        elsewhere = Faults()
        async with gateway(elsewhere) as other:
            to = f"http://127.0.0.1:{other.port}/v1/completions".encode()
            for kind in (b"302 Found", b"307 Temporary Redirect"):
                answer = b"HTTP/1.1 %s\r\nlocation: %s\r\ncontent-length: 0\r\n\r\n" % (
                    kind, to,
                )  # fmt: skip
                async with before(answer, engine={"key": "CANARY"}) as (live, _):
                    told = await live.post()
                    assert told.json()["error"]["code"] == "engine_refused"
                    assert "location" not in told.headers
            assert not elsewhere.bodies

    run(doing())


def test_an_answer_that_was_compressed_comes_through_as_it_was() -> None:
    packed = gzip.compress(b'{"choices": []}')
    answer = (
        JSON
        + b"content-encoding: gzip\r\ncontent-length: %d\r\n\r\n" % len(packed)
        + packed
    )

    async def doing() -> None:
        async with before(answer) as (live, asked):
            told = await live.post()
            assert told.json() == {"choices": []}
            assert told.headers["content-encoding"] == "gzip"
            assert b"accept-encoding: identity" in asked[0].lower()
            await live.rests()

    run(doing())
