"""Learning on from agents that finish."""

from collections.abc import Sequence
from dataclasses import replace
from math import exp, inf, log, nan
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.predictors import extra  # noqa: F401 - skips where torch is not

# After it: these load torch and scikit-learn.
import numpy as np  # isort: skip

from justitia.policy import COST_MODELS, KVTokenTime, PolicyError  # isort: skip
from justitia.predictors import Predictor, create  # isort: skip
from justitia.predictors.errors import TrainingError  # isort: skip
from justitia.predictors.learned import Learned  # isort: skip
from justitia.predictors.files import save  # isort: skip
from justitia.predictors.kinds import ROOM  # isort: skip
from justitia.predictors.online import (  # isort: skip
    ENOUGH,
    MOST_AGENTS,
    MOST_KINDS,
    Drift,
    Online,
    Train,
    trains,
)
from justitia.predictors.s3 import S3  # isort: skip
from justitia.predictors.s3.classifier import Size  # isort: skip
from justitia.predictors.s3.files import save as save_s3  # isort: skip
from justitia.predictors.training import train  # isort: skip
from justitia.workloads import AgentSpec  # isort: skip
from tests.predictors.models import QUICK, Stub, agents, trained  # isort: skip
from tests.workloads.builders import agent, call  # isort: skip

KV = KVTokenTime()
MODEL = trained()


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
    changed = [heavier(one, 4) for one in agents("SC", 20, 500)]
    before = error(model, changed)
    for one in agents("SC", 60, first=200):
        model.learn(heavier(one, 4), KV)
        model._check()
    assert error(model, changed) < 0.6 * before
    assert model.estimate_of(agents("FVP", 1)[0]) == trained().estimate_of(
        agents("FVP", 1)[0]
    )


def test_it_follows_costs_that_drift_and_says_so() -> None:
    """A class as it was in training, then 4 times as heavy, then as it was again."""
    model, fixed = Online(trained()), trained()
    errors: dict[str, list[tuple[float, float]]] = {}
    for phase, times, first in (("same", 1, 200), ("more", 4, 400), ("back", 1, 600)):
        for place, one in enumerate(agents("SC", 60, first)):
            real = heavier(one, times)
            told = model.predict(real, KV)  # Prediction checks that they are costs
            own = model.live.models["SC"]
            assert exp(own.floor) * (1 - 1e-9) <= told.cost
            assert told.high is not None
            assert told.cost <= exp(own.cap) * (1 + 1e-9)
            assert told.high <= exp(own.cap + ROOM) * (1 + 1e-9)
            if place >= 30:
                cost = float(real.cost(KV))
                errors.setdefault(phase, []).append(
                    (
                        abs(1 - float(told.cost) / cost),
                        abs(1 - fixed.estimate_of(real).cost / cost),
                    )
                )
            model.learn(real, KV)
            model._check()
        assert model.counts["drift"] == {"same": 0, "more": 1, "back": 2}[phase]
    online, plain = (
        {phase: np.mean([pair[k] for pair in some]) for phase, some in errors.items()}
        for k in (0, 1)
    )
    assert online["same"] < 1.15 * plain["same"]
    assert online["more"] < 0.65 * plain["more"]
    assert online["back"] < 1.3 * plain["back"]
    assert model.notes()[-1] == "drift: what class 'SC' costs has changed 2 times"
    assert model.due == ("SC",)


def test_it_tells_drift_from_noise() -> None:
    model = Online(trained())
    for one in agents("SC", 60, first=200):
        model.learn(one, KV)
    assert not model.due
    assert model.notes() == ()
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


@pytest.mark.parametrize("name", sorted(COST_MODELS))
def test_it_follows_under_any_cost_model(name: str) -> None:
    cost_model = COST_MODELS[name]()
    model, fixed = Online(trained()), trained()
    for one in agents("MRS", 40, first=200):
        model.learn(heavier(one, 3), cost_model)
    judged = [heavier(one, 3) for one in agents("MRS", 20, first=500)]

    def wrong(by: Predictor) -> float:
        return float(
            np.mean(
                [
                    abs(
                        1
                        - float(by.predict(one, cost_model).cost / one.cost(cost_model))
                    )
                    for one in judged
                ]
            )
        )

    assert wrong(model) < 0.7 * wrong(fixed)


def test_learning_counts_no_answer() -> None:
    model = Online(trained())
    for one in agents("SC", 12, first=200):
        model.predict(one, KV)
        model.learn(one, KV)
    assert model.live.counts == {"class": 12}
    model.retrain("SC", quick)
    assert model.live.counts.total() == 12
    model.predict(agents("SC", 1)[0], KV)
    assert model.live.counts.total() == 13


def others(count: int, first: int) -> list[AgentSpec]:
    """Return agents of class SC that do what two other classes do, by turns."""
    pairs = zip(agents("MRS", count, first), agents("FVP", count, first), strict=True)
    return [replace(one, kind="SC") for pair in pairs for one in pair]


def test_a_better_model_takes_over() -> None:
    """No factor could correct the old one: some cost more now, some less."""
    model = Online(trained())
    for one in others(40, first=200):
        model.learn(one, KV)
    live, kept = model.live, [*agents("FVP", 3), *agents("MRS", 3)]
    before = [live.uncounted(one) for one in kept]
    assert model.retrain("SC", quick)
    assert model.live is not live
    assert not model.due
    assert model.counts["replaced"] == 1
    assert [model.live.uncounted(one) for one in kept] == before
    assert model.live.seen > live.seen
    assert "class 'SC' has a new model, of its last agents" in model.notes()
    model._check()


