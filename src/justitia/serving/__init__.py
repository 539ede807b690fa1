"""What `justitia serve` does: it becomes an engine's own server, with the policy in it.

The command and the environment are worked out and checked here, in a module for each
engine; then this process turns into the server. That the policy is in force the server
proves itself, at its start, or stops with the reason.
"""

import os
from collections.abc import Mapping

from justitia.engines.registry import EXTRAS, EngineNotInstalled
from justitia.serving import sglang, vllm
from justitia.serving.commands import Command
from justitia.serving.settings import ServeSettings, load, one_of

__all__ = ["Command", "ServeSettings", "command", "load", "serve"]

_ENGINES = {"vllm": vllm.command, "sglang": sglang.command}


def serve(settings: ServeSettings) -> None:
    """Become the server.

    Raises
    ------
    EngineError
        If the engine is not there, or not in a version that the adapter knows.
    ConfigError
        If nothing can be served with these settings.
    """
    command(settings).become()


def command(
    settings: ServeSettings, environment: Mapping[str, str] | None = None
) -> Command:
    """Return what to run; see `serve`."""
    environment = os.environ if environment is None else environment
    if settings.engine not in _ENGINES:
        one_of(settings.engine, [*_ENGINES, *EXTRAS], "--engine")
        raise EngineNotInstalled(
            f"this version of justitia serves with {' and '.join(_ENGINES)}, "
            f"not with {settings.engine}"
        )
    return _ENGINES[settings.engine](settings, environment)
