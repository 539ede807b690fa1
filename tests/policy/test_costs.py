"""The cost models against sums over the steps."""

from fractions import Fraction
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy import (
    COST_MODELS,
    ComputeTokens,
    CostModel,
    KVTokenTime,
    PaperKVTokenTime,
    ReservedTokenTime,
    create,
)
from justitia.policy.exact import Number
from tests.policy.builders import agent, decode, line, queue
from tests.policy.models import compute, kv, reserved

MODELS = [model() for model in COST_MODELS.values()]
sizes = st.integers(0, 200)


@given(p=sizes, d=sizes, n=sizes)
def test_costs_are_sums_over_the_steps(p: int, d: int, n: int) -> None:
    assert KVTokenTime()(p, n) == KVTokenTime().delivered(p, n, d) == kv(p, n)
    assert ComputeTokens()(p, n) == ComputeTokens().delivered(p, n, d) == compute(p, n)
    assert ReservedTokenTime()(p, n) == reserved(p, n, n)
    assert ReservedTokenTime().delivered(p, n, d) == reserved(p, n, d)
    if n:
        approximation = Fraction(PaperKVTokenTime()(p, n))
        assert approximation == kv(p, n) - Fraction(n, 2)


@pytest.mark.parametrize("model", MODELS, ids=repr)
@given(p=sizes, d=sizes, n=sizes)
def test_costs_are_positive_and_do_not_fall(
    model: CostModel, p: int, d: int, n: int
) -> None:
    assert model(p, n) == model.delivered(p, n, n)
    assert 0 < model(p, n) <= model(p, n + 1)
    assert model(p, n) <= model(p + 1, n)
    assert 0 < model.delivered(p, n, d) <= model.delivered(p, n + 1, d)


@pytest.mark.parametrize("name", COST_MODELS)
@given(p=sizes, cuts=st.lists(st.integers(0, 6), max_size=8), extra=st.integers(0, 3))
def test_service_adds_up_to_the_cost(
    name: str, p: int, cuts: list[int], extra: int
) -> None:
    """However the tokens come: one by one, in bursts, with pauses, with preemptions."""
    model = COST_MODELS[name]()
    d = sum(cuts)
    policy = queue(create("justitia", cost=name), agent("A", 10**9), p=p, d=d)
    policy.arrive(agent("B", 10**9))
    seen: list[Number] = [0]
    for cut in cuts or [0]:
        policy.pop()
        for _ in range(1 + extra):
            policy.serve(decode(A__0=0))  # a hold, or all there is when d is 0
        policy.serve(decode(A__0=cut))
        policy.requeue("A/0")
        seen.append(2 * policy.clock.value)  # type: ignore[attr-defined]
    assert seen[-1] == model(p, d)
    assert all(before <= after for before, after in pairwise(seen))


@pytest.mark.parametrize(
    ("name", "floor"), [("kv", 1), ("kv-paper", 0.5), ("compute", 1), ("reserved", 1)]
)
def test_B09c_nothing_at_all_still_costs(name: str, floor: Number) -> None:
    model = COST_MODELS[name]()
    assert model(0, 0) == model.delivered(0, 0, 0) == floor
    assert model.delivered(0, 0, 5) == floor
    assert model(1, 0) >= 1


def test_B09a_prefill_only_costs_its_prompt_for_one_step() -> None:
    for model in MODELS:
        assert model(8000, 0) == 8000


def test_B11_one_cost_function() -> None:
    assert KVTokenTime()(10, 1) == 11
    assert PaperKVTokenTime()(10, 1) == 10.5
    assert [type(m(10, 1)) for m in MODELS] == [int, float, int, int]


def test_an_inference_that_outruns_its_prediction_holds_what_it_has() -> None:
    model = ReservedTokenTime()
    assert [model.delivered(10, n, 2) for n in (1, 2, 3)] == [12, 24, 39]


def test_models_are_values() -> None:
    assert KVTokenTime() == KVTokenTime()
    assert KVTokenTime() != ComputeTokens()
    assert KVTokenTime() != "kv"
    assert len({KVTokenTime(), KVTokenTime(), ReservedTokenTime()}) == 2
    assert [repr(m) for m in MODELS] == [
        "KVTokenTime()",
        "PaperKVTokenTime()",
        "ComputeTokens()",
        "ReservedTokenTime()",
    ]


def test_a_model_of_ones_own_needs_one_function() -> None:
    class Flat(CostModel):
        def __call__(self, prompt_tokens: int, decode_tokens: int) -> int:
            return 7 + decode_tokens

    policy = queue(create("justitia", cost=Flat()), agent("A", 10), agent("B", 20))
    policy.start("B/0")
    policy.serve(decode(B__0=1))
    assert policy.clock.value == 4  # type: ignore[attr-defined]
    policy.serve(decode(B__0=1))
    assert policy.clock.value == 4.5  # type: ignore[attr-defined]
    assert line(policy) == ["A/0"]
