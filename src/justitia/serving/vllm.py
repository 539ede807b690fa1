"""The command that is vLLM's server; vLLM itself is not imported for it."""

import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from justitia.config import ConfigError
from justitia.engines.serving.surroundings import flags
from justitia.engines.vllm.engine import TINY_ARGUMENTS
from justitia.engines.vllm.surroundings import TINY_ON_CPU
from justitia.engines.vllm.version import check_version
from justitia.policy.exact import shown
from justitia.serving.commands import (
    TINY,
    Command,
    arguments,
    before_the_dashes,
    is_short_for,
    listed,
    named,
    plugin,
    tiny_model,
)
from justitia.serving.settings import ServeSettings

SCHEDULER = "justitia.engines.vllm.Scheduler"
_OURS = {
    **before_the_dashes("--model", "--host", "--port"),
    "--scheduler-cls": "justitia sets the scheduler itself",
    "--scheduling-policy": "justitia sets the scheduler itself",
    # Only `vllm serve` does these; the module started here would pass over them.
    "--api-server-count": "that takes `vllm serve`: docs/vllm.md says how",
    "--headless": "that takes `vllm serve`: docs/vllm.md says how",
}
_ADDITIONAL = "--additional-config"


def command(settings: ServeSettings, environment: Mapping[str, str]) -> Command:
    """Return what to run."""
    check_version()
    plugin("vllm.endpoint_plugins", "vLLM")
    model = named(settings.model)
    further, additional = _further(settings.further)
    told = {**additional, "justitia": settings.adapter.model_dump()}
    variables = dict(environment)
    given: list[str] = []
    if model == TINY:
        model = str(tiny_model(variables))
        ours = {"served_model_name": TINY, "dtype": "float32"}
        given = flags({**ours, **TINY_ARGUMENTS})
        variables = TINY_ON_CPU | variables
    variables["VLLM_PLUGINS"] = listed(variables.get("VLLM_PLUGINS"))
    return Command(
        (
            sys.executable,
            "-m",
            "vllm.entrypoints.openai.api_server",
            f"--model={model}",
            f"--host={settings.host}",
            f"--port={settings.port}",
            f"--scheduler-cls={SCHEDULER}",
            f"{_ADDITIONAL}={json.dumps(told)}",
            *given,
            *further,
        ),
        variables,
    )


def _further(further: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return vLLM's arguments, without an additional configuration, and that.

    vLLM takes an argument by its beginning, too, and one key of the configuration as
    ``--additional-config.KEY``, in place of all others.
    """
    kept: list[str] = []
    additional: Any = {}
    expected = False
    for argument, flag, value in arguments(further, _OURS, shortened=True):
        name, dot, _ = flag.partition(".")
        if expected:
            additional, expected = _read(argument), False
        elif not is_short_for(name, _ADDITIONAL):
            kept.append(argument)
        elif dot:
            raise ConfigError(
                f"{shown(argument)}: write {_ADDITIONAL} with one JSON object, since "
                "vLLM would take this in place of the one that justitia gives it"
            )
        elif value is None:
            expected = True
        else:
            additional = _read(value)
    if expected:
        _read("")
    return kept, additional


def _read(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError as error:
        raise ConfigError(f"--additional-config: not JSON: {error}") from None
    if not isinstance(given, dict) or "justitia" in given:
        raise ConfigError(
            "--additional-config: must be a JSON object without justitia, whose "
            "settings are flags of justitia serve: write them before the --"
        )
    return given
