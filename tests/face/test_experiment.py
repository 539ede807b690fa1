"""`justitia experiment` on few agents, and `justitia run --report`."""

import json
import os
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import pytest

from benchmarks.results_page import PAGE as FILE
from benchmarks.results_page import SHOWN
from justitia.experiments import EXPERIMENTS
from tests.face.builders import agents_file, command, surroundings
from tests.face.conftest import Justitia

PAGE = FILE.read_text("utf-8")
NOISE = ("experiment", "noise", "--quick", "--agents", "12", "--seeds", "1")


def test_a_folder_and_tables(justitia: Justitia) -> None:
    ran = justitia(*NOISE, "--out", "deep/folder")
    assert ran.code == 0, ran.err
    assert ran.out.startswith("justitia ")
    assert "seed 7, 12 agents (paper), arrivals poisson" in ran.out
    assert "The report is deep/folder/report.html" in ran.out
    assert "noise: done (1 of 1)" in ran.err
    written = {path.name for path in Path("deep/folder").iterdir()}
    assert written == {
        "cells", "results.json", "report.html", "noise.csv", "noise.png", "noise.svg"
    }  # fmt: skip


def test_the_command_in_the_report_repeats_it(justitia: Justitia) -> None:
    justitia(*NOISE, "--out", "a")
    page = Path("a/report.html").read_text()
    told = "justitia experiment noise --quick --seeds 1 --agents 12"
    assert f"<code>{told}</code>" in page
    assert justitia(*told.split()[1:], "--out", "b", "--jobs", "2").code == 0
    for path in Path("a").iterdir():
        if path.is_file():
            assert path.read_bytes() == (Path("b") / path.name).read_bytes()


def test_json_in_place_of_tables(justitia: Justitia) -> None:
    ran = justitia(*NOISE, "--json", "-")
    assert ran.code == 0
    assert json.loads(ran.out) == json.loads(Path("results/results.json").read_text())
    assert json.loads(ran.out)["seeds"] == [7]


def test_nothing_is_run_twice(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = justitia(*NOISE)
    monkeypatch.setattr("justitia.experiments.pool.perform", None)
    assert justitia(*NOISE).out == first.out


def test_agents_of_a_file(justitia: Justitia) -> None:
    """Whose content is part of what was run."""
    agents_file("mine.jsonl", n=10, decode=20)
    given = (*NOISE, "--workload", "mine.jsonl", "--json", "-")
    first = justitia(*given)
    assert json.loads(first.out)["workload"] == "mine.jsonl"
    assert "--workload mine.jsonl" in Path("results/report.html").read_text()
    (note,) = json.loads(first.out)["notes"]
    assert note.startswith("The agents are those of 'mine.jsonl'")
    agents_file("mine.jsonl", n=10, decode=40)
    assert justitia(*given).out != first.out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("nothing", "no experiment 'nothing'; there are: main, predictor, cost, "),
        ("noise --seeds 0", "--seeds: must be a whole number from 1 to 1000, not '0'"),
        ("noise --seed x", "--seed: must be a whole number from 0 "),
        ("noise --agents 9", "--agents: must be a whole number from 10 "),
        ("noise --jobs -1", "--jobs: must be a whole number from 1 "),
        ("noise --workload no", "--workload: must be paper, or a file of agents "),
        ("noise --arrivals burst", "--arrivals: a burst has no density to compare"),
        ("noise --arrivals no", "--arrivals: must be one of poisson, "),
        ("predictor --data no", "--data: must be a file or folder of agents that is "),
        ("noise --out small.toml", "--out: small.toml: cannot be made: "),
        ("noise --out small.toml/x", "--out: small.toml/x: cannot be made: "),
        ("noise --json no/a.json", "no/a.json: cannot be written: "),
    ],
)  # fmt: skip
def test_what_cannot_be_used(arguments: str, message: str, justitia: Justitia) -> None:
    ran = justitia("experiment", *arguments.split())
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"justitia: {message}")
    assert not Path("results", "results.json").exists()


