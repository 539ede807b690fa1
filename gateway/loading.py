"""Settings of `justitia gateway`: flag over environment over file over default."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pydantic import SecretStr, ValidationError

from justitia.engines.serving.settings import (
    PREFIX,
    ServingError,
    ServingSettings,
    load_settings,
)
from justitia.gateway.settings import (
    EngineSettings,
    GatewaySettings,
    TenantSettings,
)
from justitia.policy import PolicyError
from justitia.policy.exact import shown

TABLE = "gateway"
ADAPTER = ("policy", "options", "linger", "most_agents", "predictor")
SIMPLE = (
    "host", "port", "open", "dispatch", "default_tokens", "logs", "store",
    "keep_prompts",
)  # fmt: skip
TABLES = ("engines", "tenants", "limits", "tracing")
IN_FILES = ("operator_key", "operator_key_env")
"""Of the table itself, and no flags: a flag can be read by others."""
KEYS = ("engines", *SIMPLE, *ADAPTER)
"""What is a flag and a variable, too: ``--policy``, ``JUSTITIA_POLICY``."""
_SWITCH = {"true": True, "1": True, "false": False, "0": False}


class GatewaySettingsError(PolicyError):
    """A setting that cannot be used; says which, where from, and what is allowed."""


def load(
    flags: Mapping[str, object],
    *,
    file: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> GatewaySettings:
    """Return the settings from all layers, with the keys that variables hold.

    Parameters
    ----------
    flags
        By key; None for one not given.
    file
        The path of a TOML file; None for the one that ``JUSTITIA_CONFIG`` names, or
        none.
    environment
        Variables; the process's own when None. An empty one is as good as none.

    Raises
    ------
    GatewaySettingsError
        For the first setting that cannot be used. No message has a key in it.
    """
    environment = os.environ if environment is None else environment
    file = file or environment.get(f"{PREFIX}CONFIG") or None
    given: dict[str, Any] = {}
    policies: dict[str, Any] = {}
    where: dict[str, str] = {}
    if file is not None:
        given, policies = _from_file(file)
        where = {key: f"{file}: {TABLE}.{key}" for key in given}
    for key in KEYS:
        variable = PREFIX + key.upper()
        if flags.get(key) is not None:
            given[key], where[key] = flags[key], f"--{_flag(key)}"
        elif environment.get(variable):
            given[key], where[key] = environment[variable], variable
        else:
            continue
        if key == "engines":
            given[key] = _urls(given[key])
        elif key in ("open", "keep_prompts") and isinstance(given[key], str):
            given[key] = _SWITCH.get(given[key], given[key])
    if "tracing" not in given and _traced(environment):
        given["tracing"] = {}
    policy = given.get("policy", ServingSettings().policy)
    if "options" not in given and isinstance(policy, str) and policy in policies:
        given["options"] = policies[policy]
        where["options"] = f"{file}: [policy.{policy}]"
    adapter = _adapter({k: given.pop(k) for k in ADAPTER if k in given}, where)
    try:
        settings = GatewaySettings.model_validate({**given, "adapter": adapter})
    except ValidationError as error:
        raise GatewaySettingsError(_told(error, where)) from None
    return _checked(_with_keys(settings, environment))


def _traced(environment: Mapping[str, str]) -> bool:
    """Return whether OpenTelemetry's own variables ask for spans."""
    if environment.get("OTEL_SDK_DISABLED", "").lower() == "true":
        return False
    exporter = environment.get("OTEL_TRACES_EXPORTER")
    if exporter:
        return "otlp" in exporter.split(",")
    return any(
        environment.get(f"OTEL_EXPORTER_OTLP_{which}")
        for which in ("ENDPOINT", "TRACES_ENDPOINT")
    )


def _flag(key: str) -> str:
    return "engine" if key == "engines" else key.replace("_", "-")


def _urls(value: object) -> list[dict[str, str]]:
    several = [value] if isinstance(value, str) else list(value)  # type: ignore[call-overload]
    urls = [one.strip() for each in several for one in str(each).split(",")]
    return [{"url": url} for url in urls]


