"""A fit as a preset, and a preset as a file."""

import json
from collections.abc import Mapping
from dataclasses import fields
from math import floor, log10

from justitia.engines.calibration.fitting import StepFit
from justitia.engines.results import PICOSECONDS
from justitia.engines.serving.backend import Limits
from justitia.engines.sim.preset import Preset

_DIGITS = 4
"""That are kept: far below the error of a fit."""


def preset_of(
    fit: StepFit, limits: Limits, *, name: str, description: str, source: str
) -> Preset:
    """Return a preset of what was measured.

    The time to move KV tokens between GPU and host memory is not: 0.
    """
    return Preset(
        name=name,
        description=description,
        source=source,
        capacity_tokens=limits.capacity_tokens,
        block_size=limits.block_size,
        max_num_seqs=limits.max_num_seqs,
        max_num_batched_tokens=limits.max_num_batched_tokens,
        step_fixed_ps=_picoseconds(fit.fixed),
        step_prefill_token_ps=_picoseconds(fit.prefill_token),
        step_sequence_ps=_picoseconds(fit.sequence),
        step_kv_token_ps=_picoseconds(fit.kv_token),
        swap_token_ps=0,
        rules=limits.rules,
    )


def toml(preset: Preset, notes: Mapping[str, object]) -> str:
    """Return the text of a preset's file, with `notes` as comments before it.

    JSON's strings are TOML's, but that TOML has no DEL in them, and no halves of a
    character: bytes of a command line that are no text become question marks.
    """
    lines = [f"# {_line(key)}: {_line(value)}" for key, value in notes.items()]
    lines.append("")
    for field in fields(preset):
        value = getattr(preset, field.name)
        if isinstance(value, str):
            text = value.encode(errors="replace").decode()
            told = json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
        else:
            told = f"{value:_}"
        lines.append(f"{field.name} = {told}")
    return "\n".join(lines) + "\n"


def _line(value: object) -> str:
    """Return a value as it may stand in a comment: printable, in one line."""
    return "".join(c if c.isprintable() else "?" for c in str(value))


def _picoseconds(seconds: float) -> int:
    """Return seconds in whole picoseconds, rounded to a few digits."""
    exact = seconds * PICOSECONDS
    if exact < 1:
        return 0
    return int(round(exact, _DIGITS - 1 - floor(log10(exact))))
