"""Spans of requests, kept in memory, of a gateway in front of a fault server."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")
pytest.importorskip("opentelemetry.sdk", reason="the extra otel is not installed")

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import (
    BatchSpanProcessor,
    SimpleSpanProcessor,
    SpanExporter,
    SpanExportResult,
)
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from justitia.gateway import tracing
from justitia.gateway.loading import GatewaySettingsError, load
from justitia.gateway.settings import TracingSettings
from justitia.gateway.tracing import OpenTelemetry, exporting
from tests.gateway.fault_server import Faults
from tests.gateway.live import Live, gateway, run

TRACE, SPAN = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
HEADERS = {"x-justitia-agent-id": "report-17", "x-justitia-kind": "report"}


@asynccontextmanager
async def traced(
    faults: Faults, **more: Any
) -> AsyncIterator[tuple[Live, InMemorySpanExporter]]:
    async with gateway(faults, **more) as live:
        kept = InMemorySpanExporter()
        provider = TracerProvider()
        provider.add_span_processor(SimpleSpanProcessor(kept))
        live.gateway.tracer = OpenTelemetry(provider)
        yield live, kept


async def spans(live: Live, kept: InMemorySpanExporter) -> dict[str, ReadableSpan]:
    """Return the spans of one request by kind, when its server span has ended."""

    def ended() -> bool:
        return any(s.kind is SpanKind.SERVER for s in kept.get_finished_spans())

    await live.until(ended)
    found = {span.kind.name.lower(): span for span in kept.get_finished_spans()}
    assert len(found) == len(kept.get_finished_spans())
    kept.clear()
    return found


def number(span: ReadableSpan) -> tuple[int, int]:
    """Return the ids of its trace and its own."""
    context = span.get_span_context()
    assert context is not None
    return context.trace_id, context.span_id


def told(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


@pytest.mark.parametrize("stream", [False, True])
def test_a_request_its_wait_and_the_engine_s_part(stream: bool) -> None:
    async def doing() -> None:
        faults = Faults()
        async with traced(faults) as (live, kept):
            answer = await live.http.post(
                "/v1/chat/completions",
                json={
                    "model": "m", "stream": stream, "max_tokens": 4, "n": 2,
                    "messages": [{"role": "user", "content": "CANARY-prompt"}],
                },
                headers={
                    **HEADERS,
                    "x-justitia-cost": "5000",
                    "authorization": "Bearer CANARY-key",
                    "cookie": "CANARY-cookie",
                    "traceparent": f"00-{TRACE}-{SPAN}-01",
                    "tracestate": "vendor=1",
                },
            )  # fmt: skip
            assert answer.status_code == 200
            found = await spans(live, kept)
            server, wait, client = (found[k] for k in ("server", "internal", "client"))
            assert (server.name, wait.name, client.name) == ("chat m", "wait", "chat m")
            assert server.parent is not None
            assert format(server.parent.span_id, "016x") == SPAN
            for span in found.values():
                assert format(number(span)[0], "032x") == TRACE
            for child in (wait, client):
                assert child.parent is not None
                assert child.parent.span_id == number(server)[1]
            own = format(number(client)[1], "016x")
            assert faults.headers[-1]["traceparent"] == f"00-{TRACE}-{own}-01"
            assert faults.headers[-1]["tracestate"] == "vendor=1"
            assert told(server) == {
                "gen_ai.operation.name": "chat",
                "gen_ai.request.model": "m",
                "gen_ai.request.max_tokens": 4,
                "gen_ai.request.choice.count": 2,
                "gen_ai.usage.input_tokens": 7,
                "gen_ai.usage.output_tokens": 8,
                "http.request.method": "POST",
                "http.response.status_code": 200,
                "http.route": "/v1/chat/completions",
                "url.path": "/v1/chat/completions",
                "url.scheme": "http",
                "server.address": "127.0.0.1",
                "server.port": live.port,
                "justitia.agent.id": "report-17",
                "justitia.agent.kind": "report",
                "justitia.stage": 0,
                "justitia.tag": 5000.0,
                "justitia.cost.predicted": 5000.0,
                "justitia.tenant": "everybody",
                **{k: v for k, v in told(server).items() if k.endswith(".seconds")},
            }
            first = "justitia.first_byte.seconds"
            assert (first in told(server)) == stream
            assert told(wait)["justitia.tag"] == 5000
            about = told(client)
            assert about["gen_ai.provider.name"] == "openai"
            assert about["http.response.status_code"] == 200
            assert about["server.port"] != live.port
            assert about["justitia.attempt"] == 1
            assert {s.status.status_code for s in found.values()} == {StatusCode.UNSET}
            assert "CANARY" not in "".join(span.to_json() for span in found.values())
            assert "CANARY" not in str(faults.headers)
            # What is no parent is none, and what was refused is a span, too.
            for wrong in ("nonsense", f"00-{TRACE}-{SPAN}-01-CANARY"):
                refused = await live.http.post(
                    "/v1/completions",
                    content=b'{"prompt": "CANARY',
                    headers={"traceparent": wrong},
                )
                assert refused.status_code == 400
                (server,) = (await spans(live, kept)).values()
                assert server.parent is None
                assert server.name == "text_completion"
                assert told(server)["error.type"] == "invalid_json"
                assert server.status.status_code is StatusCode.UNSET
                assert "CANARY" not in server.to_json()

    run(doing())


def test_errors_of_engines_and_clients_that_go_away() -> None:
    async def doing() -> None:
        faults = Faults()
        limits = {"queue_seconds": 0.3}
        async with traced(faults, limits=limits, engine={"slots": 1}) as (live, kept):
            await live.post(True, user="status:429")
            found = await spans(live, kept)
            assert told(found["client"])["error.type"] == "429"
            assert found["client"].status.status_code is StatusCode.ERROR
            assert told(found["server"])["http.response.status_code"] == 429
            assert found["server"].status.status_code is StatusCode.UNSET

            held = asyncio.create_task(live.post(user="hold"))
            await live.until(lambda: faults.running == 1)
            kept.clear()
            await live.post(user="waits for too long")
            found = await spans(live, kept)
            assert found.keys() == {"server", "internal"}
            assert told(found["internal"])["error.type"] == "queue_timeout"
            assert told(found["server"])["error.type"] == "queue_timeout"
            assert found["server"].status.status_code is StatusCode.ERROR
            held.cancel()
            found = await spans(live, kept)
            assert told(found["client"])["error.type"] == "cancelled"
            assert told(found["server"])["error.type"] == "client_gone"
            await live.rests()

            going = asyncio.create_task(
                live.http.post(
                    "/v1/completions",
                    json={"prompt": "x", "user": "hold"},
                    headers=HEADERS,
                )
            )
            await live.until(lambda: faults.running == 1)
            await live.http.delete("/v1/agents/report-17")
            await going
            found = await spans(live, kept)
            assert told(found["client"])["error.type"] == "cancelled"
            assert told(found["server"])["error.type"] == "agent_cancelled"

            await live.post(True, stream=True, user="die:3", max_tokens=9)
            found = await spans(live, kept)
            assert told(found["client"])["error.type"] == "EngineLost"
            assert told(found["server"])["error.type"] == "engine_lost"

    run(doing())


ENGINE = {"engines": ["http://a:1"]}
FILE = '[gateway]\n[[gateway.engines]]\nurl = "http://a:1"\n[gateway.tracing]\n'


@pytest.mark.parametrize(
    ("variables", "on"),
    [
        ({}, False),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "http://c:4318"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp"}, True),
        ({"OTEL_TRACES_EXPORTER": "otlp", "OTEL_SDK_DISABLED": "true"}, False),
        (
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": "http://c:4318",
                "OTEL_TRACES_EXPORTER": "none",
            },
            False,
        ),
    ],
)
def test_opentelemetry_s_variables_turn_it_on(
    variables: dict[str, str], on: bool
) -> None:
    assert (load(ENGINE, environment=variables).tracing is not None) == on


def test_the_file_turns_it_on(tmp_path: Any) -> None:
    file = tmp_path / "justitia.toml"
    file.write_text(FILE + 'endpoint = "http://collector:4318"')
    settings = load({}, file=str(file), environment={})
    assert settings.tracing == TracingSettings(endpoint="http://collector:4318")
    for wrong in ('endpoint = "collector"', 'endpoint = "http://u:p@c"', "sample = 1"):
        file.write_text(FILE + wrong)
        with pytest.raises(GatewaySettingsError, match="tracing"):
            load({}, file=str(file), environment={})


@pytest.mark.parametrize(
    ("endpoint", "to"),
    [
        ("http://c:4318", "http://c:4318/v1/traces"),
        ("http://c:4318/", "http://c:4318/v1/traces"),
        ("https://c/otlp/v1/traces", "https://c/otlp/v1/traces"),
        (None, "http://localhost:4318/v1/traces"),
    ],
)
def test_where_spans_go(
    endpoint: str | None, to: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_SERVICE_NAME"):
        monkeypatch.delenv(name, raising=False)
    made = exporting(TracingSettings(endpoint=endpoint))
    try:
        processors: Any = made._provider._active_span_processor
        (processor,) = processors._span_processors
        exporter = getattr(processor, "span_exporter", None)
        if exporter is None:  # where newer releases keep it
            exporter = processor._batch_processor._exporter
        assert exporter._endpoint == to
        assert made._provider.resource.attributes["service.name"] == "justitia-gateway"
    finally:
        made.close()


WITHOUT = """
import sys
class Without:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] == "opentelemetry":
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Without())
from justitia.gateway.app import Gateway
from justitia.gateway.loading import GatewaySettingsError, load
from justitia.gateway.spans import TracingNotInstalled
engines = {"engines": ["http://a:1"]}
Gateway(load(engines, environment={}))
try:
    Gateway(load(engines, environment={"OTEL_TRACES_EXPORTER": "otlp"}))
