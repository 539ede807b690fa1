"""`sim` and its plain twin give the same records, under every policy and rule."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import Phase, given, seed, settings
from hypothesis import strategies as st

from justitia.engines import RunRecord
from justitia.policy import Policy, create, names
from justitia.predictors import Noisy, Oracle, Predictor
from tests.engines.build import Case, cases
from tests.engines.policies import DISPLACERS, OneByOne, Sulky, Throttled
from tests.engines.twin import Twin

Make = Callable[[], Policy]


def named(name: str, **options: object) -> Make:
    return lambda: create(name, **options)


POLICIES: dict[str, Make] = {name: named(name) for name in names()}
POLICIES |= {
    "justitia stage": named("justitia", tags="stage"),
    "justitia growth": named("justitia", growth=2),
    "justitia stage growth": named("justitia", tags="stage", growth=1),
    "justitia nominal": named(
        "justitia", clock="nominal", capacity=20, step_seconds=Fraction(1, 10**6)
    ),
    "justitia reserved": named("justitia", cost="reserved"),
    "sjf cost": named("sjf", by="cost"),
    "vtc prices": named("vtc", prompt_price=0, decode_price=3),
    "mlfq short": named(
        "mlfq",
        quantum=Fraction(3, 10**6),
        prefill_seconds=0,
        prefill_token_seconds=Fraction(1, 10**6),
        starvation_seconds=Fraction(20, 10**6),
        starvation_steps=5,
    ),
    "mlfq two levels": named(
        "mlfq", quantum=Fraction(5, 10**6), levels=2, prefill_token_seconds=0
    ),
    "fairserve strict": named(
        "fairserve",
        user_limit=2,
        app_limit=4,
        window=Fraction(30, 10**6),
        overload_seconds=Fraction(9, 10**6),
    ),
    "throttled": Throttled,
    "one by one": OneByOne,
    "sulky": Sulky,
    **{policy.name: policy for policy in DISPLACERS},
}


def all_three(
    case: Case, make: Make, predictor: Predictor | None = None
) -> tuple[RunRecord, RunRecord, RunRecord]:
    """Run with skipping, without, and the twin."""
    predictor = predictor or Oracle()
    return (
        case.run(make(), predictor),
        case.run(make(), predictor, skip=False),
        Twin(case, make(), predictor).run(),
    )


@pytest.mark.parametrize("policy", POLICIES)
@given(case=cases())
def test_sim_is_its_twin(policy: str, case: Case) -> None:
    skipping, stepping, twin = all_three(case, POLICIES[policy])
    assert stepping == twin
    assert skipping == twin


@pytest.mark.parametrize("policy", ["justitia", "justitia stage growth", "srjf", "sjf"])
@given(case=cases(), seed=st.integers(0, 9))
def test_wrong_predictions_change_nothing_of_that(
    policy: str, case: Case, seed: int
) -> None:
    """Their costs are floats: a tag may differ in its last bits, and nothing else."""
    skipping, stepping, twin = all_three(case, POLICIES[policy], Noisy(3, seed=seed))
    assert stepping == twin
    assert untagged(skipping) == untagged(twin)
    for mine, other in zip(skipping.agents, twin.agents, strict=True):
        if mine.tag is not None and other.tag is not None:
            assert float(mine.tag) == pytest.approx(float(other.tag), rel=1e-12)


def untagged(record: RunRecord) -> RunRecord:
    agents = tuple(replace(agent, tag=None) for agent in record.agents)
    return replace(record, agents=agents)


def test_the_cases_are_what_they_are_for() -> None:
    """Memory runs out, something is refused, cancelled, chunked, skipped, tied."""
    seen: Counter[str] = Counter()

    @settings(phases=[Phase.generate], database=None, max_examples=60)
    @seed(1)
    @given(case=cases())
    def look(case: Case) -> None:
        record = case.run(create("fcfs"), check=False)
        outcomes = {inference.outcome for inference in record.inferences}
        budget = case.preset.max_num_batched_tokens
        starts = [i.start_step for i in record.inferences if i.start_step is not None]
        inferences = [i for agent in case.agents for i in agent.inferences]
        seen["runs"] += 1
        seen["preempted"] += record.preemptions > 0
        seen["refused"] += "refused" in outcomes
        seen["cancelled"] += "cancelled" in outcomes
        seen["chunked"] += any(i.prompt_tokens > budget for i in inferences)
        seen["graphs"] += any(i.after for i in inferences)
        seen["no prompt"] += any(not i.prompt_tokens for i in inferences)
        seen["no decode"] += any(not i.decode_tokens for i in inferences)
        seen["started together"] += len(set(starts)) < len(starts)
        seen["busy"] += record.steps > 20

    look()
    assert len(seen) == 10
    assert min(seen.values()) >= 5
