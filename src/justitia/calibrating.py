"""What `justitia calibrate` does: measure a real engine's steps, and write a preset."""

import platform
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

from rich.console import Console

from justitia import __version__
from justitia.config import LARGEST_SEED
from justitia.engines.calibration.machine import libraries, machine
from justitia.engines.registry import create_engine
from justitia.engines.serving.engine import TINY, LiveEngine
from justitia.engines.sim import Preset
from justitia.output import STANDARD, Output
from justitia.policy import PolicyError
from justitia.policy.exact import shown
from justitia.progress import Progresses
from justitia.typed import whole

ENGINES = ("vllm", "sglang")
ROUNDS = 3
_MOST_ROUNDS = 1_000
_BAR = "measure"
_POOR = 0.25
"""A mean error above which the fit is said to be poor."""


class CalibratingError(PolicyError):
    """A calibration that cannot be asked for so; says why."""


@dataclass(frozen=True, slots=True)
class CalibrateSettings:
    """What is calibrated; see the command's own help."""

    engine: str
    model: str | None = None
    out: str = STANDARD
    name: str | None = None
    rounds: int = ROUNDS
    seed: int = 0


def load(
    engine: str | None,
    *,
    model: str | None = None,
    out: str | None = None,
    name: str | None = None,
    rounds: str | None = None,
    seed: str | None = None,
) -> CalibrateSettings:
    """Return the settings, from what was typed.

    Raises
    ------
    CalibratingError
        Naming the flag, what is allowed and what was typed.
    """
    if engine not in ENGINES:
        raise CalibratingError(
            f"--engine: must be one of {', '.join(ENGINES)}"
            + ("" if engine is None else f", not {shown(engine)}")
        )
    for flag, value in (("--model", model), ("--out", out), ("--name", name)):
        if value is not None and not value.strip():
            raise CalibratingError(f"{flag}: must not be empty")
    number = partial(whole, error=CalibratingError)
    return CalibrateSettings(
        engine,
        model,
        STANDARD if out is None else out,
        name,
        number("--rounds", rounds, ROUNDS, 1, _MOST_ROUNDS),
        number("--seed", seed, 0, 0, LARGEST_SEED),
    )


def calibrate_settings(settings: CalibrateSettings) -> None:
    """Measure, fit, and write the preset; say how good it is.

    Raises
    ------
    EngineError
        If the engine is not there, or a run on it failed.
    PolicyError
        If the file cannot be written, before anything is measured; or if nothing could
        be fitted.
    OSError
        If it cannot be written all the same.
    """
    with ExitStack() as stack:
        engine = create_engine(settings.engine, model=settings.model)
        assert isinstance(engine, LiveEngine)
        stack.callback(engine.close)
        output = stack.enter_context(Output(settings.out))
        # What needs numpy, which an engine brings.
        from justitia.engines.calibration.fitting import fit_steps  # noqa: PLC0415
        from justitia.engines.calibration.measuring import measure  # noqa: PLC0415
        from justitia.engines.calibration.writing import (  # noqa: PLC0415
            preset_of,
            toml,
        )

        bars = stack.enter_context(Progresses(Console(stderr=True), [_BAR], _WHOLE))
        samples = measure(
            engine,
            rounds=settings.rounds,
            seed=settings.seed,
            progress=partial(_tell, bars),
        )
        fit = fit_steps(samples)
        told = _told(engine, settings)
        quality = (
            f"mean error {fit.error:.1%}, R2 {fit.r2:.3f}, "
            f"{fit.used:,} steps, {fit.left_out:,} left out"
        )
        preset = preset_of(
            fit,
            engine.limits(),
            name=settings.name or _name(settings),
            description=told,
            source=f"measured by justitia calibrate {__version__}: {quality}",
        )
        notes = {
            "Written by": f"justitia calibrate {__version__}; docs/calibrate.md",
            "Engine": f"{engine.name} {engine.version()}",
            "Machine": machine(),
            "Python": f"{platform.python_version()}, {libraries()}",
            "Rounds, seed": f"{settings.rounds}, {settings.seed}",
            "Fit": quality,
        }
        output.save(toml(preset, notes).encode())
    if settings.out != STANDARD:
        print("\n".join(summary(preset, settings, quality)))
        if fit.error > _POOR:
            print(
                "That is a poor fit: was the machine doing something else, too? "
                "More --rounds help."
            )


_WHOLE = 1_000
"""Parts of the progress bar."""


def _tell(bars: Progresses, done: int, whole: int) -> None:
    bars.tell(_BAR, -1 if done >= whole else _WHOLE * done // whole)


def summary(preset: Preset, settings: CalibrateSettings, quality: str) -> Sequence[str]:
    """Return what is said of a preset, in lines."""
    parts = (
        (preset.step_fixed_ps, 1e9, "ms a step"),
        (preset.step_prefill_token_ps, 1e6, "us a prompt token"),
        (preset.step_sequence_ps, 1e6, "us a sequence"),
        (preset.step_kv_token_ps, 1e3, "ns a KV token"),
    )
    times = ", ".join(f"{value / unit:,.3g} {what}" for value, unit, what in parts)
    return (
        f"{settings.out}: {preset.description}",
        times,
        quality,
        f"justitia run --preset {_as_path(settings.out)}",
    )


def _as_path(out: str) -> str:
    """Return a file as --preset takes it for one."""
    return out if "/" in out or out.endswith(".toml") else f"./{out}"


def _name(settings: CalibrateSettings) -> str:
    model = (settings.model or TINY).rstrip("/").rpartition("/")[2] or TINY
    return f"{model}-{settings.engine}"


def _told(engine: LiveEngine[Any], settings: CalibrateSettings) -> str:
    model = settings.model or "the tiny Llama of engines/tiny.py"
    return f"{model} on {machine()} in {engine.name} {engine.version()}"
