"""Settings of `justitia serve`: flag over environment over file over default."""

import os
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from justitia.config import PREFIX, ConfigError
from justitia.engines.serving.settings import (
    ServingError,
    ServingSettings,
    load_settings,
)
from justitia.policy import names
from justitia.policy.exact import shown

_SERVER = ("engine", "model", "host", "port")
_ADAPTER = tuple(ServingSettings.model_fields)


@dataclass(frozen=True)
class ServeSettings:
    """What is served; every field is a flag, a variable and a key of the file.

    Attributes
    ----------
    adapter
        What the engine's side is told: all of it, so nothing that is set elsewhere is
        stronger or is left out. Options of the policy are the table ``[policy.NAME]``
        of the file.
    further
        Arguments of the engine's own server.
    """

    engine: str = "vllm"
    model: str | None = None
    host: str = "127.0.0.1"
    port: str = "8000"
    adapter: ServingSettings = field(default_factory=ServingSettings)
    further: tuple[str, ...] = ()


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
        For the first that cannot be used, saying where it stands.
    """
    environment = os.environ if environment is None else environment
    file = file or environment.get(f"{PREFIX}CONFIG") or None
    found, tables = ({}, {}) if file is None else _from_file(file)
    for key in (*_SERVER, *_ADAPTER):
        flag, variable = flags.get(key), PREFIX + key.upper()
        if flag is not None:
            found[key] = (flag, f"--{key.replace('_', '-')}")
        elif environment.get(variable):
            found[key] = (environment[variable], variable)
    policy = str(found.get("policy", (ServingSettings().policy,))[0])
    if policy in tables and "options" not in found:
        found["options"] = (tables[policy], f"{file}: [policy.{policy}]")
    server = {}
    for key in _SERVER:
        if key in found:
            value, where = found[key]
            server[key] = _text(value, where)
            if key == "port" and not _is_port(server[key]):
                raise ConfigError(
                    f"{where}: must be a port from 0 to 65535, not {shown(value)}"
                )
    return ServeSettings(**server, adapter=_adapter(found), further=tuple(further))


def _adapter(found: Mapping[str, tuple[object, str]]) -> ServingSettings:
    """Return the adapter's settings, all checked."""
    given = {key: found[key][0] for key in _ADAPTER if key in found}
    for key in ("policy", "admission"):
        if key in found:
            given[key] = _text(*found[key])
    try:
        return load_settings(given, {})
    except ServingError as error:
        key, _, reason = str(error).partition(":")
        where = found[key][1] if key in found else f"--{key}"
        raise ConfigError(f"{where}:{reason}") from None


def _text(value: object, where: str) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int) or value == "":
        raise ConfigError(f"{where}: must be a str, not {shown(value)}")
    return str(value)


def one_of(value: str, allowed: Iterable[str], where: str) -> None:
    """Refuse a value that is none of those that are allowed."""
    known = list(dict.fromkeys(allowed))
    if value not in known:
        raise ConfigError(
            f"{where}: must be one of {', '.join(known)}, not {shown(value)}"
        )


def _from_file(file: str) -> tuple[dict[str, tuple[object, str]], dict[str, Any]]:
    """Return what a file says, by key with where that is, and its policies' tables."""
    content = _read(file)
    tables: dict[str, Any] = {}
    if isinstance(content.get("policy"), dict):
        tables = content.pop("policy")
    keys = [key for key in (*_SERVER, *_ADAPTER) if key != "options"]
    for key in content:
        if key not in keys:
            raise ConfigError(
                f"{file}: no setting {shown(key)}; there are: {', '.join(keys)} "
                "and tables [policy.NAME]"
            )
    for name in tables:
        one_of(name, names(), f"{file}: [policy.{name}]")
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