def _from_file(file: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the gateway's table, and the options of policies by name."""
    content = _read(file)
    policies = content.pop("policy", {})
    table = content.pop(TABLE, None)
    if content:
        raise GatewaySettingsError(
            f"{file}: no setting {shown(next(iter(content)))}; there are tables "
            f"[{TABLE}] and [policy.NAME]"
        )
    if not isinstance(table, dict):
        raise GatewaySettingsError(f"{file}: must have a table [{TABLE}]")
    known = (*SIMPLE, *IN_FILES, *ADAPTER, *TABLES)
    for key in table:
        if key not in known:
            raise GatewaySettingsError(
                f"{file}: no setting {shown(key)} in [{TABLE}]; there are: "
                f"{', '.join(known)}"
            )
    if not isinstance(policies, dict):
        raise GatewaySettingsError(f"{file}: policy: must be tables [policy.NAME]")
    return table, policies


def _read(file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(file).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise GatewaySettingsError(
            f"{file}: cannot be read: {error.strerror}"
        ) from None
    except (ValueError, RecursionError) as error:
        raise GatewaySettingsError(
            f"{file}: not a TOML file in UTF-8: {error}"
        ) from None


def _adapter(given: dict[str, Any], where: Mapping[str, str]) -> ServingSettings:
    for key in ("linger", "most_agents"):
        if isinstance(given.get(key), bool):
            raise GatewaySettingsError(f"{where[key]}: must be a number, not a bool")
    try:
        return load_settings(given, {})
    except ServingError as error:
        key, _, reason = str(error).partition(":")
        raise GatewaySettingsError(f"{where.get(key, key)}:{reason}") from None


def _with_keys(
    settings: GatewaySettings, environment: Mapping[str, str]
) -> GatewaySettings:
    """Put the keys that variables hold where they belong."""

    def engine(one: EngineSettings) -> EngineSettings:
        if one.key_env is None:
            return one
        key = key_in(one.key_env, environment)
        return one.model_copy(update={"key": key})

    def tenant(one: TenantSettings) -> TenantSettings:
        if one.keys_env is None:
            return one
        held = _held(one.keys_env, environment)
        texts = [text.strip() for text in held.split(",")]
        more = tuple(_secret(text, one.keys_env) for text in texts)
        return one.model_copy(update={"keys": (*one.keys, *more)})

    operator, variable = settings.operator_key, settings.operator_key_env
    if variable is not None:
        operator = key_in(variable, environment)
    return settings.model_copy(
        update={
            "operator_key": operator,
            "engines": tuple(map(engine, settings.engines)),
            "tenants": tuple(map(tenant, settings.tenants)),
        }
    )


def key_in(variable: str, environment: Mapping[str, str]) -> SecretStr:
    """Return the key that a variable holds.

    Raises
    ------
    GatewaySettingsError
        If it holds none. The message has nothing of the key in it.
    """
    return _secret(_held(variable, environment), variable)


def _held(variable: str, environment: Mapping[str, str]) -> str:
    value = environment.get(variable)
    if not value:
        raise GatewaySettingsError(f"variable {variable}, for a key, is not set")
    return value


def _secret(text: str, variable: str) -> SecretStr:
    if not (text and text.isascii() and text.isprintable() and " " not in text):
        raise GatewaySettingsError(
            f"variable {variable}: a key must be printable ASCII without spaces"
        )
    return SecretStr(text)


def _checked(settings: GatewaySettings) -> GatewaySettings:
    """Check what depends on keys that have only just been found."""
    try:
        settings.check_told_apart()
    except ValueError as error:
        raise GatewaySettingsError(str(error)) from None
    return settings


_PLAIN = {"tuple_type": "a list", "model_type": "a table"}
"""What pydantic calls by the names of Python's types, as TOML calls it."""


def _told(error: ValidationError, where: Mapping[str, str]) -> str:
    """Return the first complaint: which setting, where from, what is allowed."""
    first = error.errors(include_url=False, include_context=False)[0]
    if not first["loc"]:
        return first["msg"].removeprefix("Value error, ")
    key, *inner = map(str, first["loc"])
    # pydantic's name for one of several types that were tried is no key.
    inner = [part for part in inner if "[" not in part]
    label = ".".join([where.get(key, f"{TABLE}.{key}"), *inner])
    if first["type"] == "missing":
        return f"{label}: must be given"
    if first["type"] == "value_error":
        return f"{label}: {first['msg'].removeprefix('Value error, ')}"
    if first["type"] == "extra_forbidden":
        return f"{label}: there is no such setting"
    allowed = first["msg"].removeprefix("Input should be ")
    allowed = _PLAIN.get(first["type"], allowed)
    if key == "engines" and first["type"] == "model_type":
        allowed += ' with a url, [[gateway.engines]] or {url = "…"}'
    if any(part.startswith(("key", "operator_key")) for part in (key, *inner)):
        # never shown
        return f"{label}: must be {allowed}"
    return f"{label}: must be {allowed}, not {shown(first['input'])}"
