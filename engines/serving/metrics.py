"""The scheduler's numbers for Prometheus, in the front end of a server.

`metrics` turns what desks say (`Desk`, verb ``measures``) into metrics; `Scrape` keeps
it and is a collector for a ``prometheus_client`` registry. No metric has an agent's id
as a label. Where a server has several schedulers (data parallelism), each has its own
clock and its own series, told apart by ``rank``.

=================================================  =========  ==========================
metric                                             type       what
=================================================  =========  ==========================
``justitia_adapter_info``                          gauge 1    labels engine,
                                                              engine_version, version
                                                              (of justitia), policy,
                                                              admission
``justitia_agents_known``                          gauge      agents that the scheduler
                                                              remembers
``justitia_agents_active``                         gauge      agents that the fair
                                                              reference has not finished
``justitia_agents_forgotten_total``                counter    agents without a request
                                                              for too long, forgotten
                                                              before they had ended
``justitia_oldest_agent_age_seconds``              gauge      since the oldest of those
                                                              known arrived
``justitia_virtual_time_token_steps``              gauge      V, service per unit weight
``justitia_requests_waiting``                      gauge      requests in line
``justitia_requests_running``                      gauge      requests started
``justitia_preemptions_total``                     counter    requests put back in line
                                                              after they ran
``justitia_faults_total``                          counter    values of clients that
                                                              could not be used, by
                                                              field
``justitia_agent_completion_seconds``              histogram  arrival of an agent to the
                                                              end of its last request,
                                                              by kind
``justitia_start_slack_token_steps``               histogram  first starts before the
                                                              reference finished the
                                                              agent: work delivered
                                                              from then to there
``justitia_start_lag_token_steps``                 histogram  first starts after that:
                                                              work delivered since
``justitia_starts_unmeasured_total``               counter    first starts in neither
=================================================  =========  ==========================

Those of the reference are absent under a policy without one. ``justitia.engines.\
serving.watch`` says exactly what slack and lag are.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
)
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

FRESH_SECONDS = 1.0
"""For which what a desk said is good enough."""

Measures = Mapping[str, Any]

_INFO = ("engine", "engine_version", "version", "policy", "admission")
_GAUGES = {
    "agents_known": ("agents", "Agents that the scheduler remembers."),
    "agents_active": (
        "agents_active",
        "Agents that the fair reference has not finished.",
    ),
    "oldest_agent_age_seconds": (
        "oldest_agent_seconds",
        "Since the oldest of the agents known arrived, 0 without one.",
    ),
    "virtual_time_token_steps": (
        "virtual_time",
        "Service that the fair reference gave each agent, per unit weight.",
    ),
    "requests_waiting": ("waiting", "Requests in line."),
    "requests_running": ("running", "Requests that were started and have not ended."),
}
_COUNTERS = {
    "agents_forgotten": (
        "agents_forgotten",
        "Agents without a request for too long, forgotten before they had ended.",
    ),
    "preemptions": ("preemptions", "Requests put back in line after they ran."),
    "starts_unmeasured": ("unmeasured", "First starts whose slack was not measured."),
}
_STARTS = {
    "slack": "Work delivered from the first start of a request until the fair "
    "reference finished its agent, told when it has.",
    "lag": "Work delivered from when the fair reference had finished an agent until "
    "the first start of a request of it.",
}


def metrics(ranks: Sequence[Measures]) -> Iterator[Metric]:
    """Yield the metrics of a server with these schedulers."""
    info = GaugeMetricFamily(
        "justitia_adapter_info",
        "Justitia decides the order in which requests start.",
        labels=(*_INFO, "rank"),
    )
    for rank, told in enumerate(ranks):
        info.add_metric([*(str(told[name]) for name in _INFO), str(rank)], 1)
    yield info
    for name, (field, text) in _GAUGES.items():
        gauge = GaugeMetricFamily(f"justitia_{name}", text, labels=("rank",))
        for rank, told in enumerate(ranks):
            if told[field] is not None:
                gauge.add_metric([str(rank)], told[field])
        yield gauge
    for name, (field, text) in _COUNTERS.items():
        counter = CounterMetricFamily(f"justitia_{name}", text, labels=("rank",))
        for rank, told in enumerate(ranks):
            counter.add_metric([str(rank)], told[field])
        yield counter
    faults = CounterMetricFamily(
        "justitia_faults",
        "Values that clients sent and that could not be used.",
        labels=("field", "rank"),
    )
    for rank, told in enumerate(ranks):
        for field, count in told["faults"].items():
            faults.add_metric([field, str(rank)], count)
    yield faults
    completion = HistogramMetricFamily(
        "justitia_agent_completion_seconds",
        "From the arrival of an agent to the end of its last request.",
        labels=("kind", "rank"),
    )
    for rank, told in enumerate(ranks):
        for kind, histogram in told["histograms"]["completion"].items():
            completion.add_metric([kind, str(rank)], **_buckets(histogram))
    yield completion
    for name, text in _STARTS.items():
        work = HistogramMetricFamily(
            f"justitia_start_{name}_token_steps", text, labels=("rank",)
        )
        for rank, told in enumerate(ranks):
            work.add_metric([str(rank)], **_buckets(told["histograms"][name]))
        yield work


class Scrape(Collector):
    """What the desks said last; asked for again when it is no longer fresh.

    Parameters
    ----------
    now
        The time in seconds, never going back.
    """

    def __init__(self, now: Callable[[], float]) -> None:
        self._now = now
        self._ranks: Sequence[Measures] = ()
        self._taken: float | None = None

    @property
    def fresh(self) -> bool:
        """Whether there is no need to ask again."""
        return self._taken is not None and self._now() - self._taken < FRESH_SECONDS

    def put(self, ranks: Sequence[Measures]) -> None:
        """Take what the desks say now; nothing of an engine that is gone."""
        self._ranks = ranks
        self._taken = self._now()

    def collect(self) -> Iterator[Metric]:
        """Yield the metrics, for a registry; none before anything was put."""
        return metrics(self._ranks) if self._ranks else iter(())

    def describe(self) -> Iterator[Metric]:
        """Yield nothing: registering asks for no metrics."""
        return iter(())

    def text(self) -> bytes:
        """Return the metrics in Prometheus' text format."""
        registry = CollectorRegistry()
        registry.register(self)
        return generate_latest(registry)


def _buckets(histogram: Mapping[str, Any]) -> dict[str, Any]:
    bounds = [*(str(float(bound)) for bound in histogram["bounds"]), "+Inf"]
    counts = accumulate(histogram["counts"])
    return {
        "buckets": list(zip(bounds, counts, strict=True)),
        "sum_value": histogram["sum"],
    }
