"""An S³ in a folder: ``s3.json``, ``model.safetensors``, maybe ``tokenizer.json``.

No pickle is written or read. This module loads torch.
"""

import json
from dataclasses import asdict
from importlib.metadata import version
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file

from justitia.policy import PolicyError
from justitia.policy.exact import LARGEST as LARGEST_NUMBER
from justitia.policy.exact import shown
from justitia.predictors.errors import ModelError
from justitia.predictors.s3.buckets import Buckets
from justitia.predictors.s3.classifier import LARGEST, Classifier, Size, shapes
from justitia.predictors.s3.predictor import S3, Plan
from justitia.predictors.s3.tokens import FILE, FromFile, HashedWords

FORMAT = 1
ABOUT = "s3.json"
WEIGHTS = "model.safetensors"
_LARGEST_ABOUT = 1 << 20
"""Bytes: much more than any that is written."""
_MOST_BUCKETS = 1_000


def save(s3: S3, folder: str | Path) -> None:
    """Write what an S³ has learned to a folder, which is made where there is none.

    Raises
    ------
    ModelError
        If it has learned nothing, or the folder cannot be written.
    """
    path, content = Path(folder), about(s3)
    classifier = s3.classifier_
    assert classifier is not None
    try:
        path.mkdir(parents=True, exist_ok=True)
        if isinstance(classifier.tokens, FromFile):
            (path / FILE).write_bytes(classifier.tokens.file.read_bytes())
        save_file(
            {k: v.contiguous() for k, v in classifier.network.state_dict().items()},
            path / WEIGHTS,
        )
        (path / ABOUT).write_text(json.dumps(content, indent=1) + "\n")
    except OSError as error:
        raise ModelError(f"{path}: cannot be written: {error.strerror}") from None


def about(s3: S3) -> dict[str, Any]:
    """Return all that ``s3.json`` says of an S³.

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
        "versions": {
            name: version(name) for name in ("justitia", "torch", "transformers")
        },
        "seed": s3.seed,
        "size": asdict(classifier.size),
        "tokenizer": "file" if isinstance(classifier.tokens, FromFile) else "words",
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
        If the folder holds no S³, one of another format, or anything that does not fit
        together. Nothing that it asks for is made before it is checked.
    """
    path = Path(folder)
    content = _read(path / ABOUT)
    try:
        size = Size(**{name: content["size"][name] for name in LARGEST})
        buckets = Buckets(content["longest"], tuple(content["tokens"]))
        if len(buckets.tokens) > _MOST_BUCKETS:
            raise ModelError(f"more than {_MOST_BUCKETS} buckets")
        counts = {kind: one.pop("agents") for kind, one in content["classes"].items()}
        plans = {kind: _plan(one) for kind, one in content["classes"].items()}
        seen = frozenset(content["seen"])
        overall, seed, words = (
            _plan(content["overall"]),
            content["seed"],
            content["tokenizer"],
        )
        high = _number(content["high"], 1.0)
        for value in (seed, *counts.values()):
            if type(value) is not int:
                raise ModelError(f"must be an int, not {shown(value)}")
    except KeyError as error:
        raise ModelError(f"{path / ABOUT}: {error} is missing") from None
    except PolicyError as error:
        raise ModelError(f"{path / ABOUT}: {error}") from None
    except (TypeError, AttributeError):
        raise ModelError(f"{path / ABOUT}: not as S³ writes it") from None
    tokens = HashedWords(size.vocab_size) if words == "words" else FromFile(path)
    if isinstance(tokens, FromFile) and tokens.size > size.vocab_size:
        raise ModelError(
            f"{path / FILE}: has {tokens.size:,} ids, the model {size.vocab_size:,}"
        )
    s3 = S3(size=size, buckets=len(buckets.tokens), seed=seed)
    s3.buckets_, s3.plans_, s3.overall_ = buckets, plans, overall
    s3.trained_on_, s3.seen, s3.high_ = counts, seen, high
    s3.classifier_ = _classifier(path / WEIGHTS, size, tokens, s3.count)
    return s3


def _read(file: Path) -> dict[str, Any]:
    try:
        if file.stat().st_size > _LARGEST_ABOUT:
            raise ModelError(f"{file}: larger than {_LARGEST_ABOUT:,} bytes")
        content = json.loads(file.read_bytes())
    except OSError as error:
        raise ModelError(f"{file}: cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError):
        raise ModelError(f"{file}: not JSON") from None
    if not isinstance(content, dict):
        raise ModelError(f"{file}: must be an object, not {shown(content)}")
    if type(content.get("format")) is not int or content["format"] != FORMAT:
        raise ModelError(
            f"{file}: format {shown(content.get('format'))}, but this version of "
            f"justitia reads format {FORMAT}"
        )
    return content


def _plan(given: dict[str, Any]) -> Plan:
    plan = Plan(**given)
    return Plan(_number(plan.calls), _number(plan.prompt_tokens))


def _number(value: object, least: float = 0.0) -> float:
    if type(value) not in (int, float) or not least <= value <= LARGEST_NUMBER:  # type: ignore[operator]
        raise ModelError(f"a number must be {least:g} or more, not {shown(value)}")
    return float(value)  # type: ignore[arg-type]


def _classifier(
    file: Path, size: Size, tokens: HashedWords | FromFile, buckets: int
) -> Classifier:
    expected = shapes(size, buckets)
    try:
        with safe_open(file, framework="pt") as weights:
            found = {
                name: tuple(weights.get_slice(name).get_shape())
                for name in weights.keys()  # noqa: SIM118 - it is no mapping
            }
        if found != expected:
            wrong = sorted(found.items() ^ expected.items())[0][0]
            raise ModelError(
                f"{file}: {wrong} is {found.get(wrong, 'not there')}, but must be "
                f"{expected.get(wrong, 'not there')} for the size in {ABOUT}"
            )
        state = load_file(file)
    except FileNotFoundError:
        raise ModelError(f"{file}: cannot be read: there is no such file") from None
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{file}: cannot be read: {error}") from None
    if not all(bool(one.isfinite().all()) for one in state.values()):
        raise ModelError(f"{file}: has weights that are not finite")
    classifier = Classifier.random(size, buckets, seed=0)
    classifier.network.load_state_dict(state)
    return Classifier(classifier.network, tokens, size)
