"""What a model answers, whatever it is asked."""

import pickle
from dataclasses import replace
from math import exp, inf, isfinite, log, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.predictors import extra  # noqa: F401 - skips where torch is not

# After it: these load torch and scikit-learn.
import numpy as np  # isort: skip

from justitia.policy import (  # isort: skip
    COST_MODELS,
    Agent,
    KVTokenTime,
    PolicyError,
    create,
)
from justitia.predictors import Estimate  # isort: skip
from justitia.predictors.features import LONGEST, sample  # isort: skip
from justitia.predictors.kinds import ROOM  # isort: skip
from justitia.predictors.learned import SOURCES, Learned  # isort: skip
from justitia.workloads import AgentSpec, InferenceSpec, generate  # isort: skip
from tests.predictors.models import KINDS, Stub, agents, trained  # isort: skip
from tests.workloads.builders import agent, call, shapes  # isort: skip

KV = KVTokenTime()
MODEL = trained()


def bounded(model: Learned, kind: str, estimate: Estimate) -> bool:
    own = model.models.get(kind, model.anyone)
    low, high = exp(own.floor), exp(own.cap)
    if estimate.source == "ready":
        high = max(high, estimate.cost)
    return low * (1 - 1e-9) <= estimate.cost <= high * (
        1 + 1e-9
    ) and estimate.cost <= estimate.high <= high * exp(ROOM) * (1 + 1e-9)


@given(
    st.sampled_from((*KINDS, "DM", "never seen", "")),
    st.text(max_size=300)
    | st.lists(st.sampled_from(["a", "of", "12", "summary"])).map(" ".join),
    st.none() | st.integers(0, 2**63 - 1),
    st.none() | st.integers(0, 2**63 - 1),
)
def test_an_estimate_is_always_a_cost(
    kind: str, text: str, prompt: int | None, most: int | None
) -> None:
    found = MODEL.estimate(kind, text, prompt_tokens=prompt, max_tokens=most)
    assert bounded(MODEL, kind, found)
    assert found.source in SOURCES
    assert found == MODEL.estimate(kind, text, prompt_tokens=prompt, max_tokens=most)
    MODEL._check()


@given(shapes(), st.sampled_from(sorted(COST_MODELS)), st.sampled_from((*KINDS, "?")))
def test_a_prediction_is_always_costs(
    inferences: tuple[InferenceSpec, ...], name: str, kind: str
) -> None:
    made = AgentSpec("a", inferences, kind=kind, text="a summary of the text")
    told = MODEL.predict(made, COST_MODELS[name]())  # Prediction checks
    assert told.high is not None
    assert told.high >= told.cost
    assert len(told.decode_tokens) == len(inferences)
    assert len(told.stage_costs) == max(made.depths(), default=-1) + 1
    if inferences:
        assert sum(told.stage_costs) == pytest.approx(told.cost)


def test_it_looks_at_class_and_text_only() -> None:
    for kind in KINDS:
        (made,) = agents(kind, 1, first=50)
        other = AgentSpec(
            "b", (call(1, 1), call(9, 999, stage=1)), kind, text=made.text
        )
        first, second = (MODEL.predict(one, KV) for one in (made, other))
        assert (first.cost, first.high) == (second.cost, second.high)
        assert first.source == "class"


def test_many_at_once_are_as_one_by_one() -> None:
    asked = [(one.kind, one.text) for kind in KINDS for one in agents(kind, 5, 40)]
    asked += [("DM", ""), ("new", "a summary of the text"), ("new", ""), ("SC", "1 2")]
    kinds, texts = zip(*asked, strict=True)
    together = MODEL.estimates(kinds, texts)
    for (kind, text), many in zip(asked, together, strict=True):
        one = MODEL.estimate(kind, text)
        assert many.source == one.source
        assert many.cost == pytest.approx(one.cost, rel=1e-9)
        assert many.high == pytest.approx(one.high, rel=1e-9)


def test_it_tells_longer_from_shorter() -> None:
    judged = [one for kind in KINDS for one in agents(kind, 30, first=100)]
    errors = [
        abs(1 - MODEL.estimate_of(one).cost / float(one.cost(KV))) for one in judged
    ]
    assert np.mean(errors) < 0.6


@pytest.mark.parametrize(
    "text", ["", " ", "1 2", "xqzvw wvqzx\nzzqqxx", "\u2603", "\0"]
)
@pytest.mark.parametrize("kind", ["SC", "DM"])
def test_b32_text_that_says_nothing_falls_back(text: str, kind: str) -> None:
    model = trained()
    found = model.estimate(kind, text)
    assert found.fallback
    assert found.source == "typical"
    assert bounded(model, kind, found)
    assert model.counts == {"typical": 1}
    long, short = (
        model.estimate(kind, text, prompt_tokens=p, max_tokens=9) for p in (10**6, 1)
    )
    assert long.source == short.source == "length"
    assert long.cost >= short.cost


