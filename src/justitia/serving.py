"""What `justitia serve` does: it becomes an engine's own server, with the policy in it.

The command and the environment are worked out and checked here; then this process turns
into the server. That the policy is in force the server proves itself, at its start, or
stops with the reason.
"""

import json
import os
import shlex
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from tempfile import mkdtemp
from typing import Any, NoReturn

from justitia.config import PREFIX, ConfigError
from justitia.engines.base import EngineError
from justitia.engines.registry import EXTRAS, EngineNotInstalled
from justitia.engines.serving.settings import ServingError, load_settings
from justitia.policy import names
from justitia.policy.exact import shown

TINY = "tiny"
"""Stands for a model made on the spot, to try things with."""
PLUGIN = "justitia"
_SCHEDULER = "justitia.engines.vllm.Scheduler"
_OURS = ("--scheduler-cls", "--scheduling-policy", "--model", "--host", "--port")
"""Arguments of vLLM that this command gives itself."""
_TINY_ARGUMENTS = (
    "--served-model-name=tiny",
    "--enforce-eager",
    "--dtype=float32",
    "--block-size=32",
    "--num-gpu-blocks-override=64",
    "--max-model-len=512",
    "--max-num-seqs=64",
    "--max-num-batched-tokens=1024",
)


@dataclass(frozen=True)
class ServeSettings:
    """What is served; every field is a flag, a variable and a key of the file.

    Attributes
    ----------
    options
        Options of the policy, the table ``[policy.NAME]`` of the file.
    further
        Arguments of the engine's own server.
    """

    engine: str = "vllm"
    model: str | None = None
    policy: str = "justitia"
    admission: str = "none"
    host: str = "127.0.0.1"
    port: str = "8000"
    options: Mapping[str, Any] = field(default_factory=dict)
    further: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """A program with its arguments, and the environment to run it in."""

    arguments: tuple[str, ...]
    environment: Mapping[str, str]

    def become(self) -> NoReturn:
        """Turn this process into the program."""
        print(f"justitia: {shlex.join(self.arguments)}", file=sys.stderr, flush=True)
        os.execve(self.arguments[0], self.arguments, dict(self.environment))


