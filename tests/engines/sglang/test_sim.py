"""`sim` and SGLang's real scheduler do the same.

With SGLang's rules for what a step runs (`justitia.engines.sim.prefill_first`) they do
so step by step: equal starts, finishes and retractions of every inference, equal tags,
equal lag, and the same requests with as many tokens in every step. With rules that are
vLLM's `sim` starts what arrives together in the same order.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from justitia.engines import RunRecord
from justitia.engines.base import conserved
from justitia.engines.sim.prefill_first import SPARE, PrefillFirst, Ratio, usual
from justitia.engines.sim.run import Run
from justitia.policy import Inference, Policy, create
from justitia.predictors import Oracle, Predictor
from tests.engines.alike import POLICIES, TooShort, comparable, make
from tests.engines.build import Case, cases, make_preset
from tests.engines.sglang.live import Unmodelled, paged, run_real
from tests.engines.ticking import watch

FIXTURES = [HealthCheck.function_scoped_fixture]
EXAMPLES = max(60, settings.default.max_examples // 4 if settings.default else 0)
ratios = st.sampled_from((0.7, 0.2, 0.0))
"""What SGLang guesses at first; 0.7 is its own."""

# A running request that is aborted takes part in one more step of SGLang's; `sim` has
# no such. So nobody gives up here.
workloads = cases(cancels=False).map(paged)
bursts = cases(cancels=False, graphs=False, staged=False).map(
    lambda case: paged(
        replace(case, agents=tuple(replace(spec, arrival=0.0) for spec in case.agents))
    )
)


@pytest.fixture(scope="module", params=["max", "none"])
def backend(model: Path, request: pytest.FixtureRequest) -> Iterator[Unmodelled]:
    """SGLang with reservation, and with its guess.

    Where it guesses nothing is cached: one that gave way would find its own prompt.
    """
    made = Unmodelled(
        model, admission=request.param, disable_radix_cache=request.param == "none"
    )
    yield made
    made.close()


def run_rules(
    case: Case, policy: Policy, ratio: Ratio | None, predictor: Predictor
) -> RunRecord:
    """Run a case on `sim` with SGLang's rules."""
    capacity = case.preset.capacity_tokens + SPARE
    preset = replace(case.preset, capacity_tokens=capacity)
    run = Run(
        case.agents,
        policy,
        predictor,
        PrefillFirst(preset, policy, ratio),
        by_stage=case.tags == "stage",
        skip=False,
        progress=None,
    )
    while run.go_on():
        run._check()
    return conserved(run.record(), case.agents)


def both(
    backend: Unmodelled,
    case: Case,
    policy: str,
    predictor: Predictor | None = None,
    *,
    ratio: float = 0.7,
) -> tuple[RunRecord, RunRecord]:
    """Run on both; what they told the policy is the same already."""
    predictor = predictor or Oracle()
    mine, theirs = make(policy), make(policy)
    sim_batches, real_batches = watch(mine), watch(theirs)
    real = run_real(backend, case, theirs, predictor, check=True, ratio=ratio)
    sim = run_rules(case, mine, backend.ratio(), predictor)
    assert real_batches == sim_batches
    return comparable(uncached(sim)), comparable(uncached(real))


def test_what_sglang_starts_with_is_known(backend: Unmodelled) -> None:
    backend.be(make_preset(blocks=64))
    ratio = backend.ratio()
    assert ratio is None or pytest.approx(vars(ratio)) == vars(usual())


def uncached(record: RunRecord) -> RunRecord:
    """Return a record without what was found in the cache, of which `sim` has none."""
    return replace(
        record,
        agents=tuple(replace(one, cached_tokens=None) for one in record.agents),
        inferences=tuple(replace(one, cached_tokens=None) for one in record.inferences),
    )


@pytest.mark.parametrize("policy", POLICIES)
@settings(max_examples=EXAMPLES, suppress_health_check=FIXTURES)
@given(case=workloads, ratio=ratios)
def test_sim_with_its_rules_is_sglang(
    backend: Unmodelled, policy: str, case: Case, ratio: float
) -> None:
    sim, real = both(backend, case, policy, ratio=ratio)
    assert real == sim


@pytest.mark.parametrize("policy", ["sjf", "srjf", "justitia", "justitia stage"])
@settings(max_examples=EXAMPLES, suppress_health_check=FIXTURES)
@given(case=workloads)
def test_predictions_that_are_too_small_change_nothing_of_that(
    backend: Unmodelled, policy: str, case: Case
) -> None:
    sim, real = both(backend, case, policy, TooShort(), ratio=0.2)
    assert real == sim


@pytest.mark.parametrize("policy", ["fcfs", "agent-fcfs", "sjf", "justitia"])
@settings(max_examples=EXAMPLES, suppress_health_check=FIXTURES)
@given(case=bursts)
def test_what_arrives_together_starts_in_the_order_of_any_sim(
    backend: Unmodelled, policy: str, case: Case
) -> None:
    mine, theirs = make(policy), make(policy)
    sim_order, real_order = first_starts(mine), first_starts(theirs)
    case.run(mine, skip=False, check=False)
    run_real(backend, case, theirs)
    assert real_order == sim_order


def first_starts(policy: Policy) -> list[str]:
    """Return a list that gets the ids of inferences as they first start."""
    order: list[str] = []
    start = policy.start

    def started(inference_id: str) -> Inference:
        if inference_id not in order:
            order.append(inference_id)
        return start(inference_id)

    policy.start = started  # type: ignore[method-assign]
    return order


def test_the_cases_are_what_they_are_for(backend: Unmodelled) -> None:
    """Memory runs out, prompts are cut, many run together."""
    seen: Counter[str] = Counter()

    @settings(phases=[Phase.generate], database=None, max_examples=100)
    @seed(1)
    @given(case=workloads)
    def look(case: Case) -> None:
        policy = create("justitia")
        batches = watch(policy)
        record = run_real(backend, case, policy, ratio=0.0)
        budget = case.preset.max_num_batched_tokens
        starts = {i.start_step for i in record.inferences}
        seen["retracted"] += record.preemptions > 0
        seen["refused"] += any(i.outcome == "refused" for i in record.inferences)
        seen["chunked"] += any(
            one.prompt_tokens > budget
            for agent in case.agents
            for one in agent.inferences
        )
        seen["together"] += len(starts) < len(record.inferences)
        seen["busy"] += record.steps > 20
        seen["crowded"] += any(len(batch) > 3 for batch in batches)

    look()
    if backend.ratio() is None:
        assert seen.pop("retracted") == 0
    assert min(seen.values()) >= 5, seen
