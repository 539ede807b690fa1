"""What a preset tells a policy whose options are times or sizes of the engine."""

from collections.abc import Mapping

from justitia.engines.results import PICOSECONDS
from justitia.engines.scenario import step_seconds
from justitia.engines.sim.preset import Preset
from justitia.policy import options


def told_by(
    preset: Preset, policy: str, given: Mapping[str, object]
) -> dict[str, object]:
    """Return a policy's options, with what the preset says where nothing was given.

    The nominal clock's capacity and step, and the times of a prompt.
    """
    full = dict(given)
    if full.get("clock") == "nominal":
        full.setdefault("capacity", preset.capacity_tokens)
        full.setdefault("step_seconds", step_seconds(preset))
    if "prefill_token_seconds" in options(policy):
        fixed = preset.step_fixed_ps + preset.step_sequence_ps
        full.setdefault("prefill_seconds", fixed / PICOSECONDS)
        full.setdefault(
            "prefill_token_seconds", preset.step_prefill_token_ps / PICOSECONDS
        )
    return full
