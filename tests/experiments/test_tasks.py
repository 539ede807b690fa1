"""What cells do, against something that does it otherwise."""

import pytest

from justitia.engines.compare import Comparison, run_all
from justitia.engines.scenario import build
from justitia.engines.sim import SimEngine, load_preset
from justitia.experiments.compared import beside
from justitia.experiments.tasks import perform
from justitia.experiments.tasks.decide import decide
from justitia.experiments.tasks.grow import grow
from justitia.experiments.tasks.observed import Observed, Recorder, Stopwatch
from justitia.experiments.tasks.starve import starve
from justitia.policy import create, names
from justitia.predictors import Oracle
from tests.experiments.small import simulated

PRESET = "llama-7b-a100-40g"


def test_a_run_is_that_of_justitia_run() -> None:
    """Means, gains and delays are those that `justitia run` prints."""
    scenario = build(load_preset(PRESET), agents=30, density=2, seed=7)
    comparison = Comparison(
        scenario,
        {"name": "sim", "preset": PRESET},
        {"justitia": {"tags": "agent"}, "vtc": {}},
    )
    theirs = {one.policy: one.summary for one in run_all(comparison)}
    mine = {
        policy: perform(simulated(policy, agents=30))["result"] for policy in theirs
    }
    found = beside(mine["justitia"], mine["vtc"])
    summary = theirs["justitia"]
    assert found.gain == pytest.approx(summary.gain_vs_vtc)
    assert found.later == pytest.approx(summary.share_later)
    assert found.worst == pytest.approx(summary.worst_later)
    assert mine["justitia"]["lag"]["ratio"] == pytest.approx(summary.max_lag_ratio)
    assert mine["justitia"]["steps"] == summary.steps


@pytest.mark.parametrize("policy", names())
def test_to_be_watched_changes_nothing(policy: str) -> None:
    scenario = build(load_preset(PRESET), agents=12, density=3, seed=3)
    watched = scenario.agents[0].id
    plain = SimEngine(load_preset(PRESET)).run(
        scenario.agents, create(policy), Oracle()
    )
    for observed in (
        Observed(create(policy)),
        Recorder(create(policy), watched),
        Stopwatch(create(policy)),
    ):
        assert (
            SimEngine(load_preset(PRESET), check=True).run(
                scenario.agents, observed, Oracle()
            )
            == plain
        )


def test_a_recorder_adds_up() -> None:
    scenario = build(load_preset(PRESET), agents=12, density=3, seed=3)
    watched = scenario.agents[2]
    recorder = Recorder(create("vtc"), watched.id)
    record = SimEngine(load_preset(PRESET), admission="max").run(
        scenario.agents, recorder, Oracle()
    )
    end, served, mine = recorder.curve[-1]
    assert served == sum(agent.cost for agent in record.agents)
    assert mine == watched.cost()
    assert end == pytest.approx(max(agent.finish or 0 for agent in record.agents))
    assert recorder.curve == sorted(recorder.curve)
    assert 0 < recorder.most_owed <= served


def test_an_elephant_starves_under_srjf_and_not_under_justitia() -> None:
    found = {
        policy: starve(
            policy=policy, seed=7, preset=PRESET, mice=150, rate=1.15, options=options
        )["result"]
        for policy, options in (("srjf", {}), ("justitia", {"tags": "stage"}))
    }
    assert found["justitia"]["elephant"] <= found["justitia"]["bound"]
    assert found["justitia"]["reference"] <= found["justitia"]["bound"]
    assert found["justitia"]["preemptions"] == 0
    for run in found.values():
        shares = [share for _, share in run["progress"]]
        assert shares == sorted(shares)
        assert shares[-1] == pytest.approx(1.0)


def test_a_decision_is_timed_for_every_policy() -> None:
    for policy in names():
        outcome = decide(policy=policy, waiting=100)
        assert outcome["result"] == {"waiting": 100, "running": 64}
        assert all(took > 0 for took in outcome["timings"].values())


def test_growth_is_measured_in_another_process() -> None:
    outcome = grow(policy="vtc", seed=7, preset=PRESET, inferences=100)
    assert outcome["result"]["agents"] == 10
    assert outcome["timings"]["peak_mib"] > 1
    again = grow(policy="vtc", seed=7, preset=PRESET, inferences=100)
    assert again["result"] == outcome["result"]