@pytest.mark.parametrize(
    "said",
    [nan, inf, -inf, log(1e30), -5.0, 1e308, np.float32(2), np.array([[3.0]]),
     np.array([nan]), np.array([1.0, 2.0]), "no", None],
    ids=str,
)  # fmt: skip
def test_b34_whatever_a_model_says_is_bounded_and_counted(said: object) -> None:
    model = trained()
    model.models["SC"].text = Stub(said)
    found = model.estimate("SC", "to be", prompt_tokens=500)
    assert type(found.cost) is float
    assert bounded(model, "SC", found)
    many = model.estimates(["SC"], ["to be"])
    assert bounded(model, "SC", many[0])
    try:
        number = float(np.asarray(said).item())
    except (TypeError, ValueError):
        number = nan
    assert model.counts["refused"] == (2 if number != number else 0)  # noqa: PLR0124
    assert (model.counts["clamped"] == 2) == (number == number)  # noqa: PLR0124
    assert found.fallback == (number != number)  # noqa: PLR0124


@pytest.mark.parametrize("said", [nan, inf, -inf, -5.0, 1e300])
def test_b34_a_tag_is_never_below_the_floor(said: float) -> None:
    model = trained()
    model.models["SC"].text = Stub(said)
    policy = create("justitia")
    for number, one in enumerate(agents("SC", 5)):
        told = model.predict(one, policy.cost_model)
        policy.arrive(Agent(f"a{number}", told.cost))
        tag = policy.tag(f"a{number}")
        assert tag is not None
        assert tag >= exp(model.models["SC"].floor) * (1 - 1e-9)


def test_b34_a_cost_of_the_model_itself_is_not_trusted() -> None:
    high_only = trained()
    high_only.models["SC"].text = Stub(log(1e6), nan)
    found = high_only.estimate("SC", "to be")
    assert isfinite(found.high)
    assert found.high >= found.cost


def test_b35_class_that_was_never_seen() -> None:
    model = trained()
    with_text = model.estimate("never-seen", agents("MRS", 1, 60)[0].text)
    assert with_text.source == "global"
    without = model.estimate("never-seen", "")
    assert without.source == "length"
    assert without.fallback
    short, long = (
        model.estimate("never-seen", "", prompt_tokens=p, max_tokens=30)
        for p in (900, 9000)
    )
    assert short.source == long.source == "ready"
    assert short.fallback
    assert KV(900, 30) <= short.cost < long.cost
    assert KV(9000, 30) <= long.cost
    assert model.counts == {"global": 1, "length": 1, "ready": 2}


@given(
    st.lists(
        st.tuples(st.integers(0, 10**6), st.none() | st.integers(0, 10**4)),
        min_size=1, max_size=60,
    ),
    st.sampled_from(["", "a summary of the text", "12 xqzvw"]),
)  # fmt: skip
def test_b35_what_is_ready_is_the_least_that_an_unseen_class_costs(
    calls: list[tuple[int, int | None]], text: str
) -> None:
    """Whatever the text says: those calls are there, and more may come after them."""
    made = AgentSpec(
        "a",
        (
            *(InferenceSpec(p, 0, max_tokens=most) for p, most in calls),
            InferenceSpec(10**9, 10**6, stage=1),
        ),
        "never seen",
        text=text,
    )
    decode = MODEL.anyone.lengths.decode
    ready = sum(
        KV(p, decode if most is None else min(decode, most)) for p, most in calls
    )
    found = MODEL.estimate_of(made)
    assert found.source == "ready"
    assert found.fallback
    assert ready * (1 - 1e-9) <= found.cost <= found.high
    told = MODEL.predict(made, KV)
    assert (told.cost, told.high) == (found.cost, found.high)
    assert isfinite(found.high)
    twice = replace(made, inferences=tuple(
        replace(one, id=f"{one.id}/{k}") for one in made.inferences for k in range(2)
    ))  # fmt: skip
    assert MODEL.estimate_of(twice).cost >= found.cost


def test_50_ready_calls_are_not_taken_for_a_mouse() -> None:
    elephant = agents("MapReduce", 1)[0]
    found = MODEL.estimate_of(elephant)
    assert found.source == "ready"
    assert float(elephant.cost(KV)) / 10 < found.cost < float(elephant.cost(KV)) * 10