def test_a_class_that_changed_gets_a_new_model_when_it_has_enough_agents() -> None:
    model = Online(trained(), quick)
    for one in others(70, first=200):
        model.learn(one, KV)
        model._check()
        if model.counts["replaced"]:
            break
    assert ENOUGH <= model.counts["learned"] <= 2 * ENOUGH
    assert model.correction("SC") == 0
    judged = others(10, first=500)
    assert error(model, judged) < 0.3 * error(Online(trained()), judged)


def test_b35_a_class_that_was_never_seen_is_learned() -> None:
    model = Online(trained(), quick)
    new = agents("CC", ENOUGH + 20)
    assert model.predict(new[0], KV).source == "ready"
    for one in new[:ENOUGH]:
        model.learn(one, KV)
        model._check()
    assert model.counts["replaced"] == 1
    assert model.predict(new[0], KV).source == "class"
    assert error(model, new[ENOUGH:]) < error(Online(trained()), new[ENOUGH:])


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
     lambda taught: wrong(log(1e30)), lambda taught: quick(agents("MRS"))],
)  # fmt: skip
def test_b34_training_that_fails_leaves_the_live_model(training: Train) -> None:
    model = Online(trained())
    for one in agents("SC", 30, first=200):
        model.learn(one, KV)
    live, asked = model.live, agents("SC", 5, 90)
    before = [model.predict(one, KV) for one in asked]
    assert not model.retrain("SC", training)
    assert model.live is live
    assert [model.predict(one, KV) for one in asked] == before
    assert model.counts["kept"] == 1
    model._check()


def test_a_training_that_came_to_nothing_is_not_made_again_at_once() -> None:
    asked: list[int] = []

    def counted(taught: Sequence[AgentSpec]) -> Learned:
        asked.append(len(taught))
        return silent(taught)

    model = Online(trained(), counted)
    for one in agents("CC", 3 * ENOUGH):
        model.learn(one, KV)
    assert len(asked) == 3
    assert model.counts["kept"] == 3


def test_b32_empty_prompts_leave_the_live_model() -> None:
    model = Online(trained())
    for number in range(100):
        model.learn(agent(call(9, 9), id=str(number), kind="K"), KV)
    live = model.live
    assert not model.retrain("K", trains(0))
    assert model.live is live


def test_nothing_learned_is_no_reason_for_a_new_model() -> None:
    assert not Online(trained()).retrain("SC", lambda taught: trained())
    taught = Online(trained())
    taught.learn(agents("SC", 1)[0], KV)
    assert not taught.retrain("SC")


def test_b35_memory_is_bounded() -> None:
    model = Online(trained())
    for number in range(MOST_KINDS + 50):
        model.learn(agent(call(9, 9), id="x", kind=f"new {number}"), KV)
    for number in range(MOST_AGENTS + 10):
        model.learn(agent(call(9, 9), id=str(number), kind="new 1"), KV)
    model.learn(AgentSpec("none", ()), KV)
    model._check()
    assert model.counts["learned"] == MOST_KINDS + MOST_AGENTS + 10


@given(
    st.lists(
        st.tuples(
            st.sampled_from(("SC", "DM", "new", "")),
            st.integers(0, 2**62),
            st.integers(0, 2**62),
        ),
        max_size=40,
    ),
    st.sampled_from(sorted(COST_MODELS)),
)
def test_whatever_has_finished_a_prediction_is_costs(
    finished: list[tuple[str, int, int]], name: str
) -> None:
    cost_model = COST_MODELS[name]()
    model = Online(MODEL)
    for number, (kind, prompt, decode) in enumerate(finished):
        one = agent(call(prompt, decode), id=str(number), kind=kind, text="a summary")
        told = model.predict(one, cost_model)  # Prediction checks
        assert told.high is not None
        assert told.high >= told.cost
        model.learn(one, cost_model)
        model._check()


# By name ------------------------------------------------------------------------------


def test_create_makes_one_of_a_directory(tmp_path: Path) -> None:
    save(trained(), tmp_path / "model")
    made = create(f"online:{tmp_path / 'model'}", seed=5)
    assert isinstance(made, Online)
    assert made.name == f"online:{tmp_path / 'model'}"
    (one,) = agents("SC", 1)
    assert made.predict(one, KV) == trained().predict(one, KV)


@pytest.mark.parametrize("text", ["online", "online:", "Online:x"])
def test_it_needs_a_directory(text: str) -> None:
    with pytest.raises(PolicyError, match="online:DIR"):
        create(text)
    with pytest.raises(PolicyError, match="no: not a model"):
        create("online:no")


def test_it_needs_a_model_of_classes(tmp_path: Path) -> None:
    s3 = S3(size=Size(200, 8, 1, 2, 16, 16), epochs=1).fit(agents("SC", 5))
    save_s3(s3, tmp_path / "s3")
    with pytest.raises(PolicyError, match="online:DIR takes a model of networks"):
        create(f"online:{tmp_path / 's3'}")


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
