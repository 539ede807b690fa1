"""What ``s3.json`` holds, field by field; whatever else it holds is refused."""

from typing import Annotated

from pydantic import Field

from justitia.policy.exact import LARGEST as LARGEST_NUMBER
from justitia.policy.exact import MOST_TOKENS
from justitia.predictors.card import StrictCard

MOST_BUCKETS = 1_000
Amount = Annotated[float, Field(ge=0, le=LARGEST_NUMBER)]


class PlanCard(StrictCard):
    """A `justitia.predictors.s3.predictor.Plan`."""

    calls: Amount
    prompt_tokens: Amount


class ClassCard(PlanCard):
    """That of a class, and how many agents it was made from."""

    agents: int = Field(ge=1, le=10**9)


class SizeCard(StrictCard):
    """A `justitia.predictors.s3.classifier.Size`, which checks what it may be."""

    vocab_size: int
    dim: int
    n_layers: int
    n_heads: int
    hidden_dim: int
    max_position_embeddings: int


class FileCard(StrictCard):
    """A file beside the card."""

    digest: Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class WeightsCard(FileCard):
    """The weights."""

    file: Annotated[str, Field(pattern=r"^weights-[0-9a-f]{16}\.safetensors$")]


class TokenizerCard(FileCard):
    """The tokenizer."""

    file: Annotated[str, Field(pattern=r"^tokenizer-[0-9a-f]{16}\.json$")]


class S3Card(StrictCard):
    """All that ``s3.json`` holds."""

    format: int
    versions: dict[str, str]
    seed: int
    size: SizeCard
    longest: int = Field(ge=0, le=MOST_TOKENS)
    tokens: list[Annotated[int, Field(ge=0, le=MOST_TOKENS)]] = Field(
        min_length=1, max_length=MOST_BUCKETS
    )
    classes: dict[str, ClassCard] = Field(min_length=1)
    overall: PlanCard
    high: float = Field(ge=1, le=LARGEST_NUMBER)
    seen: list[Annotated[str, Field(pattern="^[0-9a-f]{16}$")]]
    weights: WeightsCard
    tokenizer: TokenizerCard | None
