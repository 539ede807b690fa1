"""The two predictors that know the truth."""

from math import log

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy import COST_MODELS, CostModel, KVTokenTime, PolicyError
from justitia.predictors import Noisy, Oracle, Prediction, create
from justitia.workloads import AgentSpec, InferenceSpec, generate
from tests.workloads.builders import agent, call, shapes

KV = KVTokenTime()


def test_oracle_tells_the_truth() -> None:
    made = agent(call(10, 5), call(20, 0, stage=4), call(1, 2, stage=4))
    prediction = Oracle().predict(made, KV)
    assert prediction.cost == made.cost(KV)
    assert prediction.stage_costs == (65, 20 + 5)
    assert prediction.decode_tokens == (5, 0, 2)


def test_b09_agent_of_no_inferences_has_a_cost() -> None:
    empty = AgentSpec("a", ())
    assert Oracle().predict(empty, KV) == Prediction(1, (), ())
    assert Noisy(3.0, 1).predict(empty, KV).cost > 0


@given(
    shapes(),
    st.sampled_from(sorted(COST_MODELS)),
    st.floats(1, 1e300),
    st.integers(0, 99),
)
def test_predictions_are_always_costs(
    inferences: tuple[InferenceSpec, ...], model: str, spread: float, seed: int
) -> None:
    made = AgentSpec("a", inferences)
    for predictor in (Oracle(), Noisy(min(spread, 1e150), seed)):
        prediction = predictor.predict(made, COST_MODELS[model]())  # Prediction checks
        assert len(prediction.decode_tokens) == len(inferences)
        assert len(prediction.stage_costs) == max(made.depths(), default=-1) + 1
        for guess, one in zip(prediction.decode_tokens, inferences, strict=True):
            assert (guess == 0) == (one.decode_tokens == 0)


@given(st.floats(1, 100), st.integers(0, 10**9))
def test_noise_is_one_factor_within_bounds(spread: float, seed: int) -> None:
    made = agent(call(100, 1000), call(50, 3000, stage=1))
    prediction = Noisy(spread, seed).predict(made, KV)
    factor = prediction.cost / made.cost(KV)
    assert 1 / spread * (1 - 1e-9) <= factor <= spread * (1 + 1e-9)
    for cost, real in zip(prediction.stage_costs, made.stage_costs(KV), strict=True):
        assert cost / real == pytest.approx(factor)
    for guess, one in zip(prediction.decode_tokens, made.inferences, strict=True):
        assert guess == pytest.approx(one.decode_tokens * factor, abs=1)


def test_noise_is_log_uniform() -> None:
    noisy = Noisy(3.0, seed=1)
    places = [log(noisy.factor(f"agent {k}")) / log(3) for k in range(4000)]
    for k in range(4):
        low = -1 + k / 2
        inside = sum(low <= place < low + 0.5 for place in places)
        assert inside == pytest.approx(1000, abs=110)


def test_noise_depends_on_seed_and_id_only() -> None:
    agents = [generate("FVP", k, seed=0) for k in range(5)]
    forward = [Noisy(3.0, 7).predict(a, KV) for a in agents]
    noisy = Noisy(3.0, 7)
    backward = [noisy.predict(a, KV) for a in reversed(agents)][::-1]
    assert forward == backward
    assert forward != [Noisy(3.0, 8).predict(a, KV) for a in agents]


@pytest.mark.parametrize("text", ["noisy:1", "noisy:1.0"])
def test_noise_of_one_is_the_oracle(text: str) -> None:
    made = generate("KBQAV", 1, seed=0)
    assert create(text, 5).predict(made, KV) == Oracle().predict(made, KV)


def test_create() -> None:
    assert create("oracle").name == "oracle"
    noisy = create("noisy:3", seed=4)
    assert isinstance(noisy, Noisy)
    assert (noisy.name, noisy.spread, noisy.seed) == ("noisy:3", 3.0, 4)


@pytest.mark.parametrize("text", ["", "Oracle", "oracle:1", "noisy", "mlp", None, 3])
def test_wrong_name_lists_the_right_ones(text: str) -> None:
    with pytest.raises(PolicyError, match="there are: oracle, noisy:LAMBDA"):
        create(text)


@pytest.mark.parametrize("text", ["0.5", "0", "-3", "nan", "inf", "", "x", "1e999"])
def test_wrong_lambda_says_what_is_allowed(text: str) -> None:
    with pytest.raises(PolicyError, match="noisy"):
        create(f"noisy:{text}")


class Wrong(CostModel):
    def __call__(self, prompt_tokens: int, decode_tokens: int) -> float:
        return float("nan")


def test_cost_that_is_none_is_refused() -> None:
    with pytest.raises(PolicyError, match="predicted cost"):
        Oracle().predict(agent(), Wrong())
    with pytest.raises(PolicyError, match="predicted stage cost"):
        Prediction(1, (0,), ())
    with pytest.raises(PolicyError, match="predicted decode_tokens"):
        Prediction(1, (), (-1,))
