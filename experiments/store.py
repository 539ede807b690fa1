"""Finished cells on disk, so that an experiment goes on where it was interrupted."""

import hashlib
import json
import os
import secrets
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from justitia.experiments.cells import Cell, Outcome
from justitia.experiments.errors import ExperimentError

_ROOMS = (
    "justitia.engines",
    "justitia.experiments.tasks",
    "justitia.policy",
    "justitia.predictors",
    "justitia.workloads",
)
"""Packages whose code decides how a cell comes out."""
_ELSEWHERE = {"sglang", "vllm", "serving"}
"""Folders in them that no cell runs."""


class Store:
    """A folder of finished cells, a JSON file each.

    A file is named after all that determines it: the cell, the version, and the code
    itself, so that a changed checkout does not show what another one ran. One that
    cannot be read, or is another cell's, counts as not there.

    Parameters
    ----------
    folder
        Made when the first cell is saved.
    version
        Of the package.
    """

    def __init__(self, folder: Path, version: str) -> None:
        self._folder = folder
        self._made_by = f"{version}/{fingerprint()}"

    def load(self, cell: Cell) -> Outcome | None:
        """Return what a cell came to, None where it has not been run."""
        try:
            found = json.loads(self._path(cell).read_bytes())
            outcome = found.pop("outcome")
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            return None
        mine = {"task": cell.task, "given": cell.given, "made_by": self._made_by}
        if found != mine or not isinstance(outcome, dict):
            return None
        return outcome if outcome.keys() == {"result", "timings"} else None

    def save(self, cell: Cell, outcome: Outcome) -> None:
        """Keep what a cell came to, whole or not at all.

        Raises
        ------
        ExperimentError
            If it cannot be written.
        """
        path = self._path(cell)
        content = {
            "task": cell.task,
            "given": cell.given,
            "made_by": self._made_by,
            "outcome": outcome,
        }
        draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            try:
                draft.write_text(json.dumps(content, allow_nan=False) + "\n")
                draft.replace(path)
            finally:
                draft.unlink(missing_ok=True)
        except OSError as error:
            raise ExperimentError(
                f"{path}: cannot be written: {error.strerror or error}"
            ) from None

    def _path(self, cell: Cell) -> Path:
        text = f"{self._made_by}\n{cell.task}\n{cell.text}"
        name = hashlib.sha256(text.encode()).hexdigest()[:32]
        return self._folder / f"{name}.json"


@cache
def fingerprint() -> str:
    """Return a hash of the code and the tables that decide how cells come out."""
    digest = hashlib.sha256()
    for room in _ROOMS:
        for path, name in _files(Path(import_module(room).__path__[0])):
            digest.update(f"{room}/{name}\n".encode())
            digest.update(path.read_bytes())
    return digest.hexdigest()[:16]


def content_of(path: str) -> str:
    """Return a hash of a file, or of all files of a folder, that a cell reads.

    Raises
    ------
    ExperimentError
        If it cannot be read.
    """
    digest = hashlib.sha256()
    try:
        given = Path(path)
        given.stat()  # or a file that is not there would be one of no content
        files = sorted(given.iterdir()) if given.is_dir() else [given]
        for each in files:
            if each.is_file():
                digest.update(f"{each.name}\n".encode(errors="surrogateescape"))
                digest.update(each.read_bytes())
    except OSError as error:
        raise ExperimentError(
            f"{path}: cannot be read: {error.strerror or error}"
        ) from None
    return digest.hexdigest()[:16]


def _files(root: Path) -> Iterator[tuple[Path, str]]:
    """Yield the code below a folder and its name there, always in the same order."""
    for folder, below, names in os.walk(root):
        below[:] = sorted(set(below) - _ELSEWHERE - {"__pycache__"})
        for name in sorted(names):
            if name.endswith((".py", ".toml")):
                path = Path(folder, name)
                yield path, path.relative_to(root).as_posix()
