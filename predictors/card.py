"""What ``model.json`` holds, field by field; whatever else it holds is refused."""

from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field

from justitia.policy.exact import MOST_TOKENS

MOST_BEYOND = 30.0
"""What a class may cost beyond what is ready at an arrival; natural logarithm."""


class StrictCard(BaseModel):
    """Fields of the types that they say, finite numbers, and nothing else."""

    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)


class GuessCard(StrictCard):
    """A `justitia.predictors.kinds.Guess`."""

    log: float
    high: float


class LengthsCard(StrictCard):
    """A `justitia.predictors.kinds.Lengths`."""

    typical: GuessCard
    decode: int = Field(ge=0, le=MOST_TOKENS)
    slope: float
    constant: float
    margin: float
    beyond: float = Field(ge=0, le=MOST_BEYOND)
    beyond_margin: float = Field(ge=0, le=MOST_BEYOND)


class TextCard(StrictCard):
    """A `justitia.predictors.kinds.TextNetwork`, without its arrays."""

    terms: list[str]
    longest: int = Field(ge=1, le=10**9)
    mean: float
    spread: float = Field(gt=0)
    share: float = Field(ge=0, le=1)
    layers: int = Field(ge=2, le=16)
    shift: float
    margin: float


class KindCard(StrictCard):
    """A `justitia.predictors.kinds.KindModel`, without its arrays."""

    agents: int = Field(ge=1, le=10**9)
    floor: float = Field(ge=-300, le=300)
    cap: float = Field(ge=-300, le=300)
    features: int = Field(ge=0)
    lengths: LengthsCard
    text: TextCard | None
    validation: dict[str, float]


class ModelCard(StrictCard):
    """All that ``model.json`` holds."""

    format: Literal[2]
    versions: dict[str, str]
    seed: int
    cost_model: Literal["kv"]
    classes: dict[str, KindCard]
    anyone: KindCard
    seen: list[Annotated[str, Field(pattern="^[0-9a-f]{16}$")]]
    arrays: Annotated[str, Field(pattern=r"^arrays-[0-9a-f]{16}\.safetensors$")]
    digest: str
