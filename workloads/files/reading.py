"""Reads a workload from a file or a folder, whatever its format."""

import os
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from types import ModuleType

from justitia.policy.exact import shown
from justitia.workloads.agents import AgentSpec, WorkloadError
from justitia.workloads.files import dag, finished, own, published, vtc
from justitia.workloads.files.lines import fault, lines, parsed
from justitia.workloads.files.row import Row
from justitia.workloads.files.table import cells_of

SUFFIXES = (".jsonl", ".jsonl.gz", ".csv", ".csv.gz")
"""Names of the files of a folder that are read; others in it are left alone."""

FORMATS = (
    f'JSON lines of this project ("{own.MARK}"), recorded agents ("agent_class"), '
    f'finished inferences ("agent"), AIPerf\'s dag_jsonl ("session_id"), '
    f"VTC's trace (CSV with {vtc.TIME})"
)


def read(
    path: str | os.PathLike[str], *, count_tokens: Callable[[str], int] = dag.words
) -> list[AgentSpec]:
    """Return the agents of a file, or of all files of a folder in order of their names.

    The format is recognised by the first line; `FORMATS` lists them. Files are read
    line by line, compressed or not. Agents of logs of finished inferences come last.

    Parameters
    ----------
    path
        The file or folder; of a folder, the files that end in one of `SUFFIXES`.
    count_tokens
        Tokens of a text, for the one format that has prompts and not their lengths
        (dag_jsonl). Words, unless given.

    Raises
    ------
    WorkloadError
        Naming the file, the line from 1, the field and the value. Also when two agents
        have one id, when some have an arrival and some have none, and when there are
        no agents.
    """
    agents: list[AgentSpec] = []
    places: dict[str, tuple[object, int]] = {}
    timed: bool | None = None
    for place, agent in _agents(_files(Path(path)), count_tokens):
        file, line = place
        first = places.setdefault(agent.id, place)
        if first is not place:
            raise fault(
                file,
                line,
                f"id: {shown(agent.id)} is the id of an agent already "
                f"({first[0]}, line {first[1]})",
            )
        if timed is None:
            timed = agent.arrival is not None
        elif timed != (agent.arrival is not None):
            has = "is missing" if timed else "is given"
            raise fault(
                file,
                line,
                f"arrival: {has} for agent {shown(agent.id)}, unlike for those "
                f"before it",
            )
        agents.append(agent)
    return agents


def read_groups(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the group of each agent, by id, of the files that `read` takes.

    Agents of one group are made from the same question or document: a split into
    training and test must not part them. Recorded agents and finished inferences name
    it; of other formats each agent is a group of its own.

    Raises
    ------
    WorkloadError
        As `read`.
    """
    found: dict[str, str] = {}
    logged: list[Iterator[Row]] = []
    for file in _files(Path(path)):
        kind, whole = _recognised(file)
        if kind is published:
            found.update(published.groups(file, whole))
        elif kind is finished:
            logged.append(finished.rows(file, whole))
        else:
            found.update((agent.id, agent.id) for _, agent in _of(kind, file, whole))
    found.update(finished.groups(chain.from_iterable(logged)))
    return found


def _files(path: Path) -> list[Path]:
    if not path.is_dir():
        return [path]
    files = sorted(
        (f for f in path.iterdir() if f.name.endswith(SUFFIXES) and f.is_file()),
        key=lambda file: file.name,
    )
    if not files:
        raise WorkloadError(
            f"{path}: there is no file in it that ends in {', '.join(SUFFIXES)}"
        )
    return files


def _agents(
    files: list[Path], count_tokens: Callable[[str], int]
) -> Iterator[tuple[tuple[object, int], AgentSpec]]:
    """Yield the agents with the file and line of each."""
    logged: list[Iterator[Row]] = []
    for file in files:
        kind, whole = _recognised(file)
        if kind is finished:
            logged.append(finished.rows(file, whole))
            continue
        before = True
        for line, agent in _of(kind, file, whole, count_tokens):
            before = False
            yield (file, line), agent
        if before:
            raise WorkloadError(f"{file}: there are no agents in it")
    for row, agent in finished.agents(chain.from_iterable(logged)):
        yield (row.path, row.line), agent


def _of(
    kind: ModuleType | None,
    file: Path,
    whole: Iterator[tuple[int, str]],
    count_tokens: Callable[[str], int] = dag.words,
) -> Iterator[tuple[int, AgentSpec]]:
    """Return the agents of a file whose format has each of them in one place."""
    if kind is None:
        return iter(())
    if kind is dag:
        return dag.rows(file, whole, count_tokens)
    rows: Iterator[tuple[int, AgentSpec]] = kind.rows(file, whole)
    return rows


def _recognised(path: Path) -> tuple[ModuleType | None, Iterator[tuple[int, str]]]:
    """Return the module of a file's format, None if it is empty, and all its lines."""
    numbered = lines(path)
    first = next(numbered, None)
    if first is None:
        return None, iter(())
    whole = chain([first], numbered)
    number, text = first
    if not text.lstrip().startswith("{"):
        if vtc.TIME in cells_of(path, number, text):
            return vtc, whole
    else:
        fields = parsed(path, number, text)
        if own.MARK in fields:
            return own, whole
        if "agent_class" in fields or "calls" in fields:
            return published, whole
        if "session_id" in fields:
            return dag, whole
        if finished.recognised(fields):
            return finished, whole
        if "timestamp" in fields:
            raise fault(
                path,
                number,
                "is a trace of requests: give it as the source of arrivals, "
                "not of agents",
            )
    raise fault(path, number, f"not a format that is known; there are: {FORMATS}")
