"""How an engine's adapter is set: by the engine's own configuration, or by variables.

Every setting is a key of what the engine hands on (vLLM's ``--additional-config``, say)
under ``justitia``, and a variable ``JUSTITIA_POLICY``, ``JUSTITIA_ADMISSION``, …; the
engine's configuration is stronger.
"""

import json
import os
from collections.abc import Mapping
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from justitia.engines.serving.agents import Predict
from justitia.policy import Policy, PolicyError, create, names
from justitia.policy.exact import shown
from justitia.predictors import create as create_predictor

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
        Its options, as in a table ``[policy.NAME]``; in a variable, as JSON.
    admission
        What is set aside before a request starts: ``none``, its ``prompt``, that and
        what it is ``predicted`` to produce, or the ``max`` that it may.
    linger
        Seconds for which a named agent without a request is remembered.
    most_agents
        Named agents without a request that are remembered at most.
    predictor
        The directory of a model that tells how much a request will produce where it
        does not say so itself; empty: as much as it may.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    policy: str = "justitia"
    options: dict[str, Any] = Field(default_factory=dict)
    admission: str = "none"
    linger: float = Field(default=300.0, ge=0, le=1e9)
    most_agents: int = Field(default=10_000, ge=0, le=10**9)
    predictor: str = ""

    @field_validator("policy")
    @classmethod
    def _known(cls, value: str) -> str:
        return _one_of(value, names())

    @field_validator("admission")
    @classmethod
    def _rule(cls, value: str) -> str:
        return _one_of(value, ADMISSIONS)

    @field_validator("options", mode="before")
    @classmethod
    def _read(cls, value: object) -> object:
        return json.loads(value) if isinstance(value, str) else value

    def make(self) -> Policy:
        """Make the policy.

        Raises
        ------
        ServingError
            For an option that it does not have, or a value that it does not allow.
        """
        try:
            return create(self.policy, **self.options)
        except (PolicyError, TypeError) as error:
            raise ServingError(f"options: {error}") from None

    @cached_property
    def predict(self) -> Predict | None:
        """What tells how much a request will produce, loaded once; None if nothing.

        Raises
        ------
        ServingError
            If there is no such model, or one that tells no inference's tokens.
        """
        if not self.predictor:
            return None
        try:
            model = create_predictor(self.predictor)
        except PolicyError as error:
            raise ServingError(f"predictor: {error}") from None
        if not isinstance(model, _TellsTokens):
            raise ServingError(
                f"predictor: must be the directory of a model that tells an "
                f"inference's tokens, not {shown(self.predictor)}"
            )
        return model.tokens


@runtime_checkable
class _TellsTokens(Protocol):
    """A model of single inferences, too (`justitia.predictors.learned.Learned` is)."""

    def tokens(self, kind: str, prompt_tokens: int, longest: int, /) -> int:
        """Return what an inference will produce."""


def load_settings(
    given: object = None,
    environment: Mapping[str, str] | None = None,
) -> ServingSettings:
    """Return the settings, all checked: policy and predictor can be made.

    Parameters
    ----------
    given
        What the engine's configuration has of them: a mapping, or None.
    environment
        The variables; None: those of the process. An empty one counts as not set.

    Raises
    ------
    ServingError
        For the first that cannot be used.
    """
    if given is None:
        given = {}
    if not isinstance(given, Mapping):
        raise ServingError(f"justitia: must be a table of settings, not {shown(given)}")
    environment = os.environ if environment is None else environment
    found = {
        field: environment[PREFIX + field.upper()]
        for field in ServingSettings.model_fields
        if environment.get(PREFIX + field.upper())
    }
    try:
        settings = ServingSettings.model_validate({**found, **given})
    except (ValidationError, TypeError) as error:
        raise ServingError(_first(error)) from None
    settings.make()
    settings.predict  # noqa: B018 - loads it
    return settings


def _one_of(value: str, allowed: list[str] | tuple[str, ...]) -> str:
    if value not in allowed:
        raise ValueError(f"must be one of {', '.join(allowed)}")
    return value


def _first(error: ValidationError | TypeError) -> str:
    """Return what is wrong, where, and what was given."""
    if isinstance(error, TypeError):  # a key that is not a string
        return f"justitia: {error}"
    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    told = first["msg"].removeprefix("Value error, ")
    return f"{where}: {told}, not {shown(first['input'])}"
