"""Settings of `justitia run`: flag over environment over file over default."""

import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    field_validator,
)

from justitia.engines.registry import PRESETS, engine_names
from justitia.engines.scenario import PAPER_WORKLOAD, check_arrivals, check_workload
from justitia.engines.serving.settings import ADMISSIONS
from justitia.engines.sim import PREEMPTIONS, RULES, SimEngine, load_preset
from justitia.gateway.settings import base_url
from justitia.policy import PolicyError, names
from justitia.policy.exact import shown
from justitia.predictors import create as create_predictor

PREFIX = "JUSTITIA_"
LARGEST_SEED = 2**63 - 1
"""What TOML and most libraries that take a seed can hold."""
LEAST_DENSE, MOST_DENSE = 1e-6, 1e6
"""Beyond these, seconds are too coarse or too fine to tell two arrivals apart."""

PAPER_POLICIES = (
    "justitia", "justitia-c", "fcfs", "agent-fcfs", "sjf", "srjf", "vtc"
)  # fmt: skip
"""Those of the paper's main table, which run if no others are asked for."""

_CHOICES: Mapping[str, Callable[[], Iterable[str]]] = {
    "engine": engine_names,
    "tags": lambda: ("agent", "stage"),
}
# What not all engines do alike; read after the engine is known.
_ADMISSIONS = {
    SimEngine.name: RULES,
    "sglang": ("none", "max"),
    "openai": ("predicted",),
}
_PREEMPTIONS = {SimEngine.name: PREEMPTIONS}
_SERVERS = "openai"
"""The engine that is servers, and has addresses."""
_RECOMPUTE = ("recompute",)
_FIELD_OF = {
    "json": "json_file",
    "plot": "plot_file",
    "policy": "policies",
    "report": "report_file",
}
"""Where a flag, a variable or a key is not named as the field is."""


class ConfigError(PolicyError):
    """A setting that cannot be used; says which, where from, and what is allowed."""


