"""Training: what is refused, what is repeatable, and how good it is on real agents."""

from dataclasses import replace
from random import Random

import pytest

from tests.predictors import extra  # noqa: F401 - skips where torch is not

# After it: these load torch and scikit-learn.
import numpy as np  # isort: skip

from justitia.policy import KVTokenTime  # isort: skip
from justitia.predictors import TrainingError, data, splits  # isort: skip
from justitia.predictors.data import fingerprint  # isort: skip
from justitia.predictors.training import train  # isort: skip
from justitia.workloads import AgentSpec  # isort: skip
from tests.predictors.models import KINDS, QUICK, agents, trained  # isort: skip
from tests.workloads.builders import DATA, NO_DATA, agent, call  # isort: skip

KV = KVTokenTime()


def test_b32_a_hundred_empty_prompts_are_a_training_error() -> None:
    empty = [agent(call(5 + k, 5), id=str(k), kind="K") for k in range(100)]
    with pytest.raises(TrainingError, match="none of 100 agents has a text"):
        train(empty)
    blanks = [replace(one, text=" ? 1") for one in empty]
    with pytest.raises(TrainingError, match="nothing to learn from"):
        train(blanks)


@pytest.mark.parametrize("given", [[], [AgentSpec("a", (), "K", text="no inference")]])
def test_no_agents_are_a_training_error(given: list[AgentSpec]) -> None:
    with pytest.raises(TrainingError, match="no agents"):
        train(given)


def test_agents_without_a_class_are_a_class() -> None:
    nameless = [replace(one, kind="") for one in agents("SC", 20)]
    for known in (nameless, [*nameless, *agents("FVP", 20)]):
        model = train(known, options=QUICK)
        assert "" in model.kinds
        assert model.estimate("", nameless[0].text).source == "class"
        model._check()


@pytest.mark.parametrize("most", [0, -1, 1.5, None])
def test_the_most_agents_must_be_a_count(most: int) -> None:
    with pytest.raises(TrainingError, match="count from 1"):
        train(agents("SC", 12), most=most)


def test_the_same_seed_gives_the_same_model_in_any_number_of_processes() -> None:
    known = [one for kind in ("SC", "FVP") for one in agents(kind, 20)]
    first = train(known, seed=5, options=QUICK)
    second = train(known, seed=5, options=QUICK, jobs=2)
    third = train(known, seed=6, options=QUICK)
    judged = [one for kind in ("SC", "FVP", "new") for one in agents("SC", 5, 90)]
    costs = [
        [model.predict(one, KV) for one in judged] for model in (first, second, third)
    ]
    assert costs[0] == costs[1]
    assert costs[0] != costs[2]


def test_progress_is_told_of_each_model() -> None:
    told: list[tuple[int, int, str]] = []
    known = [one for kind in ("SC", "FVP") for one in agents(kind, 12)]
    train(known, options=QUICK, progress=lambda *step: told.append(step))
    assert [done for done, _, _ in told] == [1, 2, 3]
    assert {kind for _, _, kind in told} == {"", "SC", "FVP"}
    assert {whole for _, whole, _ in told} == {3}


def test_it_remembers_the_groups_that_it_was_trained_on() -> None:
    known = agents("SC", 30)
    groups = {one.id: f"g{place // 3}" for place, one in enumerate(known)}
    model = train(known, groups=groups, most=12, options=QUICK)
    assert model.models["SC"].agents == 12
    assert model.seen <= {fingerprint(name) for name in groups.values()}
    assert len(model.seen) >= 4
    assert trained().seen >= {fingerprint(one.id) for one in agents("MRS")}


def test_few_agents_are_served_by_their_lengths() -> None:
    model = train(agents("SC", 20) + agents("MRS", 3), options=QUICK)
    assert model.models["MRS"].text is None
    found = model.estimate_of(agents("MRS", 1, 9)[0])
    assert found.source == "length"
    assert model.models["MRS"].validation["mean_relative_error"] >= 0


def test_one_agent_is_enough_beside_others() -> None:
    model = train([*agents("SC", 12), *agents("DM", 1)], options=QUICK)
    model._check()
    assert model.estimate_of(agents("DM", 1)[0]).cost > 0


def test_equal_costs_and_equal_texts_are_no_trouble() -> None:
    same = [agent(call(9, 9), id=str(k), kind="K", text="to be") for k in range(20)]
    model = train([*same, *agents("SC", 12)], options=QUICK)
    model._check()
    assert model.estimate("K", "to be").cost == pytest.approx(float(same[0].cost(KV)))


def test_coverage_holds_for_agents_like_those_trained_on() -> None:
    model = trained()
    for kind in KINDS:
        judged = agents(kind, 200, first=1000)
        covered = [one.cost(KV) <= model.estimate_of(one).high for one in judged]
        assert 0.78 < np.mean(covered) <= 1, kind


@pytest.mark.skipif(not (DATA / "agents").is_dir(), reason=NO_DATA)
def test_real_agents_are_predicted_better_than_by_the_class_mean() -> None:
    recorded = data.load([DATA / "agents"])
    known, judged = splits.split(recorded)
    model = train(known.agents, groups=known.groups, most=len(known.agents), jobs=2)
    errors: dict[str, list[float]] = {}
    means: dict[str, list[float]] = {}
    spent = {
        kind: np.mean([float(a.cost(KV)) for a in known.agents if a.kind == kind])
        for kind in known.kinds()
    }
    picked = Random(0).sample(judged.agents, len(judged.agents))
    for one in picked:
        real = float(one.cost(KV))
        found = model.estimate_of(one)
        errors.setdefault(one.kind, []).append(abs(1 - found.cost / real))
        means.setdefault(one.kind, []).append(abs(1 - float(spent[one.kind]) / real))
        if one.kind == "DM":  # it has no text
            assert found.fallback
    over_classes = float(np.mean([np.mean(mine) for mine in errors.values()]))
    assert over_classes < 0.45
    assert over_classes < 0.5 * np.mean([np.mean(mine) for mine in means.values()])
