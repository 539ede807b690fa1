"""Settings of `justitia run`: flag over environment over file over default."""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from justitia.engines.registry import engine_names
from justitia.policy import PolicyError, names
from justitia.policy.exact import shown

PREFIX = "JUSTITIA_"
EXCLUSIVE = frozenset({"density", "load"})
"""Of these, what a higher layer says hides what a lower one says of the other."""


class ConfigError(PolicyError):
    """A setting that cannot be used; says which, where from, and what is allowed."""


class RunSettings(BaseModel):
    """What `justitia run` runs.

    Every field is a flag (``--agents``), a variable (``JUSTITIA_AGENTS``) and a key at
    the top of the TOML file (``agents = 300``). Options of one policy are a table
    ``[policy.NAME]`` there; the policies to run are then listed under ``policies``.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: str = "sim"
    preset: str = "llama-7b-a100-40g"
    policies: tuple[str, ...] = Field(default_factory=lambda: tuple(names()))
    tags: Literal["agent", "stage"] = "agent"
    admission: Literal["none", "prompt", "predicted", "max", "lookahead"] = "none"
    preemption: Literal["recompute", "swap"] = "recompute"
    agents: int = Field(300, ge=1, le=10**7)
    workload: str = Field("paper", min_length=1)
    arrivals: str | None = Field(None, min_length=1)
    density: float | None = Field(None, gt=0, allow_inf_nan=False)
    load: float | None = Field(None, gt=0, allow_inf_nan=False)
    predictor: str = Field("oracle", min_length=1)
    seed: int = 7
    jobs: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1)
    json_file: str | None = Field(None, min_length=1)
    plot_file: str | None = Field(None, min_length=1)
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("policies", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Let names with commas between them stand for several."""
        if isinstance(value, str):
            value = [value]
        if isinstance(value, list | tuple) and all(isinstance(v, str) for v in value):
            return [name.strip() for each in value for name in each.split(",")]
        return value

    @field_validator("policies")
    @classmethod
    def _policies_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("name at least one policy")
        for name in value:
            _known(name, names(), "policy")
        return tuple(dict.fromkeys(value))

    @field_validator("engine")
    @classmethod
    def _engine_known(cls, value: str) -> str:
        return _known(value, engine_names(), "engine")

    @field_validator("options")
    @classmethod
    def _options_known(cls, value: dict[str, dict[str, Any]]) -> dict[str, Any]:
        for name in value:
            _known(name, names(), "policy")
        return value

    @model_validator(mode="after")
    def _density_or_load(self) -> "RunSettings":
        if self.density is not None and self.load is not None:
            raise ValueError("give a density or a load, not both")
        return self


_FIELD_OF = {"json": "json_file", "plot": "plot_file", "policy": "policies"}
_KEY_OF = {field: key for key, field in _FIELD_OF.items()}
_KEYS = [_KEY_OF.get(name, name) for name in RunSettings.model_fields]
_KEYS.remove("options")


def load(
    flags: Mapping[str, object],
    *,
    file: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> RunSettings:
    """Return the settings from all layers.

    Parameters
    ----------
    flags
        By key, as on the command line without the dashes; None for one not given.
    file
        A TOML file.
    environment
        Variables; the process's own when None.

    Raises
    ------
    ConfigError
        For the first setting that cannot be used.
    """
    environment = os.environ if environment is None else environment
    given = {key: value for key, value in flags.items() if value is not None}
    variables = {
        key: environment[PREFIX + key.upper()]
        for key in _KEYS
        if environment.get(PREFIX + key.upper())
    }
    layers: list[tuple[dict[str, Any], str]] = []
    if file is not None:
        layers.append((_read(file), str(file)))
    layers.append((variables, "environment"))
    layers.append((given, "command line"))
    merged: dict[str, Any] = {}
    origin: dict[str, str] = {}
    for layer, source in layers:
        if EXCLUSIVE & layer.keys():
            for key in EXCLUSIVE & merged.keys():
                del merged[key]
        for key, value in layer.items():
            field = _FIELD_OF.get(key, key)
            merged[field] = value
            origin[field] = f"{PREFIX}{key.upper()}" if layer is variables else source
    try:
        return RunSettings.model_validate(merged)
    except ValidationError as error:
        raise ConfigError(_told(error, origin)) from None


def _read(file: Path) -> dict[str, Any]:
    """Return a file's settings, with the tables of policies' options under one key."""
    try:
        with file.open("rb") as stream:
            content = tomllib.load(stream)
    except OSError as error:
        raise ConfigError(f"{file}: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ConfigError(f"{file} is not TOML: {error}") from None
    tables = content.get("policy")
    if isinstance(tables, dict):
        del content["policy"]
        content["options"] = tables
    elif tables is not None and "policies" in content:
        raise ConfigError(f"{file}: policy and policies are the same; give one of them")
    for key in content:
        if key not in (*_KEYS, "policies", "options"):
            allowed = ", ".join(_KEYS)
            raise ConfigError(
                f"{file}: no setting {shown(key)}; there are: {allowed}, policies and "
                "tables [policy.NAME]"
            )
    return content


def _told(error: ValidationError, origin: Mapping[str, str]) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    field = str(first["loc"][0]) if first["loc"] else ""
    message = first["msg"].removeprefix("Value error, ")
    if not field:
        return message
    key, source = _KEY_OF.get(field, field), origin.get(field, "default")
    return f"{key} ({source}): {message}, got {shown(first['input'])}"


def _known(value: str, known: list[str], what: str) -> str:
    if value not in known:
        raise ValueError(f"no {what} {shown(value)}; there are: {', '.join(known)}")
    return value
