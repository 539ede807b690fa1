"""An LLM engine simulated step by step: the embedded default."""

from justitia.engines.sim.admission import RULES
from justitia.engines.sim.engine import PREEMPTIONS, SimEngine
from justitia.engines.sim.preset import (
    Preset,
    PresetError,
    load_preset,
    preset_names,
)

__all__ = [
    "PREEMPTIONS",
    "RULES",
    "Preset",
    "PresetError",
    "SimEngine",
    "load_preset",
    "preset_names",
]
