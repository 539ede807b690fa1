"""The plugin: hooks in SGLang's scheduler, or a server that stops with the reason.

SGLang logs what goes wrong with a plugin or its hooks, and serves on in its own order.
That must not happen unnoticed, so here it is looked for three times: every target
before its hook is registered, that all hooks are applied once SGLang has applied them,
and in each scheduler, before it says that it is ready, that it has its policy.
"""

import os
import sys
from collections.abc import Mapping
from multiprocessing import parent_process

from justitia.engines.serving.settings import PREFIX, ServingSettings, load_settings
from justitia.engines.sglang.targets import LAUNCH, check_targets
from justitia.engines.sglang.version import check_version
from justitia.policy import PolicyError

ENGINE = "sglang.srt.entrypoints.engine"
"""What SGLang's main process imports, and its schedulers need not."""


def configured(environment: Mapping[str, str] | None = None) -> bool:
    """Return whether any setting of an adapter is given as a variable."""
    environment = os.environ if environment is None else environment
    names = (PREFIX + field.upper() for field in ServingSettings.model_fields)
    return any(environment.get(name) for name in names)


def register() -> None:
    """Register the hooks, if a setting is given; SGLang calls it in every process.

    Raises
    ------
    SystemExit
        With the reason, if the policy would not be in force.
    """
    if not configured():
        return
    try:
        _put(load_settings())
        if parent_process() is None or ENGINE in sys.modules:
            _put_in_front()
    except PolicyError as error:
        raise SystemExit(f"justitia: {error}") from None


def install(settings: ServingSettings) -> None:
    """Put the policy into the schedulers that are made in this process from now on.

    Raises
    ------
    EngineError
        If it would not be in force.
    """
    _put(settings)
    from justitia.engines.sglang import hooks  # noqa: PLC0415 - imports SGLang

    hooks.apply()


def _put(settings: ServingSettings) -> None:
    """Register the hooks, once, for policies of these settings."""
    check_version()
    check_targets()
    from justitia.engines.sglang import hooks  # noqa: PLC0415 - imports SGLang
    from justitia.engines.sglang.admission import check_admission  # noqa: PLC0415

    check_admission(settings.admission)
    hooks.register(settings)


def _put_in_front() -> None:
    """Register what is hooked in SGLang's main process; that is imported there."""
    check_targets([LAUNCH])
    from sglang.srt.plugins.hook_registry import (  # noqa: PLC0415
        HookRegistry,
        HookType,
    )

    from justitia.engines.sglang.endpoint import launched  # noqa: PLC0415

    HookRegistry.register(LAUNCH.path, launched, HookType.AFTER)
