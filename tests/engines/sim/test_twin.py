"""`sim` and its plain twin give the same records, under every policy and rule."""

from collections.abc import Callable
from fractions import Fraction

import pytest
from hypothesis import given

from justitia.engines import RunRecord
from justitia.policy import Policy, create, names
from justitia.predictors import Oracle, Predictor
from tests.engines.build import Case, cases
from tests.engines.policies import DISPLACERS, Sulky, Throttled
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
    "throttled": Throttled,
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
