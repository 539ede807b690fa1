"""Cells on disk, and running those that are not there."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from justitia.engines.base import EngineError
from justitia.experiments import Cell, ExperimentError, Store, pool, run, store
from justitia.experiments.cells import Outcome, cell
from tests.experiments.small import simulated

OUTCOME: Outcome = {"result": {"jct": [1.5, None]}, "timings": {}}


def test_what_is_saved_is_found_again(tmp_path: Path) -> None:
    Store(tmp_path, "1").save(simulated(), OUTCOME)
    assert Store(tmp_path, "1").load(simulated()) == OUTCOME
    assert [path.suffix for path in tmp_path.iterdir()] == [".json"]


@pytest.mark.parametrize(
    "other", [simulated(seed=8), simulated(agents=9), simulated("fcfs")]
)
def test_another_cell_is_not_found(tmp_path: Path, other: Cell) -> None:
    Store(tmp_path, "1").save(simulated(), OUTCOME)
    assert Store(tmp_path, "1").load(other) is None


def test_another_version_is_not_found(tmp_path: Path) -> None:
    Store(tmp_path, "1").save(simulated(), OUTCOME)
    assert Store(tmp_path, "2").load(simulated()) is None


def test_other_code_is_not_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Store(tmp_path, "1").save(simulated(), OUTCOME)
    monkeypatch.setattr(store, "fingerprint", lambda: "other")
    assert Store(tmp_path, "1").load(simulated()) is None


@pytest.mark.parametrize(
    "spoil",
    [
        lambda text: "",
        lambda text: text[:-9],
        lambda text: "[]",
        lambda text: text.replace('"timings"', '"times"'),
        lambda text: text.replace('"vtc"', '"fcfs"'),
        lambda text: json.dumps(json.loads(text) | {"outcome": 3}),
    ],
)
def test_a_file_that_is_not_whole_is_not_there(
    tmp_path: Path, spoil: Callable[[str], str]
) -> None:
    kept = Store(tmp_path, "1")
    kept.save(simulated(), OUTCOME)
    (file,) = tmp_path.iterdir()
    file.write_text(spoil(file.read_text()))
    assert kept.load(simulated()) is None


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ExperimentError, match="file"):
        Store(tmp_path / "file" / "cells", "1").save(simulated(), OUTCOME)


def test_finished_cells_are_not_run_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted in the middle, it goes on with what is missing."""
    done: list[Cell] = []

    def interrupted(one: Cell) -> Outcome:
        if len(done) == 2:
            raise KeyboardInterrupt
        done.append(one)
        return OUTCOME

    cells = [simulated(seed=seed) for seed in range(4)]
    monkeypatch.setattr(pool, "perform", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(cells, Store(tmp_path, "1"))
    before = list(done)

    def counted(one: Cell) -> Outcome:
        done.append(one)
        return OUTCOME

    told: list[Cell] = []
    monkeypatch.setattr(pool, "perform", counted)
    found = run(cells, Store(tmp_path, "1"), progress=told.append)
    assert found == dict.fromkeys(cells, OUTCOME)
    assert len(done) == len(set(done)) == 4
    assert done[:2] == before
    assert told[:2] == before
    assert set(told) == set(cells)


def test_processes_give_what_one_gives(tmp_path: Path) -> None:
    cells = [simulated(policy, seed) for policy in ("vtc", "fcfs") for seed in (7, 8)]
    alone = run(cells, Store(tmp_path / "one", "1"))
    assert run(cells, Store(tmp_path / "two", "1"), jobs=2) == alone


def test_a_cell_that_fails_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match=r"decide .*policy vtc"):
        run([cell("decide", policy="vtc", waiting="x")], Store(tmp_path, "1"))


def test_a_content_is_that_of_the_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("1")
    before = store.content_of(str(tmp_path))
    assert store.content_of(str(tmp_path / "a")) == store.content_of(
        str(tmp_path / "a")
    )
    (tmp_path / "a").write_text("2")
    assert store.content_of(str(tmp_path)) != before
    with pytest.raises(ExperimentError, match="nowhere"):
        store.content_of("./nowhere")
