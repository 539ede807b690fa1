"""The gateway's own numbers for Prometheus; those of the policy are beside them.

================================================  =========  ===========================
metric                                            type       what
================================================  =========  ===========================
``justitia_gateway_requests_total``               counter    by tenant, endpoint, status
                                                             and code of the error
``justitia_gateway_queue_seconds``                histogram  in line, by tenant
``justitia_gateway_first_byte_seconds``           histogram  until the first part of a
                                                             stream, by tenant
``justitia_gateway_tokens_total``                 counter    produced, by tenant
``justitia_gateway_sent_again_total``             counter    calls, since their engine
                                                             was gone
``justitia_gateway_calls_waiting``                gauge      in line
``justitia_gateway_engine_up``                    gauge      by engine
``justitia_gateway_engine_kv_tokens``             gauge      by engine and what: used,
                                                             capacity
``justitia_gateway_engine_inferences``            gauge      running, by engine
================================================  =========  ===========================

A label is a tenant or engine of the configuration or a word of ours: nothing that a
client sends becomes one, but for the kind of agents, of which there are 32 at most.
"""

from collections.abc import Iterator

from prometheus_client import CollectorRegistry, Counter, Histogram
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from justitia.gateway.dispatcher import Dispatcher
from justitia.gateway.exchange import Outcome

_QUEUE = (0.005, 0.025, 0.1, 0.25, 1, 2.5, 10, 25, 100, 250, 1000)


class Measures:
    """Counts outcomes; register `books` for the rest."""

    def __init__(self, registry: CollectorRegistry, dispatcher: Dispatcher) -> None:
        self._requests = Counter(
            "justitia_gateway_requests",
            "Requests that have ended.",
            ("tenant", "endpoint", "status", "code"),
            registry=registry,
        )
        self._queue = Histogram(
            "justitia_gateway_queue_seconds",
            "Seconds that requests were in line.",
            ("tenant",),
            buckets=_QUEUE,
            registry=registry,
        )
        self._first = Histogram(
            "justitia_gateway_first_byte_seconds",
            "Seconds until the first part of a stream.",
            ("tenant",),
            buckets=_QUEUE,
            registry=registry,
        )
        self._tokens = Counter(
            "justitia_gateway_tokens",
            "Tokens produced.",
            ("tenant",),
            registry=registry,
        )
        registry.register(Books(dispatcher))

    def count(self, tenant: str, endpoint: str, outcome: Outcome) -> None:
        """Take note of how a request ended."""
        self._requests.labels(tenant, endpoint, str(outcome.status), outcome.code).inc()
        self._queue.labels(tenant).observe(outcome.queued)
        if outcome.first is not None:
            self._first.labels(tenant).observe(outcome.first)
        if outcome.tokens:
            self._tokens.labels(tenant).inc(outcome.tokens)


class Books(Collector):
    """What the dispatcher's books say when they are asked."""

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics."""
        dispatcher = self._dispatcher
        yield CounterMetricFamily(
            "justitia_gateway_sent_again",
            "Calls that were sent again, since their engine was gone.",
            value=dispatcher.sent_again,
        )
        yield GaugeMetricFamily(
            "justitia_gateway_calls_waiting", "Calls in line.", dispatcher.waiting
        )
        up = GaugeMetricFamily(
            "justitia_gateway_engine_up", "Whether it answers.", labels=("engine",)
        )
        tokens = GaugeMetricFamily(
            "justitia_gateway_engine_kv_tokens",
            "KV tokens that are set aside, and that there are.",
            labels=("engine", "what"),
        )
        inferences = GaugeMetricFamily(
            "justitia_gateway_engine_inferences",
            "Inferences that run there.",
            labels=("engine",),
        )
        for engine in dispatcher.fleet:
            up.add_metric([engine.name], int(engine.up))
            tokens.add_metric([engine.name, "used"], engine.used)
            if engine.capacity is not None:
                tokens.add_metric([engine.name, "capacity"], engine.capacity)
            inferences.add_metric([engine.name], engine.running)
        yield from (up, tokens, inferences)

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: registering asks for no metrics."""
        return iter(())
