"""Theorem B, measured on vLLM's real scheduler.

With a tag a stage and exact costs no inference starts later than the reference allows:
S - G <= I - c in every run, whatever memory is set aside, with prompts in chunks and
with preemption. The meter is the one that `sim` has; see `justitia.engines.lag`.
"""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from justitia.engines import RunRecord
from justitia.policy import create
from justitia.policy.exact import Number
from tests.engines.build import Case, cases, make_agent, make_preset
from tests.engines.ticking import runnable
from tests.engines.vllm.live import run_real

EXAMPLES = max(300, settings.default.max_examples if settings.default else 0)
FIXTURES = [HealthCheck.function_scoped_fixture]

stages = cases(graphs=False, tags=["stage"]).map(runnable)
single = cases(graphs=False, staged=False, tags=["agent"]).map(runnable)


def held(record: RunRecord) -> bool:
    return record.lag is None or record.lag.excess <= 0


@pytest.mark.parametrize("admission", ["none", "prompt", "predicted", "max"])
@settings(max_examples=EXAMPLES, suppress_health_check=FIXTURES)
@given(case=stages)
def test_theorem_b_stage_by_stage(model: Path, admission: str, case: Case) -> None:
    case = replace(case, admission=admission)
    assert held(run_real(model, case, create("justitia", tags="stage")))


@pytest.mark.parametrize("admission", ["none", "max"])
@settings(max_examples=EXAMPLES, suppress_health_check=FIXTURES)
@given(case=single)
def test_theorem_b_for_agents_of_one_stage(
    model: Path, admission: str, case: Case
) -> None:
    case = replace(case, admission=admission)
    assert held(run_real(model, case, create("justitia")))


@settings(max_examples=EXAMPLES, suppress_health_check=FIXTURES)
@given(case=stages)
def test_theorem_b_with_two_steps_in_flight(model: Path, case: Case) -> None:
    case = replace(case, admission="none")
    assert held(run_real(model, case, create("justitia", tags="stage"), depth=2))


def herd_and_mouse() -> Case:
    """A mouse that arrives just after a herd, which first come first served favours."""
    herd = [make_agent(f"big{k}", *[(10, 20)] * 3) for k in range(8)]
    return Case((*herd, make_agent("mouse", (1, 1), at=1)), make_preset(blocks=60))


def test_the_meter_sees_an_order_that_is_not_the_policys(model: Path) -> None:
    found: dict[str, Number] = {}
    for name in ("justitia", "fcfs", "agent-fcfs"):
        record = run_real(model, herd_and_mouse(), create(name))
        assert record.lag is not None
        found[name] = record.lag.excess
    assert found["justitia"] <= 0
    assert min(found["fcfs"], found["agent-fcfs"]) > 1000
