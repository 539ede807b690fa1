"""The metrics, as Prometheus reads them."""

import json
import re

import pytest

pytest.importorskip("prometheus_client", reason="comes with the extra gateway")

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.parser import (
    text_string_to_metric_families as parsed,
)

from justitia.engines.serving import Claim
from justitia.engines.serving import metrics as module
from justitia.engines.serving.metrics import Scrape
from tests.engines.serving.test_desk import Office
from tests.engines.serving.test_watch import Time


def scrape(*offices: Office) -> Scrape:
    kept = Scrape(lambda: 0.0)
    kept.put([office.ask("measures") for office in offices])
    return kept


def busy(policy: str = "justitia", kind: str = "MRS") -> Office:
    office = Office(policy)
    agents = office.agents
    for number in range(3):
        agents.submit(str(number), Claim(f"a{number}", kind=kind, inferences=1), 10, 5)
    agents.start("0")
    agents.serve({"0": 10}, {"0": 1})
    agents.serve({}, {"0": 4})
    office.now = 4.0
    agents.finish("0")
    agents.start("1")
    agents.serve({"1": 10}, {"1": 1})
    agents.serve({}, {"1": 30})
    agents.requeue("1")
    return office


def test_every_metric_is_in_the_table_and_the_other_way_round() -> None:
    table = set(re.findall(r"``(justitia_\w+)``", module.__doc__ or ""))
    told = {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in parsed(scrape(busy()).text().decode())
    }
    assert told == table


def test_values() -> None:
    families = {f.name: f for f in parsed(scrape(busy()).text().decode())}
    samples = {
        (s.name, s.labels.get("kind", "")): s.value
        for family in families.values()
        for s in family.samples
        if "le" not in s.labels and "field" not in s.labels
    }
    assert samples["justitia_agents_known", ""] == 2
    assert samples["justitia_requests_waiting", ""] == 2
    assert samples["justitia_requests_running", ""] == 0
    assert samples["justitia_preemptions_total", ""] == 1
    assert samples["justitia_agent_completion_seconds_count", "MRS"] == 1
    assert samples["justitia_agent_completion_seconds_sum", "MRS"] == 4
    # The reference finishes all three when each has had 65, and one started at 65.
    assert samples["justitia_start_slack_token_steps_sum", ""] == 195 + 130
    buckets = [
        s.value
        for s in families["justitia_start_slack_token_steps"].samples
        if "le" in s.labels
    ]
    assert buckets == sorted(buckets)
    assert buckets[-1] == 2


def test_names_follow_prometheus_rules() -> None:
    for family in parsed(scrape(busy()).text().decode()):
        assert re.fullmatch(r"justitia_[a-z_]+", family.name)
        assert family.documentation
        if family.type == "histogram":
            assert family.name.endswith(("_seconds", "_token_steps"))
        if family.type == "counter":
            assert all(s.name.endswith("_total") for s in family.samples)


def test_a_kind_is_a_safe_label_and_an_agent_is_none_b35() -> None:
    kind = 'MRS",rank="7"}\\ 日本'
    text = scrape(busy(kind=kind)).text().decode()
    kinds = {
        s.labels["kind"]
        for family in parsed(text)
        for s in family.samples
        if "kind" in s.labels
    }
    assert kinds == {kind}
    assert "agent/" not in text
    assert "a0" not in text


def test_without_a_reference_its_metrics_have_no_values() -> None:
    families = {f.name: f for f in parsed(scrape(busy("fcfs")).text().decode())}
    assert not families["justitia_virtual_time_token_steps"].samples
    assert not families["justitia_agents_active"].samples
    assert families["justitia_agents_known"].samples


def test_every_scheduler_has_its_series() -> None:
    text = scrape(busy(), busy()).text().decode()
    for family in parsed(text):
        assert {s.labels["rank"] for s in family.samples} == {"0", "1"}


def test_it_is_asked_once_a_second_and_shows_nothing_of_an_engine_that_is_gone() -> (
    None
):
    time = Time()
    kept = Scrape(time)
    registry = CollectorRegistry()
    registry.register(kept)
    fresh = [kept.fresh]
    assert generate_latest(registry) == b""
    kept.put([busy().ask("measures")])
    for now in (0.0, 0.9, 1.0):
        time.now = now
        fresh.append(kept.fresh)
    assert fresh == [False, True, True, False]
    assert b"justitia_adapter_info" in generate_latest(registry)
    kept.put(())
    assert generate_latest(registry) == b""


def test_measures_are_json() -> None:
    assert json.loads(json.dumps(busy().ask("measures")))["histograms"]["slack"][
        "counts"
    ]
