"""A model's directory: a card, and files that the card names by their digest.

The card is JSON and says what the model is; the files are what is too large for it. At
every moment the directory holds the whole old model or the whole new one, whatever a
save is interrupted by: files of other content have other names, and the card is put in
place last. Nothing that is read is run, and nothing of somebody else's is written over.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import stat
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from justitia.policy.exact import shown
from justitia.predictors.errors import ModelError
from justitia.workloads.files.atomic import replacing_bytes

CARD, S3_CARD = "model.json", "s3.json"
CARDS = (CARD, S3_CARD)
"""What a directory is known as a model by; the last one first, if there are both."""
MOST_BYTES = 2**30
"""A larger file is none of a model."""
MOST_CARD_BYTES = 2**26
_DIGITS = 16
_PART = re.compile(
    rf"(arrays|weights)-[0-9a-f]{{{_DIGITS}}}\.safetensors"
    rf"|tokenizer-[0-9a-f]{{{_DIGITS}}}\.json"
)
_DRAFT = re.compile(rf"\.({_PART.pattern}|model\.json|s3\.json)\.[0-9a-f]{{8}}\.part")
"""What `replacing_bytes` leaves of a file of ours when its process is killed."""

Card = TypeVar("Card", bound=BaseModel)


def digest(content: bytes) -> str:
    """Return the SHA-256 of a file."""
    return hashlib.sha256(content).hexdigest()


def part(stem: str, content: bytes, suffix: str) -> str:
    """Return the name of a file beside the card, which says what is in it."""
    return f"{stem}-{digest(content)[:_DIGITS]}{suffix}"


def versions(libraries: Iterable[str]) -> dict[str, str]:
    """Return the versions of Python and of packages, ``"none"`` where one is not."""
    found = {"python": platform.python_version()}
    for name in libraries:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "none"
    return found


def check_out(folder: str | os.PathLike[str]) -> None:
    """Raise `ModelError` unless a model can be saved in this directory.

    It must hold nothing, or a model, or what a save that was interrupted left; where it
    is not there yet, it must be possible to make it.
    """
    target = Path(folder)
    try:
        if target.is_symlink() and not target.exists():
            raise ModelError(f"{folder}: is a link that leads nowhere")
        if target.exists():
            if not target.is_dir():
                raise ModelError(f"{folder}: is not a directory")
            a_model = any(_written_by_us(target / card) for card in CARDS)
            if not a_model and not all(_ours(file.name) for file in target.iterdir()):
                raise ModelError(
                    f"{folder}: holds something that is not a model; give a directory "
                    f"that is new or empty"
                )
        nearest = next(p for p in (target, *target.absolute().parents) if p.exists())
        if not nearest.is_dir() or not os.access(nearest, os.W_OK):
            raise ModelError(f"{folder}: cannot be written: {nearest} is not writable")
    except OSError as error:
        raise _cannot(folder, "be written", error) from None


def write(
    folder: str | os.PathLike[str],
    name: str,
    card: Mapping[str, Any],
    parts: Mapping[str, bytes],
) -> None:
    """Write a model in place of the one that may be there.

    Parameters
    ----------
    name
        Of the card, one of `CARDS`.
    parts
        The other files by name; see `part`.

    Raises
    ------
    ModelError
        If the directory holds something else, or cannot be written.
    """
    check_out(folder)
    target = Path(folder)
    text = json.dumps(card, ensure_ascii=False, indent=1, allow_nan=False)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for file, content in (*parts.items(), (name, text.encode())):
            with replacing_bytes(target / file) as open_:
                open_.write(content)
        for old in list(target.iterdir()):
            other = old.name in CARDS and old.name != name
            stale = other or (_ours(old.name) and old.name not in parts)
            if stale and not old.is_dir():
                old.unlink()
    except OSError as error:
        raise _cannot(folder, "be written", error) from None


def read_card(
    folder: str | os.PathLike[str], name: str, kind: type[Card], known: int
) -> Card:
    """Read a card, whose every field is checked.

    Parameters
    ----------
    known
        The format that this version reads.

    Raises
    ------
    ModelError
        If there is none, if it is of another format (naming both), or if it holds
        anything that it must not.
    """
    try:
        text = _read(Path(folder) / name, MOST_CARD_BYTES)
    except FileNotFoundError:
        raise ModelError(f"{folder}: not a model: there is no {name} in it") from None
    except NotADirectoryError:
        raise ModelError(f"{folder}: not a model: not a directory") from None
    except OSError as error:
        raise _cannot(folder, "be read", error) from None
    try:
        fields = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{folder}: {name} is not JSON: {error}") from None
    if not isinstance(fields, dict) or "format" not in fields:
        raise ModelError(f"{folder}: {name} is not that of a model: it has no format")
    if type(fields["format"]) is not int or fields["format"] != known:
        found = fields.get("versions")
        writer = found.get("justitia") if isinstance(found, dict) else None
        raise ModelError(
            f"{folder}: the model has format {shown(fields['format'])} (written by "
            f"justitia {shown(writer)}); justitia {versions(['justitia'])['justitia']} "
            f"reads format {known}"
        )
    try:
        return kind.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        where = ".".join(map(str, first["loc"]))
        where = f"{where}: " if where else ""
        raise ModelError(
            f"{folder}: {name}: {where}{first['msg']}, not {shown(first['input'])}"
        ) from None


def read_part(
    folder: str | os.PathLike[str], card: str, name: str, expected: str
) -> bytes:
    """Read a file beside a card, which must be the one that it was written with.

    Parameters
    ----------
    card
        The name of the card, for the message.
    expected
        The digest that the card has of it.

    Raises
    ------
    ModelError
        If it cannot be read, or is another.
    """
    try:
        content = _read(Path(folder) / name, MOST_BYTES)
    except OSError as error:
        raise _cannot(f"{folder}: {name}", "be read", error) from None
    if digest(content) != expected:
        raise ModelError(
            f"{folder}: {name} is not the file that {card} was written with: its "
            f"digest is another"
        )
    return content


def _written_by_us(card: Path) -> bool:
    """Return whether a file is the card of a model, whatever its format."""
    try:
        fields = json.loads(_read(card, MOST_CARD_BYTES))
    except (OSError, ValueError, RecursionError):  # a ModelError is a ValueError
        return False
    wrote = fields.get("versions") if isinstance(fields, dict) else None
    return isinstance(wrote, dict) and "justitia" in wrote and "format" in fields


def _ours(name: str) -> bool:
    return bool(_PART.fullmatch(name) or _DRAFT.fullmatch(name))


def _read(path: Path, most: int) -> bytes:
    # A pipe would be waited for without end.
    try:
        kind = path.stat().st_mode
    except ValueError as error:  # a null byte
        raise ModelError(f"{shown(str(path))}: {error}") from None
    if not stat.S_ISREG(kind):
        raise ModelError(f"{path}: is not a regular file")
    with path.open("rb") as file:
        content = file.read(most + 1)
    if len(content) > most:
        raise ModelError(f"{path}: is larger than {most:,} bytes: not a model")
    return content


def _cannot(what: object, verb: str, error: OSError) -> ModelError:
    return ModelError(f"{what}: cannot {verb}: {error.strerror or error}")
