"""Learning on from agents that finish."""

from collections.abc import Sequence
from dataclasses import replace
from math import inf, log, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.predictors import extra  # noqa: F401 - skips where torch is not

# After it: these load torch and scikit-learn.
import numpy as np  # isort: skip

from justitia.policy import KVTokenTime  # isort: skip
from justitia.predictors.errors import TrainingError  # isort: skip
from justitia.predictors.learned import Learned  # isort: skip
from justitia.predictors.online import MOST_AGENTS, MOST_KINDS, Drift, Online  # isort: skip
from justitia.predictors.training import train  # isort: skip
from justitia.workloads import AgentSpec  # isort: skip
from tests.predictors.models import QUICK, Stub, agents, trained  # isort: skip
from tests.workloads.builders import agent, call  # isort: skip

KV = KVTokenTime()


def heavier(one: AgentSpec, times: int) -> AgentSpec:
    """Return an agent of the same text that makes each call so many times."""
    calls = [replace(i, id="") for i in one.inferences for _ in range(times)]
    return replace(one, inferences=tuple(calls))


def error(model: Online, judged: Sequence[AgentSpec]) -> float:
    return float(
        np.mean(
            [abs(1 - model.estimate_of(a).cost / float(a.cost(KV))) for a in judged]
        )
    )


def quick(taught: Sequence[AgentSpec]) -> Learned:
    return train(taught, options=QUICK)


def test_it_follows_a_class_that_has_changed() -> None:
    model = Online(trained())
    before = error(model, [heavier(one, 4) for one in agents("SC", 20, 500)])
    for one in agents("SC", 60, first=200):
        model.learn(heavier(one, 4), KV)
        model._check()
    after = error(model, [heavier(one, 4) for one in agents("SC", 20, 500)])
    assert after < 0.6 * before
    assert model.estimate_of(agents("FVP", 1)[0]) == trained().estimate_of(
        agents("FVP", 1)[0]
    )


def test_it_tells_drift_from_noise() -> None:
    model = Online(trained())
    for one in agents("SC", 60, first=200):
        model.learn(one, KV)
    assert not model.due
    for one in agents("SC", 60, first=400):
        model.learn(heavier(one, 4), KV)
    assert model.due == ("SC",)
    assert model.counts["drift"] == 1


def test_what_it_learned_enters_a_prediction() -> None:
    model = Online(trained())
    (one,) = agents("MRS", 1, 77)
    plain = model.predict(one, KV)
    for other in agents("MRS", 30, first=200):
        model.learn(heavier(other, 4), KV)
    told = model.predict(one, KV)
    assert told.cost > 1.5 * plain.cost
    assert told.high is not None
    assert told.high >= told.cost
    assert sum(told.stage_costs) == pytest.approx(told.cost)
    assert told.cost == pytest.approx(model.estimate_of(one).cost)


def test_a_better_model_takes_over() -> None:
    model = Online(trained())
    for one in agents("SC", 60, first=200):
        model.learn(heavier(one, 4), KV)
    live = model.live
    assert model.retrain(quick)
    assert model.live is not live
    assert not model.due
    assert model.counts["replaced"] == 1
    model._check()


def diverging(taught: Sequence[AgentSpec]) -> Learned:
    return train(taught, options={**QUICK, "learning_rate": 1e30})


def silent(taught: Sequence[AgentSpec]) -> Learned:
    raise TrainingError("there is nothing to learn from")


def wrong(said: float) -> Learned:
    made = trained()
    for known in made.models.values():
        known.text = Stub(said)
    return made


@pytest.mark.parametrize(
    "training",
    [diverging, silent, lambda taught: wrong(nan), lambda taught: wrong(inf),
     lambda taught: wrong(log(1e30))],
)  # fmt: skip
def test_b34_training_that_fails_leaves_the_live_model(training: object) -> None:
    model = Online(trained())
    for one in agents("SC", 30, first=200):
        model.learn(one, KV)
    live, asked = model.live, agents("SC", 5, 90)
    before = [model.predict(one, KV) for one in asked]
    assert not model.retrain(training)  # type: ignore[arg-type]
    assert model.live is live
    assert [model.predict(one, KV) for one in asked] == before
    assert model.counts["kept"] == 1


def test_b32_empty_prompts_leave_the_live_model() -> None:
    model = Online(trained())
    for number in range(100):
        model.learn(agent(call(9, 9), id=str(number), kind="K"), KV)
    live = model.live
    assert not model.retrain()
    assert model.live is live


def test_nothing_learned_is_no_reason_for_a_new_model() -> None:
    assert not Online(trained()).retrain(lambda taught: trained())


def test_b35_memory_is_bounded() -> None:
    model = Online(trained())
    for number in range(MOST_KINDS + 50):
        model.learn(agent(call(9, 9), id="x", kind=f"new {number}"), KV)
    for number in range(MOST_AGENTS + 10):
        model.learn(agent(call(9, 9), id=str(number), kind="new 1"), KV)
    model.learn(AgentSpec("none", ()), KV)
    model._check()
    assert model.counts["learned"] == MOST_KINDS + MOST_AGENTS + 10


@given(st.lists(st.floats(0, 10), max_size=200))
def test_drift_never_breaks(values: list[float]) -> None:
    drift = Drift()
    for value in values:
        drift.add(value)
        drift._check()


def test_drift_sees_a_step_and_no_constant() -> None:
    drift = Drift()
    assert not any(drift.add(1.0) for _ in range(500))
    draw = np.random.default_rng(0)
    drift = Drift()
    assert not any(drift.add(abs(x)) for x in draw.normal(size=100))
    assert any(drift.add(abs(x)) for x in draw.normal(3, size=100))
