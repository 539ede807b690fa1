"""How an engine's adapter is set: by the engine's own configuration, or by variables.

Every setting is a key of what the engine hands on (vLLM's ``--additional-config``, say)
under ``justitia``, and a variable ``JUSTITIA_POLICY``, ``JUSTITIA_ADMISSION``, …; the
engine's configuration is stronger.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from justitia.policy import Policy, PolicyError, create, names
from justitia.policy.exact import shown

PREFIX = "JUSTITIA_"
ADMISSIONS = ("none", "prompt", "predicted", "max")


class ServingError(PolicyError):
    """A setting of an adapter that cannot be used."""


class ServingSettings(BaseModel):
    """What an adapter does.

    Attributes
    ----------
    policy
        The name of a policy.
    options
        Its options, as in a table ``[policy.NAME]``.
    admission
        What is set aside before a request starts: ``none``, its ``prompt``, that and
        what it is ``predicted`` to produce, or the ``max`` that it may.
    linger
        Seconds for which a named agent without a request is remembered.
    most_agents
        Named agents without a request that are remembered at most.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    policy: str = "justitia"
    options: dict[str, Any] = Field(default_factory=dict)
    admission: str = "none"
    linger: float = Field(60.0, ge=0, le=1e9)
    most_agents: int = Field(10_000, ge=0, le=10**9)

    @field_validator("policy")
    @classmethod
    def _known(cls, value: str) -> str:
        if value not in names():
            raise ValueError(f"must be one of {', '.join(names())}, not {shown(value)}")
        return value

    @field_validator("admission")
    @classmethod
    def _rule(cls, value: str) -> str:
        if value not in ADMISSIONS:
            raise ValueError(
                f"must be one of {', '.join(ADMISSIONS)}, not {shown(value)}"
            )
        return value

    @field_validator("options", mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        return json.loads(value) if isinstance(value, str) else value

    def make(self) -> Policy:
        """Make the policy."""
        return create(self.policy, **self.options)


def load_settings(
    given: Mapping[str, object] | None = None,
    environment: Mapping[str, str] | None = None,
) -> ServingSettings:
    """Return the settings.

    Raises
    ------
    ServingError
        For the first that cannot be used.
    """
    environment = os.environ if environment is None else environment
    found: dict[str, object] = {
        field: environment[PREFIX + field.upper()]
        for field in ServingSettings.model_fields
        if environment.get(PREFIX + field.upper())
    }
    try:
        settings = ServingSettings.model_validate(found | dict(given or {}))
        settings.make()
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ServingError(
            f"{where}: {first['msg']}, not {shown(first['input'])}"
        ) from None
    except TypeError as error:
        raise ServingError(f"options: {error}") from None
    return settings