def test_its_notes_say_what_was_a_fallback() -> None:
    model = trained()
    assert model.notes() == ()
    model.estimate("SC", agents("SC", 1)[0].text)
    assert model.notes() == ()
    model.estimate("SC", "")
    model.estimate_of(agents("MapReduce", 1)[0])
    assert model.notes() == ("2 of 3 by a fallback: 1 typical, 1 ready",)
    model.models["SC"].text = Stub(nan)
    model.estimate("SC", "to be")
    model.models["SC"].text = Stub(1e9)
    model.estimate("SC", "to be")
    assert model.notes() == (
        "3 of 5 by a fallback: 2 typical, 1 ready",
        "1 of 5: cut to the bounds of its class",
        "1 of 5: no number, so lengths answered",
    )


@pytest.mark.parametrize("correction", [-50.0, -1.0, 0.5, 50.0])
@pytest.mark.parametrize("kind", ["SC", "DM", "never seen"])
def test_a_correction_stays_within_the_bounds(kind: str, correction: float) -> None:
    """And is one of KV token-time, whatever cost model is asked for."""
    model = trained()
    (plain,) = agents("SC", 1, first=70)
    asked = replace(plain, kind=kind)
    found = model.uncounted(asked, KV, correction)
    assert model.predict(asked, KV, correction).cost == found.cost
    own = model.models.get(kind, model.anyone)
    cap = max(exp(own.cap), model.uncounted(asked).cost * exp(ROOM))
    assert exp(own.floor) * (1 - 1e-9) <= found.cost <= cap * (1 + 1e-9)
    assert found.cost <= found.high <= cap * exp(ROOM) * (1 + 1e-9)
    factor = found.cost / model.uncounted(asked).cost
    assert (factor > 1) == (correction > 0)
    compute = COST_MODELS["compute"]()
    told, view = model.predict(asked, compute, correction), own.under(compute)
    assert view.cost(exp(own.floor)) * (1 - 1e-9) <= told.cost
    assert told.cost <= view.cost(cap) * (1 + 1e-9)
    assert (told.cost > model.predict(asked, compute).cost) == (correction > 0)


def test_b35_any_number_of_classes_takes_no_more_memory() -> None:
    model = trained()
    size = len(pickle.dumps((list(model.models), model.anyone.lengths)))
    for number in range(10**5):
        model.estimate(f'type "{number}"\n', "", prompt_tokens=5)
    assert model.counts == {"ready": 10**5}
    assert len(pickle.dumps((list(model.models), model.anyone.lengths))) == size
    model._check()


def test_b38_a_text_of_5_mb_is_read_at_both_ends_only() -> None:
    class Counted(str):
        __slots__ = ()
        read = 0

        def __getitem__(self, key: object) -> str:
            part = str.__getitem__(self, key)  # type: ignore[index]
            Counted.read += len(part)
            return part

    text = Counted("one more word " * 400_000)
    found = MODEL.estimate("MRS", text)
    assert bounded(MODEL, "MRS", found)
    assert Counted.read == LONGEST == len(sample(text))


@pytest.mark.parametrize("name", sorted(COST_MODELS))
def test_other_cost_models_are_predicted_too(name: str) -> None:
    model = COST_MODELS[name]()
    judged = [one for kind in KINDS for one in agents(kind, 30, first=100)]
    errors = [
        abs(1 - float(MODEL.predict(one, model).cost) / float(one.cost(model)))
        for one in judged
    ]
    assert np.mean(errors) < 0.6


def test_tokens_of_one_inference() -> None:
    for kind in (*KINDS, "DM", "never seen"):
        for longest in (0, 1, 10**6):
            assert 0 <= MODEL.tokens(kind, 500, longest) <= longest
    assert MODEL.tokens("DM", 100, 10**6) == pytest.approx(30, abs=2)
    limited = generate("SC", 1, seed=5)
    told = MODEL.predict(
        AgentSpec("a", (InferenceSpec(5, 1, max_tokens=3),), "SC", text=limited.text),
        KV,
    )
    assert told.decode_tokens == (3,)


def test_a_length_that_is_none_is_refused() -> None:
    with pytest.raises(PolicyError, match="prompt_tokens"):
        MODEL.estimate("SC", "", prompt_tokens=-1)
    with pytest.raises(PolicyError, match="max_tokens"):
        MODEL.estimate("SC", "", max_tokens=-1)


def test_agent_without_inferences_has_a_cost() -> None:
    assert MODEL.predict(agent(id="a"), KV).cost > 0
    assert MODEL.predict(AgentSpec("a", ()), KV).cost > 0
