"""Theorem B.1 as printed, and an instance that breaks it (proofs/README.md)."""

from fractions import Fraction

import pytest

from justitia.engines.sim import Preset, SimEngine
from justitia.policy import create
from justitia.predictors import Oracle
from justitia.proofs.reference import FairReference
from justitia.workloads import AgentSpec, InferenceSpec

CAPACITY = 3
COST = 2  # one prompt token, one decode token


def last_finish_on_sim(agents: int) -> int:
    preset = Preset(
        name="three tokens",
        description="made for a test",
        source="nobody",
        capacity_tokens=CAPACITY,
        block_size=1,
        max_num_seqs=256,
        max_num_batched_tokens=2048,
        step_fixed_ps=1,
        step_prefill_token_ps=0,
        step_sequence_ps=0,
        step_kv_token_ps=0,
        swap_token_ps=0,
    )
    specs = [AgentSpec(f"a{k}", (InferenceSpec(1, 1),)) for k in range(agents)]
    engine = SimEngine(preset, admission="max")
    record = engine.run(specs, create("justitia"), Oracle())
    return 1 + max(one.finish_step or 0 for one in record.inferences)


def last_finish_in_reference(agents: int) -> Fraction:
    reference = FairReference()
    for k in range(agents):
        reference.arrive(f"a{k}", COST)
    steps = Fraction(0)
    while reference.wanting():
        reference.serve(Fraction(CAPACITY, 3))  # a third of a step
        steps += Fraction(1, 3)
    return steps


def test_paper_theorem_b1_is_false_as_printed() -> None:
    lag = last_finish_on_sim(15) - last_finish_in_reference(15)
    printed = 2 * COST + Fraction(COST, CAPACITY)
    assert lag == 5
    assert printed == Fraction(14, 3)
    assert lag > printed


@pytest.mark.parametrize("agents", [3, 30, 90])
def test_the_lag_behind_the_nominal_rate_grows_without_limit(agents: int) -> None:
    lag = last_finish_on_sim(agents) - last_finish_in_reference(agents)
    assert lag == Fraction(agents, 3)
