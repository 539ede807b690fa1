"""The command that is SGLang's server; SGLang itself is not imported for it."""

import json
import sys
from collections.abc import Mapping
from typing import Any

from justitia.config import PREFIX
from justitia.engines.base import EngineError
from justitia.engines.serving.settings import ServingSettings
from justitia.engines.serving.surroundings import flags
from justitia.engines.sglang import ADMISSIONS
from justitia.engines.sglang.engine import TINY_ARGUMENTS
from justitia.engines.sglang.surroundings import (
    ARGUMENTS_ON_CPU,
    ON_CPU,
    TINY_ON_CPU,
    on_cpu,
    path_on_cpu,
    use_cpu,
)
from justitia.engines.sglang.version import check_version
from justitia.serving.commands import (
    TINY,
    Command,
    arguments,
    before_the_dashes,
    listed,
    named,
    plugin,
    tiny_model,
)
from justitia.serving.settings import ServeSettings, one_of

_NO_EFFECT = "the policy says who is next: leave it out"
_OURS = {
    **before_the_dashes("--model", "--host", "--port"),
    "--model-path": "write --model before the --",
    "--schedule-policy": _NO_EFFECT,
    "--enable-priority-scheduling": _NO_EFFECT,
    "--schedule-low-priority-values-first": _NO_EFFECT,
    "--disable-priority-preemption": _NO_EFFECT,
}


def command(settings: ServeSettings, environment: Mapping[str, str]) -> Command:
    """Return what to run."""
    check_version()
    found = plugin("sglang.srt.plugins", "SGLang")
    try:
        found.load()
    except Exception as error:  # SGLang would go on without it
        raise EngineError(f"justitia's plugin cannot be loaded: {error!r}") from error
    model = named(settings.model)
    one_of(settings.adapter.admission, ADMISSIONS, "--admission with sglang")
    further, device = [], None
    last = ""
    for argument, flag, value in arguments(settings.further, _OURS):
        if last == "--device":
            device = argument
        elif flag == "--device":
            device = value
        last = flag if value is None else ""
        further.append(argument)
    variables = {**environment, **_told(settings.adapter)}
    given: dict[str, Any] = {}
    if device == "cpu" or (device is None and on_cpu()):
        given |= ARGUMENTS_ON_CPU
        variables = ON_CPU | variables
        variables["PYTHONPATH"] = path_on_cpu(variables.get("PYTHONPATH"))
        if model == TINY:
            variables = TINY_ON_CPU | variables
            use_cpu()  # to make the model takes some of what SGLang brings
    if model == TINY:
        model = str(tiny_model(variables))
        given |= {"served_model_name": TINY, **TINY_ARGUMENTS}
    if variables.get("SGLANG_PLUGINS"):
        variables["SGLANG_PLUGINS"] = listed(variables["SGLANG_PLUGINS"])
    return Command(
        (
            sys.executable,
            "-m",
            "sglang.launch_server",
            f"--model-path={model}",
            f"--host={settings.host}",
            f"--port={settings.port}",
            *flags(given),
            *further,
        ),
        variables,
    )


def _told(adapter: ServingSettings) -> dict[str, str]:
    """Return the variables by which the plugin is told the settings."""
    return {
        PREFIX + name.upper(): json.dumps(value) if name == "options" else str(value)
        for name, value in adapter
    }