except TracingNotInstalled as error:
    print(error)
"""


def test_no_client_s_text_keeps_spans_from_being_sent() -> None:
    async def doing() -> None:
        async with traced(Faults()) as (live, kept):
            body = b'{"model": "\\ud800", "prompt": "a"}'
            answer = await live.http.post("/v1/completions", content=body)
            assert answer.status_code == 404
            server = (await spans(live, kept))["server"]
            assert server.name == "text_completion ?"
            assert b"text_completion ?" in encode_spans([server]).SerializeToString()

    run(doing())


def test_a_collector_that_is_silent_holds_up_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tracing, "CLOSE_SECONDS", 0.05)
    heard = threading.Event()

    class Silent(SpanExporter):  # type: ignore[misc]
        def export(self, spans: Any) -> SpanExportResult:
            heard.wait()
            return SpanExportResult.FAILURE

    async def doing() -> None:
        async with gateway(Faults()) as live:
            provider = TracerProvider(shutdown_on_exit=False)
            provider.add_span_processor(
                BatchSpanProcessor(
                    Silent(), schedule_delay_millis=1, max_export_batch_size=2
                )
            )
            live.gateway.tracer = OpenTelemetry(provider)
            for _ in range(5):
                assert (await live.post()).status_code == 200

    try:
        run(doing(), 20)  # OpenTelemetry would wait for 30
    finally:
        heard.set()


def test_off_it_is_not_imported_and_without_the_extra_it_says_so() -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-c", WITHOUT],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout == (
        "tracing needs opentelemetry, which is not installed; "
        "install it with: pip install 'justitia[otel]'\n"
    )