@pytest.mark.parametrize("library", ["jinja2", "joblib", "matplotlib", "scipy"])
def test_without_the_extra_it_is_named(
    library: str, justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("justitia.experiments.extra.LIBRARIES", (f"no_{library}",))
    needs = "which is not installed; install it with: pip install 'justitia[experiments"
    ran = justitia(*NOISE)
    assert (ran.code, ran.out) == (2, "")
    assert f"justitia experiment needs no_{library}, {needs}" in ran.err
    ran = justitia("run", "--agents", "3", "--report", "a.html")
    assert (ran.code, ran.out) == (2, "")
    assert f"a report needs no_{library}, {needs}" in ran.err


def test_without_predictors_it_is_said(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("justitia.predictors.extra.LIBRARIES", ("nowhere_to_be_found",))
    ran = justitia("experiment", "predictor", "--quick")
    assert (ran.code, ran.out) == (2, "")
    assert "pip install 'justitia[predictors]'" in ran.err


def test_all_says_what_it_left_out(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    from justitia import experimenting

    monkeypatch.setattr("justitia.predictors.extra.LIBRARIES", ("nowhere_to_be_found",))
    few = {name: EXPERIMENTS[name] for name in ("noise", "predictor")}
    monkeypatch.setattr(experimenting, "EXPERIMENTS", few)
    ran = justitia("experiment", "all", *NOISE[2:])
    assert ran.code == 0, ran.err
    for told in (ran.out, Path("results/report.html").read_text()):
        assert "Left out: predictor. " in told
        assert "nowhere_to_be_found" in told


def test_an_interrupt_loses_only_what_was_being_run() -> None:
    """Ctrl-C ends it and its processes, with one line; what was finished is kept."""
    arguments = ("experiment", "main", "--quick", "--agents", "40", "--jobs", "2")
    with subprocess.Popen(
        command(*arguments), env=surroundings(), stdout=subprocess.PIPE,
        stderr=subprocess.PIPE, text=True, start_new_session=True,
    ) as process:  # fmt: skip
        cells = Path("results/cells")
        until = time.monotonic() + 120
        while not list(cells.glob("*.json")) and time.monotonic() < until:
            time.sleep(0.05)
        os.killpg(process.pid, signal.SIGINT)
        out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert err.strip() == "justitia: interrupted"
    kept = {path: path.read_bytes() for path in cells.glob("*.json")}
    assert kept
    for content in kept.values():
        assert json.loads(content)["outcome"]["result"]["jct"]
    assert not list(cells.glob(".*"))


def test_its_processes_end_with_it_whatever_ends_it() -> None:
    """Standard output is closed then: a pipe behind it does not wait."""
    arguments = ("experiment", "main", "--quick", "--agents", "40", "--jobs", "2")
    with subprocess.Popen(
        command(*arguments), env=surroundings(), stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, start_new_session=True,
    ) as process:  # fmt: skip
        until = time.monotonic() + 120
        while (
            not list(Path("results/cells").glob("*.json")) and time.monotonic() < until
        ):
            time.sleep(0.05)
        process.kill()
        try:
            out, _ = process.communicate(timeout=30)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
    assert (process.returncode, out) == (-signal.SIGKILL, b"")


def test_the_page_of_results_shows_what_is_printed(justitia: Justitia) -> None:
    """One of its commands, as it stands there."""
    shown = {match["command"]: match["printed"] for match in SHOWN.finditer(PAGE)}
    assert set(EXPERIMENTS) <= {command.split()[2] for command in shown}
    command = "justitia experiment noise --quick"
    assert justitia(*command.split()[1:]).out == shown[command]


# The report of a run ------------------------------------------------------------------


def test_a_run_has_the_same_kind_of_report(justitia: Justitia) -> None:
    pages = []
    for _ in range(2):
        ran = justitia("run", "--agents", "12", "--report", "a.html")
        assert ran.code == 0, ran.err
        pages.append(Path("a.html").read_text())
    assert pages[0] == pages[1]
    page = pages[0]
    for told in ("seed 7", "12 agents", "Fairness", "<svg", "justitia run --preset"):
        assert told in page
    assert ran.out.splitlines()[0].partition(",")[0] in page
    assert "<script" not in page


@pytest.mark.parametrize(
    "arguments",
    [
        ("--policy", "fcfs"),
        ("--policy", "justitia", "--predictor", "noisy:2"),
        ("--policy", "vtc,mlfq", "--tags", "stage", "--arrivals", "burst"),
    ],
)
def test_a_report_of_whatever_there_is(
    arguments: tuple[str, ...], justitia: Justitia
) -> None:
    ran = justitia("run", "--agents", "5", *arguments, "--report", "a.html")
    assert ran.code == 0, ran.err
    page = Path("a.html").read_text()
    for flag, value in zip(arguments[::2], arguments[1::2], strict=True):
        assert f"{flag} {value}" in page
    assert ("Prediction" in page) == ("--predictor" in arguments)
