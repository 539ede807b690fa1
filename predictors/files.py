"""A model in a directory: JSON and safetensors, nothing that runs when it is read.

``model.json`` has the format, who wrote it, what it was trained on, the errors of its
inner validation, and all that is not an array; the arrays lie in the one file that it
names, whose digest it has. Numbers are written so that they come back to the bit.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError
from safetensors.numpy import load as unpack
from safetensors.numpy import save as pack

from justitia.predictors import folder as folders
from justitia.predictors.card import KindCard, ModelCard
from justitia.predictors.errors import ModelError
from justitia.predictors.features import LONGEST, Features
from justitia.predictors.folder import CARD, check_out
from justitia.predictors.kinds import Guess, KindModel, Lengths, TextNetwork
from justitia.predictors.learned import Learned
from justitia.predictors.network import Layer, Network

__all__ = ["CARD", "FORMAT", "check_out", "load", "save"]

FORMAT = 2
"""What this version writes and reads."""
_LIBRARIES = ("justitia", "numpy", "scikit-learn", "scipy", "torch", "safetensors")


Arrays = dict[str, NDArray[Any]]


def save(learned: Learned, folder: str | os.PathLike[str]) -> None:
    """Write a model into a directory, in place of the model that may be there.

    At every moment the directory holds the whole old model or the whole new one.

    Raises
    ------
    ModelError
        If the directory holds something else, or cannot be written.
    """
    arrays: Arrays = {}
    classes = {
        kind: _kind_card(model, f"{place}.", arrays)
        for place, (kind, model) in enumerate(learned.models.items())
    }
    anyone = _kind_card(learned.anyone, "anyone.", arrays)
    packed = pack({name: np.ascontiguousarray(a) for name, a in arrays.items()})
    named = folders.part("arrays", packed, ".safetensors")
    card = {
        "format": FORMAT,
        "versions": folders.versions(_LIBRARIES),
        "seed": learned.about.get("seed", 0),
        "cost_model": "kv",
        "classes": classes,
        "anyone": anyone,
        "seen": sorted(learned.seen),
        "arrays": named,
        "digest": folders.digest(packed),
    }
    folders.write(folder, CARD, card, {named: packed})
    learned.about.update(_about(card))


def load(folder: str | os.PathLike[str]) -> Learned:
    """Read a model from its directory.

    Nothing in the files is run: they are JSON, checked field by field, and arrays of
    numbers.

    Raises
    ------
    ModelError
        If there is no model, if it is of another format (naming both), or if anything
        in it does not fit.
    """
    card = folders.read_card(folder, CARD, ModelCard, FORMAT)
    packed = folders.read_part(folder, CARD, card.arrays, card.digest)
    try:
        arrays = unpack(packed)
        models = {
            kind: _kind(one, f"{place}.", arrays)
            for place, (kind, one) in enumerate(card.classes.items())
        }
        learned = Learned(
            models,
            _kind(card.anyone, "anyone.", arrays),
            seen=frozenset(card.seen),
            about=_about(card.model_dump()),
        )
        learned._check()
    except (SafetensorError, AssertionError, KeyError, ValueError) as error:
        raise ModelError(
            f"{folder}: {card.arrays} does not fit {CARD}: "
            f"{type(error).__name__} {error}"
        ) from None
    return learned


def _kind_card(model: KindModel, prefix: str, arrays: Arrays) -> dict[str, Any]:
    lengths = model.lengths
    arrays[prefix + "calls"] = model.calls
    text: dict[str, Any] | None = None
    features = 0
    if isinstance(model.text, TextNetwork):
        made, network = model.text.features, model.text.network
        features = made.size
        arrays |= {
            prefix + "grams": made.grams,
            prefix + "gram_weights": made.gram_weights,
            prefix + "term_weights": made.term_weights,
            prefix + "centre": made.centre,
            prefix + "spread": made.spread,
            prefix + "linear": network.linear,
        }
        for place, (weights, biases) in enumerate(network.layers):
            arrays[f"{prefix}weights.{place}"] = weights
            arrays[f"{prefix}biases.{place}"] = biases
        text = {
            "terms": list(made.terms),
            "longest": made.longest,
            "mean": network.mean,
            "spread": network.spread,
            "share": float(network.share),
            "layers": len(network.layers),
            "shift": model.text.shift,
            "margin": model.text.margin,
        }
    return {
        "agents": model.agents,
        "floor": model.floor,
        "cap": model.cap,
        "features": features,
        "lengths": {
            "typical": {"log": lengths.typical.log, "high": lengths.typical.high},
            "decode": lengths.decode,
            "slope": lengths.slope,
            "constant": lengths.constant,
            "margin": lengths.margin,
            "beyond": lengths.beyond,
            "beyond_margin": lengths.beyond_margin,
        },
        "text": text,
        "validation": model.validation,
    }


def _kind(card: KindCard, prefix: str, arrays: Mapping[str, NDArray[Any]]) -> KindModel:
    def get(name: str, kind: type = np.float64) -> NDArray[Any]:
        array = arrays[prefix + name]
        if array.dtype != kind:
            raise ValueError(f"{prefix}{name} is of type {array.dtype}")
        return array

    text: TextNetwork | None = None
    if card.text is not None:
        told = card.text
        features = Features(
            grams=get("grams", np.uint64),
            gram_weights=get("gram_weights"),
            terms=told.terms,
            term_weights=get("term_weights"),
            centre=get("centre"),
            spread=get("spread"),
            longest=told.longest,
        )
        layers: list[Layer] = [
            (get(f"weights.{place}"), get(f"biases.{place}"))
            for place in range(told.layers)
        ]
        network = Network(layers, told.mean, told.spread, get("linear"), told.share)
        text = TextNetwork(features, network, told.shift, told.margin)
    lengths = card.lengths
    return KindModel(
        agents=card.agents,
        text=text,
        lengths=Lengths(
            Guess(lengths.typical.log, lengths.typical.high),
            lengths.decode,
            lengths.slope,
            lengths.constant,
            lengths.margin,
            lengths.beyond,
            lengths.beyond_margin,
        ),
        floor=card.floor,
        cap=card.cap,
        calls=get("calls", np.int64),
        validation=card.validation,
    )


def _about(card: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a model says of itself: the card without what makes it predict."""

    def short(kind: Mapping[str, Any]) -> dict[str, Any]:
        shown_ = {name: kind[name] for name in ("agents", "features", "validation")}
        return shown_ | {"text": kind["text"] is not None}

    return {
        "format": card["format"],
        "versions": dict(card["versions"]),
        "seed": card["seed"],
        "cost_model": card["cost_model"],
        "classes": {kind: short(one) for kind, one in card["classes"].items()},
        "anyone": short(card["anyone"]),
        "characters": next(
            (
                one["text"]["longest"]
                for one in (card["anyone"], *card["classes"].values())
                if one["text"] is not None
            ),
            LONGEST,
        ),
    }
