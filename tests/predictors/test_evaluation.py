"""How a model is judged: by whom, beside whom, and what is told of it."""

from collections.abc import Mapping
from typing import Any

import pytest

from justitia.policy import KVTokenTime
from justitia.predictors.base import Estimate
from justitia.predictors.data import Data, fingerprint
from justitia.predictors.errors import PredictorError
from justitia.workloads import AgentSpec, generate
from tests.predictors import extra  # noqa: F401 - skips where scikit-learn is not

# After it: this loads scikit-learn.
from justitia.predictors.evaluation import Evaluation, evaluate  # isort: skip

KV = KVTokenTime()
KINDS = ("FVP", "CC")
AGENTS = [generate(kind, k, 1) for kind in KINDS for k in range(10)]


class Twice:
    """Thinks that every agent costs twice what it will, and nine of ten thrice."""

    about: Mapping[str, Any] = {}

    def __init__(self, *groups: str) -> None:
        self.seen = frozenset(map(fingerprint, groups))
        self.asked: list[str] = []

    def estimate(
        self,
        kind: str,
        text: str,
        *,
        prompt_tokens: int | None = None,
        max_tokens: int | None = None,
    ) -> Estimate:
        raise AssertionError("an agent is known as a whole")

    def estimate_of(self, agent: AgentSpec) -> Estimate:
        self.asked.append(agent.id)
        cost = float(agent.cost(KV))
        return Estimate(2 * cost, 3 * cost, "class" if agent.kind == "CC" else "length")


def data(agents: list[AgentSpec], **groups: str) -> Data:
    return Data(tuple(agents), {one.id: groups.get(one.id, one.id) for one in agents})


def test_what_is_told_of_a_class() -> None:
    found = evaluate(Twice(), data(AGENTS))
    assert list(found.classes) == sorted(KINDS)
    for kind, one in found.classes.items():
        assert (one.model.agents, one.trained_on) == (10, 0)
        assert one.model.mean_relative_error == pytest.approx(1)
        assert one.model.coverage_90 == 1
        assert one.model.within_factor_2 == 1
        assert one.model.rank_correlation == pytest.approx(1)
        assert one.model.fallbacks == (0 if kind == "CC" else 10)
        assert one.predicted == [2 * real for real in one.real]
        assert one.baselines == {}
        assert 0 < one.latency.p50 <= one.latency.p99
    assert found.sources == {"class": 10, "length": 10}
    assert found.over_classes(lambda one: float(one.model.fallbacks)) == 5
    assert found.over_classes(lambda one: None) is None


def test_no_agent_of_a_group_that_was_trained_on_is_judged() -> None:
    model = Twice("g")
    ids = [one.id for one in AGENTS]
    mine = {name: "g" for name in ids if name.endswith(("1", "2", "3"))}
    found = evaluate(model, data(AGENTS, **mine))
    assert not mine.keys() & set(model.asked)
    assert {*model.asked} == {*ids} - mine.keys()
    assert found.trained_on == 6
    assert [one.trained_on for one in found.classes.values()] == [3, 3]


def test_others_learn_from_what_the_model_was_trained_on() -> None:
    """Whoever is judged is new to them too: with two agents of training, by hand."""
    first, second = AGENTS[0], AGENTS[10]
    found = evaluate(Twice(first.id, second.id), data(AGENTS))
    for kind, agent in zip(KINDS, (first, second), strict=True):
        one, cost = found.classes[kind], float(agent.cost(KV))
        errors = [abs(cost - real) / real for real in one.real]
        for name in ("mean", "ridge"):
            told = one.baselines[name]
            assert told.mean_relative_error == pytest.approx(sum(errors) / 9)
            assert told.rank_correlation is None
            assert told.coverage_90 is None


def test_agents_without_work_are_counted_and_not_judged() -> None:
    found = evaluate(Twice(), data([*AGENTS, AgentSpec("empty", (), kind="X")]))
    assert (found.empty, "X" in found.classes) == (1, False)


@pytest.mark.parametrize(
    ("agents", "seen", "said"),
    [
        ([], (), "there are none"),
        ([AgentSpec("empty", ())], (), "there are none"),
        (AGENTS[:2], (AGENTS[0].id, AGENTS[1].id), "all 2 were trained on"),
    ],
)
def test_with_nobody_to_judge_by_it_says_so(
    agents: list[AgentSpec], seen: tuple[str, ...], said: str
) -> None:
    with pytest.raises(
        PredictorError, match=f"no agents to judge the model by: {said}"
    ):
        evaluate(Twice(*seen), data(agents))


def test_it_tells_how_far_it_is() -> None:
    told: list[tuple[str, int, int]] = []
    evaluate(
        Twice(AGENTS[0].id), data(AGENTS), progress=lambda *step: told.append(step)
    )
    assert told[0] == ("ridge", 0, 1)
    assert [step for step in told if step[0] == "predict"] == [
        ("predict", k, 2) for k in range(3)
    ]
    assert isinstance(evaluate(Twice(), data(AGENTS)), Evaluation)
