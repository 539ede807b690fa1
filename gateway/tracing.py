"""Spans of requests for OpenTelemetry; imported only where settings ask for them.

=========  ========  =============================================================
span       kind      from, to
=========  ========  =============================================================
chat m     server    a request's first byte to the end of its answer
wait       internal  in line to its turn; a second one where it was sent again
chat m     client    sent to an engine to the end of what the engine answers
=========  ========  =============================================================

Names are OpenTelemetry's (HTTP, GenAI) where it has some, and ``justitia.*`` for what
only we know. The parent is the client's ``traceparent``; the engine is told of the
client span. No text of a prompt or an answer, no header and no key is ever in a span;
ids and kinds of agents and names of models are.

Contexts are passed by hand: nothing here is kept in a context variable.
"""

import asyncio
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, SpanKind, Status, StatusCode, set_span_in_context
from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

from justitia import __version__
from justitia.engines.serving import Agents
from justitia.gateway.dispatcher import Call
from justitia.gateway.errors import GatewayError
from justitia.gateway.exchange import Outcome
from justitia.gateway.settings import TracingSettings
from justitia.gateway.upstream import Upstream

SERVICE = "justitia-gateway"
CLOSE_SECONDS = 5.0
"""For which the end of a gateway waits for a collector; OpenTelemetry's own is 30."""
_PARENT = ("traceparent", "tracestate")
_LONGEST = 256
"""Characters of a name that a client gave."""
_PROPAGATOR = TraceContextTextMapPropagator()


class RequestSpan:
    """The spans of one request; see `justitia.gateway.spans.Span`."""

    def __init__(self, tracer: Any, span: Span, operation: str) -> None:  # noqa: ANN401
        self._tracer = tracer
        self._span = span
        self._context = set_span_in_context(span, Context())
        self._operation = operation
        self._name = operation
        self._about: dict[str, Any] = {"gen_ai.operation.name": operation}
        self._client: Span | None = None

    def about(self, call: Call, most: int | None, choices: int) -> None:
        """Take note of what is asked for."""
        if call.model is not None:
            # With half a surrogate in a name none of a batch could be sent.
            model = call.model[:_LONGEST].encode(errors="replace").decode()
            self._about["gen_ai.request.model"] = model
            self._name = f"{self._operation} {model}"
            self._span.update_name(self._name)
        if most is not None:
            self._about["gen_ai.request.max_tokens"] = most
        if choices > 1:
            self._about["gen_ai.request.choice.count"] = choices
        claim = call.claim
        self._span.set_attributes({**self._about, "justitia.stage": claim.stage})
        if claim.agent is not None:
            agent = claim.agent.partition("/")[2]
            self._span.set_attribute("justitia.agent.id", agent)
        if claim.kind:
            self._span.set_attribute("justitia.agent.kind", claim.kind)

    @contextmanager
    def waiting(self, agents: Agents, call: Call) -> Iterator[None]:
        """Trace the time in line, and take note of the place in it."""
        first = call.names[0]
        known = agents.outline(agents.owner(first) or "") or {}
        place = {
            "justitia.tag": known.get("tag"),
            "justitia.cost.predicted": known.get("predicted"),
        }
        told = {name: float(v) for name, v in place.items() if v is not None}
        self._span.set_attributes(told)
        with self._child("wait", SpanKind.INTERNAL, told):
            yield

    @contextmanager
    def sending(self, upstream: Upstream, call: Call) -> Iterator[Mapping[str, str]]:
        """Trace what an engine does, and give the headers that tell it so."""
        address = urlsplit(upstream.settings.url)
        told = {
            **self._about,
            "gen_ai.provider.name": upstream.kind,
            "http.request.method": "POST",
            "server.address": address.hostname or "",
            "server.port": address.port or (443 if address.scheme == "https" else 80),
            "justitia.attempt": call.attempts,
            "justitia.kv_tokens.reserved": call.reserved,
        }
        with self._child(self._name, SpanKind.CLIENT, told) as span:
            self._client = span
            headers: dict[str, str] = {}
            _PROPAGATOR.inject(headers, set_span_in_context(span, Context()))
            yield headers

    def answered(self, status: int) -> None:
        """Take note of the status of the engine's answer."""
        if self._client is not None:
            self._client.set_attribute("http.response.status_code", status)
            if status >= 400:
                _fail(self._client, str(status))

    def end(self, tenant: str, outcome: Outcome) -> None:
        """End the span, with all that is known by now."""
        span = self._span
        told: dict[str, Any] = {
            "justitia.tenant": tenant,
            "justitia.queue.seconds": outcome.queued,
            "http.response.status_code": outcome.status,
            "gen_ai.usage.input_tokens": outcome.prompt_tokens,
            "gen_ai.usage.output_tokens": outcome.tokens,
            "justitia.first_byte.seconds": outcome.first,
        }
        span.set_attributes({k: v for k, v in told.items() if v is not None})
        if outcome.code:
            _fail(span, outcome.code, status=outcome.status)
        elif outcome.status >= 500:
            _fail(span, str(outcome.status))
        span.end()

    @contextmanager
    def _child(
        self, name: str, kind: SpanKind, told: Mapping[str, Any] | None = None
    ) -> Iterator[Span]:
        span = self._tracer.start_span(
            name, context=self._context, kind=kind, attributes=told
        )
        try:
            yield span
        except asyncio.CancelledError:  # the client is gone, or its agent is ended
            _fail(span, "cancelled")
            raise
        except GatewayError as error:
            _fail(span, error.code)
            raise
        except Exception as error:
            _fail(span, type(error).__name__)
            raise
        finally:
            span.end()