def load(
    flags: Mapping[str, str | None],
    further: Sequence[str] = (),
    *,
    file: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> ServeSettings:
    """Return the settings: flag over environment over file over default.

    Raises
    ------
    ConfigError
        For the first that cannot be used.
    """
    environment = os.environ if environment is None else environment
    file = file or environment.get(f"{PREFIX}CONFIG") or None
    found, tables = ({}, {}) if file is None else _from_file(file, flags)
    for key, flag in flags.items():
        variable = PREFIX + key.upper()
        if flag is not None:
            found[key] = (flag, f"--{key}")
        elif environment.get(variable):
            found[key] = (environment[variable], variable)
    given: dict[str, Any] = {}
    for key, (value, where) in found.items():
        if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
            raise ConfigError(f"{where}: must be a str, not {shown(value)}")
        if key == "port" and not _is_port(str(value)):
            raise ConfigError(
                f"{where}: must be a port from 0 to 65535, not {shown(value)}"
            )
        given[key] = str(value)
    policy = given.get("policy", ServeSettings.policy)
    settings = ServeSettings(
        **given, options=tables.get(policy, {}), further=tuple(further)
    )
    try:
        load_settings(_told(settings), {})
    except ServingError as error:
        raise ConfigError(f"--{error}") from None
    return settings


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
    if settings.engine != "vllm":
        _one_of(settings.engine, ["vllm", *EXTRAS], "--engine")
        raise EngineNotInstalled(
            f"this version of justitia serves with vllm, not with {settings.engine}"
        )
    from justitia.engines.vllm.version import check_version  # noqa: PLC0415

    check_version()
    plugins = entry_points(group="vllm.endpoint_plugins", name=PLUGIN)
    if not plugins:
        raise EngineError(
            "vLLM does not find justitia's plugin, which proves that the policy is in "
            "force: install justitia again (pip install --force-reinstall justitia)"
        )
    if settings.model is None:
        raise ConfigError(
            "--model: give a path, a name on a hub, or tiny (a model made on the spot)"
        )
    further, additional = _further(settings.further)
    told = {**additional, "justitia": _told(settings)}
    variables = dict(environment)
    given: tuple[str, ...] = ()
    model = settings.model
    if model == TINY:
        from justitia.engines.vllm.surroundings import TINY_ON_CPU  # noqa: PLC0415

        model = str(_tiny(variables))
        given = _TINY_ARGUMENTS
        variables = TINY_ON_CPU | variables
    listed = [one for one in variables.get("VLLM_PLUGINS", "").split(",") if one]
    variables["VLLM_PLUGINS"] = ",".join(dict.fromkeys([*listed, PLUGIN]))
    return Command(
        (
            sys.executable,
            "-m",
            "vllm.entrypoints.openai.api_server",
            f"--model={model}",
            f"--host={settings.host}",
            f"--port={settings.port}",
            f"--scheduler-cls={_SCHEDULER}",
            f"--additional-config={json.dumps(told)}",
            *given,
            *further,
        ),
        variables,
    )


def _told(settings: ServeSettings) -> dict[str, Any]:
    """Return what the engine's side is told of the settings."""
    return {
        "policy": settings.policy,
        "options": dict(settings.options),
        "admission": settings.admission,
    }


def _further(arguments: Sequence[str]) -> tuple[list[str], dict[str, Any]]:
    """Return the engine's arguments, without an additional configuration, and that."""
    kept: list[str] = []
    additional: Any = {}
    rest = iter(arguments)
    for argument in rest:
        name, equals, value = argument.partition("=")
        name = name.replace("_", "-")
        if name in _OURS:
            instead = f"write {name} before the --"
            if name.startswith("--sched"):
                instead = "justitia sets the scheduler itself"
            raise ConfigError(f"{shown(argument)}: {instead}")
        if name != "--additional-config":
            kept.append(argument)
            continue
        text = value if equals else next(rest, "")
        try:
            additional = json.loads(text)
        except ValueError as error:
            raise ConfigError(f"--additional-config: not JSON: {error}") from None
        if not isinstance(additional, dict) or "justitia" in additional:
            raise ConfigError(
                "--additional-config: must be a JSON object without justitia, whose "
                "settings are flags of this command"
            )
    return kept, additional


def _tiny(environment: Mapping[str, str]) -> Path:
    """Return the folder of the tiny model, made once for a user."""
    from justitia.engines.tiny import CONTEXT, make_tiny_model  # noqa: PLC0415

    home = environment.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    folder = Path(home) / "justitia" / f"tiny-{CONTEXT}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        draft = make_tiny_model(Path(mkdtemp(dir=folder.parent)) / "model")
        try:
            draft.rename(folder)
        except OSError:  # somebody else was faster
            if not folder.exists():
                raise
        else:
            draft.parent.rmdir()
    return folder


def _from_file(
    file: str, keys: Iterable[str]
) -> tuple[dict[str, tuple[object, str]], dict[str, Any]]:
    """Return what a file says, by key with where that is, and its policies' tables."""
    content = _read(file)
    tables: dict[str, Any] = {}
    if isinstance(content.get("policy"), dict):
        tables = content.pop("policy")
    for key in content:
        if key not in keys:
            raise ConfigError(
                f"{file}: no setting {shown(key)}; there are: {', '.join(keys)} "
                "and tables [policy.NAME]"
            )
    for name in tables:
        _one_of(name, names(), f"{file}: [policy.{name}]")
    return {key: (value, f"{file}: {key}") for key, value in content.items()}, tables


def _is_port(text: str) -> bool:
    return text.isdecimal() and int(text[:9]) <= 65_535


def _read(file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(file).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{file}: not a TOML file in UTF-8: {error}") from None


def _one_of(value: str, allowed: Iterable[str], where: str) -> None:
    known = list(dict.fromkeys(allowed))
    if value not in known:
        raise ConfigError(
            f"{where}: must be one of {', '.join(known)}, not {shown(value)}"
        )
