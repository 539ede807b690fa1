"""Runs on a real engine in which time passes by the step, as it may on `sim`."""

from dataclasses import replace

from justitia.engines.serving.run import LiveRun
from justitia.policy import Policy, Step
from justitia.workloads import InferenceSpec
from tests.engines.build import TICK, Case, make_preset


class Ticking(LiveRun):
    """A run in which time passes by the step."""

    def _time(self) -> int:
        return self._steps * TICK + self._skipped


def runnable(case: Case) -> Case:
    """Return a case as an engine can run it: something to compute, something to say.

    A step takes a tick, and those that give way are computed again.
    """
    preset = case.preset
    return replace(
        case,
        agents=tuple(
            replace(spec, inferences=tuple(map(_runnable, spec.inferences)))
            for spec in case.agents
        ),
        preset=make_preset(
            blocks=preset.capacity_tokens // preset.block_size,
            block_size=preset.block_size,
            seats=preset.max_num_seqs,
            budget=preset.max_num_batched_tokens,
        ),
        preemption="recompute",
    )


def _runnable(one: InferenceSpec) -> InferenceSpec:
    decode = max(1, one.decode_tokens)
    most = None if one.max_tokens is None else max(decode, one.max_tokens)
    prompt = max(1, one.prompt_tokens)
    return replace(one, prompt_tokens=prompt, decode_tokens=decode, max_tokens=most)


def watch(policy: Policy) -> list[dict[str, tuple[int, int]]]:
    """Return a list that gets every step: tokens computed and produced, by id."""
    batches: list[dict[str, tuple[int, int]]] = []
    serve = policy.serve

    def served(step: Step) -> None:
        names = {*step.prefill, *step.decode}
        batches.append(
            {
                name: (step.prefill.get(name, 1), step.decode.get(name, 0))
                for name in names
            }
        )
        serve(step)

    policy.serve = served  # type: ignore[method-assign]
    return batches
