"""Engines by name, so that an engine is a line in a configuration file."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from justitia.engines.base import Engine, EngineError
from justitia.engines.sim import SimEngine, load_preset
from justitia.policy.exact import shown

if TYPE_CHECKING:
    from justitia.engines.serving.engine import LiveEngine

EXTRAS = {"vllm": "vllm", "sglang": "sglang", "openai": "gateway"}
"""Engines that the bare install does not bring, and the extra that each comes with."""
SIM_PRESET = "llama-7b-a100-40g"
PRESETS = {
    SimEngine.name: SIM_PRESET,
    "vllm": "tiny-llama-cpu",
    "sglang": "tiny-llama-cpu-sglang",
    "openai": SIM_PRESET,
}
"""The preset of an engine when none is named."""


class EngineNotInstalled(EngineError):
    """An engine that there is, but not here."""


def engine_names() -> list[str]:
    """Return all engines' names, whether or not they are installed."""
    return [SimEngine.name, *EXTRAS]


def create_engine(
    name: str,
    *,
    preset: str | None = None,
    model: str | None = None,
    admission: str = "none",
    preemption: str = "recompute",
) -> Engine:
    """Make an engine that needs no address: all but ``openai``.

    Parameters
    ----------
    preset
        What ``sim`` simulates, and by what the arrivals of others are placed in time;
        None for the one in `PRESETS`.
    model
        What a real engine serves; ``sim`` has none.
    preemption
        A choice that only ``sim`` has.

    Raises
    ------
    EngineError
        If there is no such engine, naming those that there are; if it is not installed,
        naming the command that installs it; or if it has no such choice.
    """
    if name == SimEngine.name:
        if model is not None:
            raise EngineError("sim takes no model: it simulates a preset")
        return SimEngine(
            load_preset(preset or PRESETS[name]),
            admission=admission,
            preemption=preemption,
        )
    if name in _REAL:
        return _real(name, preset or PRESETS[name], model, admission, preemption)
    if name in EXTRAS:
        raise EngineError(
            f"engine {name!r} is made of the addresses of servers: justitia run "
            f"--engine {name} --url URL, or justitia.gateway.openai.OpenAIEngine"
        )
    raise EngineError(
        f"no engine {shown(name)}; there are: {', '.join(engine_names())}"
    )


def _real(
    name: str, preset: str, model: str | None, admission: str, preemption: str
) -> Engine:
    if preemption != "recompute":
        raise EngineError(f"{name} recomputes what gives way; no {shown(preemption)}")
    engine, check_version = _REAL[name]()
    try:
        check_version()
    except EngineError as error:
        raise EngineNotInstalled(
            f"engine {name!r} cannot be used here: {error} "
            f"(without a GPU as docs/{name}.md says)"
        ) from None
    return engine(model=model, admission=admission, preset=load_preset(preset))


# Each imports its own, so that whoever simulates does not load what serves.


def _vllm() -> tuple["type[LiveEngine[Any]]", Callable[[], str]]:
    from justitia.engines.vllm.engine import VLLMEngine  # noqa: PLC0415
    from justitia.engines.vllm.version import check_version  # noqa: PLC0415

    return VLLMEngine, check_version


def _sglang() -> tuple["type[LiveEngine[Any]]", Callable[[], str]]:
    from justitia.engines.sglang.engine import SGLangEngine  # noqa: PLC0415
    from justitia.engines.sglang.version import check_version  # noqa: PLC0415

    return SGLangEngine, check_version


_REAL = {"vllm": _vllm, "sglang": _sglang}
