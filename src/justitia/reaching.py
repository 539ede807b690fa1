"""The engine ``openai`` of a run: servers that are reached by their addresses."""

import os
from collections.abc import Mapping

from justitia.config import ConfigError, RunSettings
from justitia.engines.base import Engine
from justitia.engines.registry import EXTRAS, EngineNotInstalled
from justitia.engines.sim import load_preset
from justitia.gateway.extra import CLIENT, missing
from justitia.gateway.loading import key_in
from justitia.gateway.settings import EngineSettings

NAME = "openai"


def reach(
    settings: RunSettings, environment: Mapping[str, str] | None = None
) -> Engine:
    """Return the engine of a run whose engine is `NAME`; no server has been asked yet.

    Parameters
    ----------
    environment
        Where the key is; the process's own when None.

    Raises
    ------
    PolicyError
        If there is no address, or no key where there should be one.
    EngineNotInstalled
        Without the extra ``gateway``.
    """
    if not settings.url:
        raise ConfigError(
            f"--url: must be given with engine {NAME}: http://127.0.0.1:8000 say"
        )
    key = None
    if settings.key_env is not None:
        key = key_in(
            settings.key_env, os.environ if environment is None else environment
        )
    library = missing(CLIENT)
    if library is not None:
        raise EngineNotInstalled(
            f"engine {NAME!r} needs {library}, which is not installed; "
            f"install it with: pip install 'justitia[{EXTRAS[NAME]}]'"
        )
    from justitia.gateway.openai import OpenAIEngine  # noqa: PLC0415 - as above

    return OpenAIEngine(
        [
            EngineSettings(
                url=url,
                key=key,
                capacity="auto" if settings.capacity is None else settings.capacity,
                slots=settings.slots,
            )
            for url in settings.url
        ],
        model=settings.model,
        preset=None if settings.preset is None else load_preset(settings.preset),
    )
