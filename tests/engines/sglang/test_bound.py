"""Theorem B, measured on SGLang's real scheduler.

With a tag a stage and exact costs no inference starts later than the reference allows:
S - G <= I - c in every run, with and without reservation, with prompts in chunks and
with retraction. The meter is the one that `sim` has; see `justitia.engines.lag`.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from justitia.engines import RunRecord
from justitia.engines.sim.prefill_first import SPARE
from justitia.policy import create
from justitia.policy.exact import Number
from tests.engines.build import Case, cases, make_agent, make_preset
from tests.engines.sglang.live import MOST_TOKENS, Unmodelled, paged, run_real

EXAMPLES = max(300, settings.default.max_examples if settings.default else 0)
FIXTURES = [HealthCheck.function_scoped_fixture]

stages = cases(graphs=False, tags=["stage"]).map(paged)
single = cases(graphs=False, staged=False, tags=["agent"]).map(paged)
ratios = st.sampled_from((0.7, 0.2, 0.0))


@pytest.fixture(scope="module", params=["max", "none"])
def backend(model: Path, request: pytest.FixtureRequest) -> Iterator[Unmodelled]:
    made = Unmodelled(model, admission=request.param)
    yield made
    made.close()


def held(record: RunRecord) -> bool:
    return record.lag is None or record.lag.excess <= 0


@settings(max_examples=EXAMPLES, suppress_health_check=FIXTURES)
@given(case=stages, ratio=ratios)
def test_theorem_b_stage_by_stage(
    backend: Unmodelled, case: Case, ratio: float
) -> None:
    policy = create("justitia", tags="stage")
    assert held(run_real(backend, case, policy, ratio=ratio))


@settings(max_examples=EXAMPLES, suppress_health_check=FIXTURES)
@given(case=single, ratio=ratios)
def test_theorem_b_for_agents_of_one_stage(
    backend: Unmodelled, case: Case, ratio: float
) -> None:
    assert held(run_real(backend, case, create("justitia"), ratio=ratio))


def herd_and_mouse() -> Case:
    """A mouse that arrives just after a herd, which first come first served favours."""
    herd = [make_agent(f"big{k}", *[(10, 20)] * 3) for k in range(8)]
    return Case((*herd, make_agent("mouse", (1, 1), at=1)), make_preset(blocks=60))


def test_the_meter_sees_an_order_that_is_not_the_policys(backend: Unmodelled) -> None:
    found: dict[str, Number] = {}
    for name in ("justitia", "fcfs", "agent-fcfs"):
        record = run_real(backend, herd_and_mouse(), create(name))
        assert record.lag is not None
        found[name] = record.lag.excess
    assert found["justitia"] <= 0
    assert min(found["fcfs"], found["agent-fcfs"]) > 1000


def test_two_thousand_requests_and_nobody_gives_way_with_reservation(
    backend: Unmodelled,
) -> None:
    """Of different lengths, half of them shorter than they say that they may be."""
    agents = [
        make_agent(
            f"a{k}",
            *[(5 + (7 * k + 3 * j) % 30, 1 + (11 * k + 5 * j) % 24) for j in range(10)],
            at=3 * k,
            longest=30 if k % 2 else None,
        )
        for k in range(200)
    ]
    case = Case(tuple(agents), make_preset(blocks=MOST_TOKENS - SPARE, budget=256))
    record = run_real(backend, case, create("justitia"), ratio=0.0)
    assert [one.outcome for one in record.inferences] == ["finished"] * 2000
    assert record.utilisation is not None
    assert record.utilisation > 0.5
    if backend.ratio() is None:
        assert record.preemptions == 0
    else:
        assert record.preemptions > 0
