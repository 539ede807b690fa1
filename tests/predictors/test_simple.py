"""Predictors without a model: the class mean, and the longest answer."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.roster import Roster
from justitia.policy import COST_MODELS, KVTokenTime, PolicyError
from justitia.policy import create as create_policy
from justitia.predictors import Longest, Mean, Prediction, Predictor, create
from justitia.predictors.longest import UNLIMITED_TOKENS
from justitia.predictors.mean import MOST_KINDS, UNKNOWN_TOKENS
from justitia.predictors.shape import DEEPEST, Shape
from justitia.workloads import AgentSpec, InferenceSpec
from tests.workloads.builders import agent, call, shapes

KV = KVTokenTime()


@given(shapes(), st.lists(shapes(), max_size=5), st.sampled_from(sorted(COST_MODELS)))
def test_predictions_are_always_costs(
    asked: tuple[InferenceSpec, ...],
    before: list[tuple[InferenceSpec, ...]],
    name: str,
) -> None:
    model = COST_MODELS[name]()
    made = AgentSpec("a", asked, kind="K")
    for predictor in (Mean(), Longest()):
        for place, calls in enumerate(before):
            predictor.learn(AgentSpec(f"b{place}", calls, kind="KL"[place % 2]), model)
        told = predictor.predict(made, model)  # Prediction checks
        assert len(told.decode_tokens) == len(asked)
        assert len(told.stage_costs) == max(made.depths(), default=-1) + 1
        if asked:
            assert float(sum(told.stage_costs)) == pytest.approx(float(told.cost))
        if isinstance(predictor, Mean):
            predictor._check()


def test_mean_of_the_class_then_of_all_then_of_nobody() -> None:
    mean = Mean()
    first = mean.predict(agent(call(10, 1), call(10, 9, stage=1), kind="A"), KV)
    assert first.cost == 2 * KV(10, UNKNOWN_TOKENS)
    mean.learn(agent(call(10, 2), id="b", kind="A"), KV)
    mean.learn(agent(call(10, 4), id="c", kind="A"), KV)
    mean.learn(agent(call(100, 1), id="d", kind="B"), KV)
    assert mean.predict(agent(kind="A"), KV).cost == pytest.approx((23 + 50) / 2)
    assert mean.predict(agent(kind="A"), KV).decode_tokens == (3,)
    assert mean.predict(agent(kind="C"), KV).cost == pytest.approx((23 + 50 + 101) / 3)
    other = COST_MODELS["compute"]()
    mean.learn(agent(call(10, 2), id="e", kind="A"), other)
    assert mean.predict(agent(kind="A"), other).cost == 14
    assert mean.predict(agent(call(1, 1), kind="A"), KV).cost == KV(1, UNKNOWN_TOKENS)


def test_mean_spreads_a_cost_as_stages_cost() -> None:
    mean = Mean()
    mean.learn(agent(call(10, 1), call(100, 3, stage=1), id="b", kind="A"), KV)
    told = mean.predict(agent(call(), call(stage=1), call(stage=1), kind="A"), KV)
    assert told.stage_costs[1] / told.stage_costs[0] == pytest.approx(2 * 306 / 11)
    assert told.decode_tokens == (1, 3, 3)


def test_b35_mean_knows_a_bounded_number_of_classes() -> None:
    mean = Mean()
    for number in range(MOST_KINDS + 100):
        mean.learn(agent(call(number + 1, 1), id="x", kind=f"k{number}"), KV)
        mean.predict(agent(kind=f"other {number}"), KV)
    mean._check()


def test_longest_takes_the_limit() -> None:
    made = agent(InferenceSpec(10, 1, max_tokens=7), call(5, 2, stage=1))
    told = Longest().predict(made, KV)
    assert told.decode_tokens == (7, UNLIMITED_TOKENS)
    assert told.stage_costs == (KV(10, 7), KV(5, UNLIMITED_TOKENS))
    assert told.cost == sum(told.stage_costs)


def test_a_shape_of_nothing_is_even() -> None:
    shape = Shape()
    assert shape.stage_costs(12, (0, 1, 1)) == pytest.approx((4, 8))
    assert shape.stage_costs(12, ()) == ()
    assert shape.decode_tokens(3) == 1
    shape.learn([(10**9, 5, 2), (2, 1, 1)], KV)
    shape._check()
    assert len(shape._calls) == DEEPEST
    assert shape.decode_tokens(10**9) == 2
    assert shape.decode_tokens(1, 1e300) > 1


@pytest.mark.parametrize(("name", "kind"), [("mean", Mean), ("max", Longest)])
def test_create(name: str, kind: type[Predictor]) -> None:
    made = create(name)
    assert type(made) is kind
    assert made.name == name
    made.learn(agent(), KV)


@pytest.mark.parametrize("text", ["means", "mean:1", "max:3", "s3:", "no such folder"])
def test_wrong_name_lists_the_right_ones(text: str) -> None:
    with pytest.raises(PolicyError, match="mean, max, s3, s3:DIR, online:DIR, DIR"):
        create(text)


def test_high_is_never_below_the_cost() -> None:
    assert Prediction(5, (), (), high=3).high == 5
    assert Prediction(5, (), (), high=9, source="class").high == 9
    with pytest.raises(PolicyError, match="predicted high cost"):
        Prediction(5, (), (), high=float("nan"))


def test_a_run_teaches_its_predictor_who_finished() -> None:
    mean, policy = Mean(), create_policy("justitia")
    roster = Roster(policy, mean)
    first = agent(call(10, 4), call(10, 2, stage=1), id="a", kind="A")
    gone = agent(call(10, 400), id="b", kind="A")
    for spec in (first, gone):
        roster.arrive(spec)
    roster.cancel(roster._members["b"])
    (task,) = roster.release(roster._members["a"])
    (task,) = roster.end(task)
    assert not mean._kinds
    assert roster.end(task) == []
    assert mean.predict(agent(kind="A"), KV).cost == float(first.cost(KV))
