"""`sim` and vLLM's real scheduler do the same, step by step.

The same agents, policy and limits on both: equal starts, finishes and preemptions of
every inference, equal tags, equal lag, and the same requests with as many tokens in
every step.
"""

from collections import Counter
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, assume, given, seed, settings

from justitia.engines import RunRecord
from justitia.engines.calibration.recording import Recorded
from justitia.engines.calibration.samples import Sample
from justitia.engines.sim import Preset, SimEngine
from justitia.engines.vllm.version import check_version
from justitia.policy import create
from justitia.predictors import Oracle, Predictor
from tests.engines.alike import POLICIES, TooShort, comparable, make
from tests.engines.build import Case, cases
from tests.engines.ticking import Ticking, runnable, watch
from tests.engines.vllm.live import run_real

ADMISSIONS = ["none", "none", "prompt", "predicted", "max"]

workloads = cases(admissions=ADMISSIONS).map(runnable)


def both(
    model: Path, case: Case, policy: str, predictor: Predictor | None = None
) -> tuple[RunRecord, RunRecord]:
    """Run on `sim` and on vLLM; what they told the policy is the same already."""
    mine, theirs = make(policy), make(policy)
    sim_batches, real_batches = watch(mine), watch(theirs)
    sim = case.run(mine, predictor, skip=False, check=False)
    # From 0.33 on a step goes on when a running request has given way to itself.
    assume(check_version().startswith("0.32") or not sim.preemptions)
    real = run_real(model, case, theirs, predictor)
    assert real_batches == sim_batches
    return comparable(sim), comparable(real)


@pytest.mark.parametrize("policy", POLICIES)
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=workloads)
def test_sim_is_vllm(model: Path, policy: str, case: Case) -> None:
    sim, real = both(model, case, policy)
    assert real == sim


@pytest.mark.parametrize("policy", ["sjf", "srjf", "justitia", "justitia stage"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(case=workloads)
def test_predictions_that_are_too_small_change_nothing_of_that(
    model: Path, policy: str, case: Case
) -> None:
    sim, real = both(model, case, policy, TooShort())
    assert real == sim


class Counted(Recorded, Ticking):
    """A run whose steps are taken down, and in which time passes by the step."""


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(case=workloads)
def test_what_calibration_takes_down_is_what_sim_counts(
    model: Path, case: Case
) -> None:
    """Prompt tokens, sequences and KV tokens of every step.

    A last token of a prompt that is computed alone looks like decoding to vLLM.
    """
    counted: list[tuple[int, ...]] = []

    class Told(SimEngine):
        def run(self, *args: Any, **kwargs: Any) -> RunRecord:
            duration = Preset.duration_ps

            def told(preset: Preset, *did: int) -> int:
                counted.append(did[:3])
                return duration(preset, *did)

            with pytest.MonkeyPatch.context() as patch:
                patch.setattr(Preset, "duration_ps", told)
                return super().run(*args, **kwargs)

    agents = tuple(replace(spec, cancel_after=None) for spec in case.agents)
    case = replace(case, agents=agents)
    engine = Told(case.preset, admission=case.admission, skip=False)
    sim = engine.run(case.agents, create("fcfs"), Oracle())
    assume(check_version().startswith("0.32") or not sim.preemptions)
    samples: list[Sample] = []
    run_real(model, case, create("fcfs"), kind=partial(Counted, samples=samples))
    assert [each[1:3] for each in samples] == [each[1:] for each in counted]
    for sample, (prefill, sequences, _) in zip(samples, counted, strict=True):
        assert 0 <= prefill - sample.prefill_tokens <= sequences


def test_the_cases_are_what_they_are_for(model: Path) -> None:
    """Memory runs out, somebody gives way itself, prompts are cut, agents cancelled."""
    seen: Counter[str] = Counter()

    @settings(phases=[Phase.generate], database=None, max_examples=100)
    @seed(1)
    @given(case=workloads)
    def look(case: Case) -> None:
        policy = create("justitia")
        batches = watch(policy)
        record = run_real(model, case, policy)
        budget = case.preset.max_num_batched_tokens
        outcomes = {inference.outcome for inference in record.inferences}
        starts = {i.start_step for i in record.inferences}
        seen["preempted"] += record.preemptions > 0
        seen["preempted twice"] += any(i.preempted > 1 for i in record.inferences)
        seen["refused"] += "refused" in outcomes
        seen["cancelled"] += "cancelled" in outcomes
        seen["chunked"] += any(
            one.prompt_tokens > budget
            for agent in case.agents
            for one in agent.inferences
        )
        seen["together"] += len(starts) < len(record.inferences)
        seen["busy"] += record.steps > 20
        seen["crowded"] += any(len(batch) > 3 for batch in batches)
        seen["small blocks"] += case.preset.block_size == 1
        seen["large blocks"] += case.preset.block_size > 4

    look()
    assert len(seen) == 10
    assert min(seen.values()) >= 5, seen
