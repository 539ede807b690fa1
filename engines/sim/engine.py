"""The simulated engine: agents and a policy in, records out, to the last step."""

from collections.abc import Callable, Sequence

from justitia.engines.base import Engine, EngineError, conserved
from justitia.engines.records import RunRecord
from justitia.engines.sim import prefill_first
from justitia.engines.sim.admission import Admission
from justitia.engines.sim.batch import Batch
from justitia.engines.sim.prefill_first import PrefillFirst
from justitia.engines.sim.preset import Preset
from justitia.engines.sim.run import Run
from justitia.policy import Policy
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

PREEMPTIONS = ("recompute", "swap")


class SimEngine(Engine):
    """Simulates an engine that works as vLLM does, or SGLang, step by step.

    The cache is in blocks; prompts are computed in chunks under a budget of tokens a
    step; the head of the line is admitted or nobody; when decode outgrows the cache the
    policy's victim is taken out. A step's time is linear in what it does. Time is
    counted in whole picoseconds, so a run repeats to the last bit.

    Runs of equal steps are skipped in closed form where that changes nothing: where
    nothing waits, or service cannot reorder the line.

    Parameters
    ----------
    preset
        Memory, limits and step times.
    admission
        One of `justitia.engines.sim.RULES`.
    preemption
        ``"recompute"``, or ``"swap"``: its KV waits in host memory.
    skip
        False runs every step on its own; the result is the same.
    check
        Whether to assert all invariants after every step: for tests, slow.
    """

    name = "sim"

    def __init__(
        self,
        preset: Preset,
        *,
        admission: str = "none",
        preemption: str = "recompute",
        skip: bool = True,
        check: bool = False,
    ) -> None:
        if preemption not in PREEMPTIONS:
            raise EngineError(
                f"preemption must be one of {', '.join(PREEMPTIONS)}, "
                f"not {shown(preemption)}"
            )
        if preset.rules == "sglang":
            _check_sglang(admission, preemption)
        self.preset = preset
        self.admission = Admission(
            admission, preset.capacity_tokens // preset.block_size, preset.block_size
        )
        self.preemption = preemption
        self._skip = skip
        self._check = check

    def about(self) -> dict[str, object]:
        """Return what results say of the engine."""
        return {
            "name": self.name,
            "preset": self.preset.name,
            "capacity_tokens": self.preset.capacity_tokens,
            "admission": self.admission.rule,
            "preemption": self.preemption,
        }

    def run(
        self,
        agents: Sequence[AgentSpec],
        policy: Policy,
        predictor: Predictor,
        *,
        tags: str = "agent",
        progress: Callable[[int], None] | None = None,
    ) -> RunRecord:
        """Run all agents to their end; see `Engine.run`.

        Complexity: O(r) for each step that is not skipped, with r running, plus the
        policy's own.
        """
        if tags not in ("agent", "stage"):
            raise EngineError(f"tags must be agent or stage, not {shown(tags)}")
        ids = [spec.id for spec in agents]
        if len(set(ids)) != len(ids):
            twice = next(i for i in ids if ids.count(i) > 1)
            raise EngineError(f"agent {shown(twice)} is in the workload twice")
        run = Run(
            agents,
            policy,
            predictor,
            self._batch(policy),
            by_stage=tags == "stage",
            skip=self._skip,
            progress=progress,
        )
        while run.go_on():
            if self._check:
                run._check()
        return conserved(run.record(), agents)

    def _batch(self, policy: Policy) -> Batch:
        """Return an empty batch under the rules of the preset."""
        if self.preset.rules == "sglang":
            reserved = self.admission.rule == prefill_first.RESERVED
            ratio = None if reserved else prefill_first.usual()
            return PrefillFirst(self.preset, policy, ratio)
        swap = self.preemption == "swap"
        return Batch(self.preset, self.admission, policy, swap=swap)


def _check_sglang(admission: str, preemption: str) -> None:
    if admission not in prefill_first.ADMISSIONS or preemption != "recompute":
        raise EngineError(
            "with a preset of SGLang's rules sim has, as SGLang, admission "
            f"{' or '.join(prefill_first.ADMISSIONS)} and preemption recompute, not "
            f"{shown(admission)} and {shown(preemption)}"
        )
