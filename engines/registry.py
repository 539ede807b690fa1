"""Engines by name, so that an engine is a line in a configuration file."""

from justitia.engines.base import Engine, EngineError
from justitia.engines.sim import SimEngine, load_preset
from justitia.policy.exact import shown

EXTRAS = {"vllm": "vllm", "sglang": "sglang", "openai": "gateway"}
"""Engines that the bare install does not bring, and the extra that each comes with."""


class EngineNotInstalled(EngineError):
    """An engine that there is, but not here."""


def engine_names() -> list[str]:
    """Return all engines' names, whether or not they are installed."""
    return [SimEngine.name, *EXTRAS]


def create_engine(
    name: str,
    *,
    preset: str = "llama-7b-a100-40g",
    admission: str = "none",
    preemption: str = "recompute",
) -> Engine:
    """Make an engine.

    Raises
    ------
    EngineError
        If there is no such engine, naming those that there are; or if it is not
        installed, naming the command that installs it.
    """
    if name == SimEngine.name:
        return SimEngine(
            load_preset(preset), admission=admission, preemption=preemption
        )
    if name in EXTRAS:
        raise EngineNotInstalled(
            f"engine {name!r} is not installed; install it with: "
            f"pip install 'justitia[{EXTRAS[name]}]' "
            "(its adapter is not in this version yet, which runs on sim only)"
        )
    raise EngineError(
        f"no engine {shown(name)}; there are: {', '.join(engine_names())}"
    )