class OpenTelemetry:
    """Begins spans that a provider of OpenTelemetry exports."""

    def __init__(self, provider: TracerProvider) -> None:
        self._provider = provider
        self._tracer = provider.get_tracer("justitia.gateway", __version__)

    def begin(self, scope: Mapping[str, Any], operation: str) -> RequestSpan:
        """Return the span of a request; a parent that is none is passed over."""
        given: dict[str, list[str]] = {name: [] for name in _PARENT}
        for raw, value in scope["headers"]:
            name = raw.decode("latin-1")
            if name in given:
                given[name].append(value.decode("latin-1"))
        carrier = {name: values[0] for name, values in given.items() if values}
        parent = Context()
        if len(given["traceparent"]) == 1:
            parent = _PROPAGATOR.extract(carrier, context=parent)
        span = self._tracer.start_span(
            operation,
            context=parent,
            kind=SpanKind.SERVER,
            attributes={
                "gen_ai.operation.name": operation,
                "http.request.method": scope["method"],
                "http.route": scope["path"],
                "url.path": scope["path"],
                "url.scheme": scope.get("scheme", "http"),
                **_served_at(scope),
            },
        )
        return RequestSpan(self._tracer, span, operation)

    def close(self) -> None:
        """Send what is left, as far as that can be done in `CLOSE_SECONDS`."""
        closing = threading.Thread(target=self._provider.shutdown, daemon=True)
        closing.start()
        closing.join(CLOSE_SECONDS)


def exporting(settings: TracingSettings) -> OpenTelemetry:
    """Return a tracer that sends spans by OTLP over HTTP.

    What the settings do not say is as the variables of OpenTelemetry have it:
    headers, time limits, sampling, sizes of batches, attributes of the resource.
    """
    endpoint = settings.endpoint
    if endpoint is not None and not urlsplit(endpoint).path.strip("/"):
        endpoint = endpoint.rstrip("/") + "/v1/traces"
    # What the variables say of the resource is stronger than what we do.
    resource = Resource({"service.version": __version__}).merge(Resource.create())
    if str(resource.attributes.get("service.name", "")).startswith("unknown"):
        resource = resource.merge(Resource({"service.name": SERVICE}))
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(endpoint=endpoint)))
    return OpenTelemetry(provider)


def _served_at(scope: Mapping[str, Any]) -> dict[str, Any]:
    server = scope.get("server") or (None, None)
    told = {"server.address": server[0], "server.port": server[1]}
    return {name: value for name, value in told.items() if value is not None}


def _fail(span: Span, why: str, *, status: int = 500) -> None:
    """Take note of an error; what the client did wrong is none of the server's."""
    span.set_attribute("error.type", why)
    if status >= 500:
        span.set_status(Status(StatusCode.ERROR, why))