class RunSettings(BaseModel):
    """What `justitia run` runs.

    Every field is a flag (``--agents``), a variable (``JUSTITIA_AGENTS``) and a key at
    the top of the TOML file (``agents = 300``). Options of one policy are a table
    ``[policy.NAME]`` there; the policies to run are then listed under ``policies``.
    Paths are relative to the current folder, wherever they come from.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    engine: str = SimEngine.name
    preset: str | None = None
    model: str | None = None
    url: tuple[str, ...] = ()
    key_env: str | None = None
    capacity: int | None = Field(None, ge=1, le=10**9)
    slots: int | None = Field(None, ge=1, le=10**9)
    policies: tuple[str, ...] = PAPER_POLICIES
    tags: str | None = None
    admission: str = "none"
    preemption: str = "recompute"
    agents: int = Field(300, ge=1, le=10**7)
    workload: str = PAPER_WORKLOAD
    arrivals: str | None = None
    density: float | None = Field(None, ge=LEAST_DENSE, le=MOST_DENSE)
    load: float | None = Field(None, ge=LEAST_DENSE, le=MOST_DENSE)
    predictor: str = "oracle"
    seed: int = Field(7, ge=-LARGEST_SEED, le=LARGEST_SEED)
    jobs: int = Field(default_factory=lambda: os.cpu_count() or 1, ge=1)
    json_file: str | None = None
    plot_file: str | None = None
    report_file: str | None = None
    options: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @field_validator("*", mode="before")
    @classmethod
    def _given(cls, value: object) -> object:
        """Refuse what could only be a slip."""
        if isinstance(value, bool):
            raise ValueError(f"must not be {str(value).lower()}")  # noqa: TRY004
        if value == "":
            raise ValueError("must not be empty")
        return value

    @field_validator(*_CHOICES)
    @classmethod
    def _chosen(cls, value: str, info: ValidationInfo) -> str:
        return _one_of(value, _CHOICES[str(info.field_name)]())

    @field_validator("policies", "url", mode="before")
    @classmethod
    def _split(cls, value: object) -> object:
        """Let names with commas between them stand for several."""
        several = [value] if isinstance(value, str) else value
        if not isinstance(several, list | tuple):
            raise ValueError(  # noqa: TRY004 - pydantic lets a TypeError through
                f"must be a name or a list of names, not {shown(value)}"
            )
        if not all(isinstance(name, str) for name in several):
            return several
        return [name.strip() for each in several for name in each.split(",")]

    @field_validator("url")
    @classmethod
    def _servers(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(dict.fromkeys(map(base_url, value)))

    @field_validator("capacity", mode="before")
    @classmethod
    def _asked(cls, value: object) -> object:
        """Let ``auto`` stand for what the server says."""
        return None if value == "auto" else value

    @field_validator("url", "key_env", "capacity", "slots")
    @classmethod
    def _of_servers(cls, value: object, info: ValidationInfo) -> object:
        if value and info.data.get("engine") not in (None, _SERVERS):
            raise ValueError(f"is for engine {_SERVERS}, servers that run already")
        return value

    @field_validator("policies")
    @classmethod
    def _policies_known(cls, value: tuple[str, ...]) -> tuple[str, ...]:
        if not value:
            raise ValueError("must name a policy")
        return tuple(dict.fromkeys(_one_of(name, names()) for name in value))

    @field_validator("options")
    @classmethod
    def _options_known(cls, value: dict[str, dict[str, Any]]) -> dict[str, Any]:
        for name in value:
            _one_of(name, names())
        return value

    @field_validator("preset")
    @classmethod
    def _preset_known(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("engine") in PRESETS:
            load_preset(value)
        return value

    @field_validator("model")
    @classmethod
    def _model_served(cls, value: str | None, info: ValidationInfo) -> str | None:
        if value is not None and info.data.get("engine") == SimEngine.name:
            raise ValueError("is for a real engine; sim simulates a preset")
        return value

    @field_validator("admission", "preemption")
    @classmethod
    def _engine_can(cls, value: str, info: ValidationInfo) -> str:
        engine = str(info.data.get("engine"))
        if info.field_name == "admission":
            return _one_of(value, _ADMISSIONS.get(engine, ADMISSIONS))
        if value in PREEMPTIONS and value not in _PREEMPTIONS.get(engine, _RECOMPUTE):
            raise ValueError(f"{engine} recomputes what gives way; {value} is for sim")
        return _one_of(value, PREEMPTIONS)

    @field_validator("workload")
    @classmethod
    def _workload_known(cls, value: str) -> str:
        check_workload(value)
        return value

    @field_validator("arrivals")
    @classmethod
    def _arrivals_known(cls, value: str | None) -> str | None:
        if value is not None:
            check_arrivals(value)
        return value

    @field_validator("predictor")
    @classmethod
    def _predictor_known(cls, value: str) -> str:
        create_predictor(value)
        return value


_KEY_OF = {field: key for key, field in _FIELD_OF.items()}
KEYS = tuple(
    _KEY_OF.get(field, field)
    for field in RunSettings.model_fields
    if field != "options"
)
"""Every setting, as a flag without its dashes, a variable in small letters or a key."""


def load(
    flags: Mapping[str, object],
    *,
    file: str | None = None,
    environment: Mapping[str, str] | None = None,
) -> RunSettings:
    """Return the settings from all layers.

    Parameters
    ----------
    flags
        By key, as on the command line without the dashes; None for one not given.
    file
        The path of a TOML file; None for the one that ``JUSTITIA_CONFIG`` names, or
        none.
    environment
        Variables; the process's own when None. An empty one is as good as none.

    Raises
    ------
    ConfigError
        For the first setting that cannot be used.
    """
    environment = os.environ if environment is None else environment
    if file is None:
        file = environment.get(f"{PREFIX}CONFIG") or None
    layers: list[_Layer] = []
    if file == "":
        raise ConfigError("--config: must not be empty")
    if file is not None:
        layers.append(_from_file(file))
    layers.append(_from_environment(environment))
    layers.append(_from_flags(flags))
    given: _Layer = {}
    for layer in layers:
        if not _EXCLUSIVE.isdisjoint(layer):
            for field in _EXCLUSIVE:  # what is said here of one is said of the other
                given.pop(field, None)
        given |= layer
    if given.keys() >= _EXCLUSIVE:
        both = " and ".join(sorted(given[field][1] for field in _EXCLUSIVE))
        raise ConfigError(f"{both}: give a density or a load, not both")
    try:
        return RunSettings.model_validate({f: value for f, (value, _) in given.items()})
    except ValidationError as error:
        raise ConfigError(_told(error, given)) from None


_Layer = dict[str, tuple[object, str]]
"""By field: its value, and what a message calls it."""
_EXCLUSIVE = frozenset({"density", "load"})


def _from_flags(flags: Mapping[str, object]) -> _Layer:
    return {
        _FIELD_OF.get(key, key): (value, f"--{key.replace('_', '-')}")
        for key, value in flags.items()
        if value is not None
    }


def _from_environment(environment: Mapping[str, str]) -> _Layer:
    variables = {key: PREFIX + key.upper() for key in KEYS}
    return {
        _FIELD_OF.get(key, key): (environment[variable], variable)
        for key, variable in variables.items()
        if environment.get(variable)
    }


def _from_file(file: str) -> _Layer:
    layer: _Layer = {}
    for key, value in _read(file).items():
        field = _FIELD_OF.get(key, key)
        if key == "policy" and isinstance(value, dict):
            field = "options"
        elif key != "policies" and key not in KEYS:
            raise ConfigError(
                f"{file}: no setting {shown(key)}; there are: {', '.join(KEYS)}, "
                "policies (a list) and tables [policy.NAME]"
            )
        if field in layer:
            raise ConfigError(f"{file}: policy and policies are the same: give one")
        layer[field] = (value, f"{file}: {key}")
    return layer


def _read(file: str) -> dict[str, Any]:
    try:
        return tomllib.loads(Path(file).read_bytes().decode("utf-8-sig"))
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:  # not UTF-8, not TOML, endless digits
        raise ConfigError(f"{file}: not a TOML file in UTF-8: {error}") from None


def _told(error: ValidationError, given: _Layer) -> str:
    """Return the first complaint: which setting, where from, what is allowed."""
    first = error.errors(include_url=False, include_context=False)[0]
    field, *inner = first["loc"]
    label = ".".join([given[str(field)][1], *(str(i) for i in inner if i != "[key]")])
    if first["type"] == "value_error":  # of ours, which names the value
        return f"{label}: {first['msg'].removeprefix('Value error, ')}"
    allowed = first["msg"].removeprefix("Input should be ").partition(",")[0]
    allowed = allowed.replace("a valid dictionary", "a table")
    return f"{label}: must be {allowed}, not {shown(first['input'])}"


def _one_of(value: str, allowed: Iterable[str]) -> str:
    known = list(allowed)
    if value not in known:
        raise ValueError(f"must be one of {', '.join(known)}, not {shown(value)}")
    return value
