"""An S³ in a folder: ``s3.json``, its weights, maybe a tokenizer.

A `justitia.predictors.folder` like any other. This module loads torch.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load as unpack
from safetensors.torch import save as pack

from justitia.policy import PolicyError
from justitia.predictors import folder as folders
from justitia.predictors.errors import ModelError
from justitia.predictors.folder import S3_CARD
from justitia.predictors.s3.buckets import Buckets
from justitia.predictors.s3.card import PlanCard, S3Card
from justitia.predictors.s3.classifier import Classifier, Size, shapes
from justitia.predictors.s3.predictor import S3, Plan
from justitia.predictors.s3.tokens import FromFile, HashedWords, Tokens

FORMAT = 2
"""What this version writes and reads."""
_LIBRARIES = ("justitia", "torch", "transformers", "safetensors")


def save(s3: S3, folder: str | Path) -> None:
    """Write what an S³ has learned into a folder, in place of the model there.

    Raises
    ------
    ModelError
        If it has learned nothing, or the folder holds something else or cannot be
        written. What was there is there still.
    """
    content = about(s3)
    classifier = s3.classifier_
    assert classifier is not None
    state = classifier.network.state_dict()
    weights = pack({name: one.contiguous() for name, one in state.items()})
    parts: dict[str, bytes] = {}
    content["weights"] = _add(parts, "weights", weights, ".safetensors")
    content["tokenizer"] = None
    if isinstance(classifier.tokens, FromFile):
        text = classifier.tokens.content
        content["tokenizer"] = _add(parts, "tokenizer", text, ".json")
    folders.write(folder, S3_CARD, content, parts)


def about(s3: S3) -> dict[str, Any]:
    """Return all that ``s3.json`` says of an S³ but its files.

    Raises
    ------
    ModelError
        If it has learned nothing.
    """
    classifier, buckets = s3.classifier_, s3.buckets_
    if classifier is None or buckets is None or s3.overall_ is None:
        raise ModelError("S³ has learned nothing yet: there is nothing to save")
    return {
        "format": FORMAT,
        "versions": folders.versions(_LIBRARIES),
        "seed": s3.seed,
        "size": asdict(classifier.size),
        "longest": buckets.longest,
        "tokens": list(buckets.tokens),
        "classes": {
            kind: {"agents": s3.trained_on_[kind], **asdict(plan)}
            for kind, plan in sorted(s3.plans_.items())
        },
        "overall": asdict(s3.overall_),
        "high": s3.high_,
        "seen": sorted(s3.seen),
    }


def load(folder: str | Path) -> S3:
    """Read what `save` wrote; its predictions are the same to the bit.

    Raises
    ------
    ModelError
        If the folder holds no S³, one of another format (naming both), or anything that
        does not fit together. Nothing that it asks for is made before it is checked.
    """
    card = folders.read_card(folder, S3_CARD, S3Card, FORMAT)
    try:
        size = Size(**card.size.model_dump())
        buckets = Buckets(card.longest, tuple(card.tokens))
    except PolicyError as error:
        raise ModelError(f"{folder}: {S3_CARD}: {error}") from None
    s3 = S3(size=size, buckets=len(buckets.tokens), seed=card.seed)
    s3.buckets_ = buckets
    s3.plans_ = {kind: _plan(one) for kind, one in card.classes.items()}
    s3.overall_, s3.high_ = _plan(card.overall), card.high
    s3.trained_on_ = {kind: one.agents for kind, one in card.classes.items()}
    s3.seen = frozenset(card.seen)
    s3.classifier_ = _classifier(folder, card, size, _tokens(folder, card, size))
    return s3


def _add(
    parts: dict[str, bytes], stem: str, content: bytes, suffix: str
) -> dict[str, str]:
    """Add a file, and return what the card says of it."""
    name = folders.part(stem, content, suffix)
    parts[name] = content
    return {"file": name, "digest": folders.digest(content)}


def _plan(card: PlanCard) -> Plan:
    return Plan(card.calls, card.prompt_tokens)


def _tokens(folder: str | Path, card: S3Card, size: Size) -> Tokens:
    if card.tokenizer is None:
        return HashedWords(size.vocab_size)
    name = card.tokenizer.file
    content = folders.read_part(folder, S3_CARD, name, card.tokenizer.digest)
    tokens = FromFile(content, f"{folder}: {name}")
    tokens.limit(size.vocab_size, f"{folder}: {name}")
    return tokens


def _classifier(
    folder: str | Path, card: S3Card, size: Size, tokens: Tokens
) -> Classifier:
    name = card.weights.file
    content = folders.read_part(folder, S3_CARD, name, card.weights.digest)
    where = f"{folder}: {name}"
    try:
        state = unpack(content)
    except SafetensorError as error:
        raise ModelError(f"{where}: cannot be read: {error}") from None
    buckets = len(card.tokens)
    found = {name: tuple(one.shape) for name, one in state.items()}
    expected = shapes(size, buckets)
    if found != expected:
        wrong = sorted(found.items() ^ expected.items())[0][0]
        raise ModelError(
            f"{where}: {wrong} is {found.get(wrong, 'not there')}, but must be "
            f"{expected.get(wrong, 'not there')} for the size in {S3_CARD}"
        )
    if not all(bool(one.isfinite().all()) for one in state.values()):
        raise ModelError(f"{where}: has weights that are not finite")
    classifier = Classifier.random(size, buckets, seed=0)
    classifier.network.load_state_dict(state)
    return Classifier(classifier.network, tokens, size)
