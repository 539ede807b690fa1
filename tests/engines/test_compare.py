"""Several policies in processes of their own: same results, and no process lost."""

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from justitia.engines import EngineError
from justitia.engines.compare import Comparison, run_all
from justitia.engines.scenario import build
from justitia.engines.sim import load_preset
from justitia.policy import names

PRESET = "llama-7b-a100-40g"

SCRIPT = """\
import os, sys
from justitia.engines import EngineError
from justitia.engines.compare import Comparison, run_all
from justitia.engines.scenario import build
from justitia.engines.sim import load_preset
from justitia.policy import register
from justitia.policy.fcfs import FCFS

class Wrong(FCFS):
    name = "wrong"

    def __init__(self, *, how: str = "") -> None:
        super().__init__()
        self.how = how

    def submit(self, inference):
        if self.how == "exit":
            os._exit(3)
        if self.how == "raise":
            raise KeyError("lost")
        if self.how == "lambda":
            raise type("Local", (Exception,), {})(lambda: 0)
        super().submit(inference)

register("wrong", Wrong)

def compare():
    preset = load_preset("llama-7b-a100-40g")
    comparison = Comparison(
        build(preset, agents=3),
        {"name": "sim"},
        {"wrong": {"how": sys.argv[1]}, "vtc": {}},
    )
    try:
        results = run_all(comparison, jobs=2)
    except EngineError as error:
        print(error, "|", *getattr(error, "__notes__", ["-"])[0].split()[:3])
    else:
        print(*(result.policy for result in results))

"""
GUARD = 'if __name__ == "__main__":\n    '


def make(policies: Mapping[str, Mapping[str, Any]] | None = None) -> Comparison:
    scenario = build(load_preset(PRESET), agents=5)
    return Comparison(
        scenario, {"name": "sim"}, policies or {name: {} for name in names()}
    )


def script(tmp_path: Path, how: str, *, guard: str = GUARD) -> tuple[str, str]:
    file = tmp_path / "script.py"
    file.write_text(f"{SCRIPT}{guard}compare()\n")
    ran = subprocess.run(
        [sys.executable, str(file), how],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    return ran.stdout, ran.stderr


def test_results_do_not_depend_on_the_processes() -> None:
    comparison = make()
    told: list[tuple[str, int]] = []
    one = run_all(comparison, progress=lambda *what: told.append(what))
    assert run_all(comparison, jobs=2) == one
    assert [result.policy for result in one] == names()
    total = comparison.scenario.inferences
    for name in names():
        counts = [count for who, count in told if who == name]
        assert counts == [*sorted(counts[:-1]), -1]
        assert counts[-2] == total


def test_progress_comes_from_processes() -> None:
    told: list[tuple[str, int]] = []
    comparison = make({"vtc": {}, "fcfs": {}})
    run_all(comparison, jobs=9, progress=lambda *what: told.append(what))
    for name in ("vtc", "fcfs"):
        counts = [count for who, count in told if who == name]
        assert counts[-1] == -1
        assert counts[:-1] == sorted(counts[:-1])
        assert all(
            0 <= count <= comparison.scenario.inferences for count in counts[:-1]
        )


@pytest.mark.parametrize("jobs", [1, 2])
def test_what_goes_wrong_is_told_with_its_policy(jobs: int) -> None:
    comparison = make({"vtc": {}, "sjf": {"by": "luck"}})
    with pytest.raises(EngineError, match="policy 'sjf': by must be"):
        run_all(comparison, jobs=jobs)


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_interruption_of_who_watches_leaves_no_process(jobs: int) -> None:
    def interrupt(name: str, ended: int) -> None:
        raise KeyboardInterrupt

    before = _children()
    with pytest.raises(KeyboardInterrupt):
        run_all(make(), jobs=jobs, progress=interrupt)
    assert len(_children() - before) <= 1  # multiprocessing's tracker


def test_a_policy_of_ones_own_is_registered_in_every_process(tmp_path: Path) -> None:
    assert script(tmp_path, "") == ("wrong vtc\n", "")


def test_a_process_that_ends_is_told(tmp_path: Path) -> None:
    out, err = script(tmp_path, "exit")
    assert out == (
        "policy 'wrong': its process ended before its run did (exit code 3) | -\n"
    )
    assert err == ""


def test_an_exception_is_told_with_where_it_came_from(tmp_path: Path) -> None:
    out, err = script(tmp_path, "raise")
    assert out == "policy 'wrong' failed: KeyError: 'lost' | Traceback (most recent\n"
    assert err == ""
    out, _ = script(tmp_path, "lambda")  # which cannot be pickled
    assert out.startswith("policy 'wrong' failed: Local: <function")


def test_a_script_without_a_guard_is_told_what_is_missing(tmp_path: Path) -> None:
    out, err = script(tmp_path, "", guard="")
    assert "its process ended before its run did (exit code 1)" in out
    assert "if __name__ == '__main__':" in err


def _children() -> set[str]:
    listed = Path(f"/proc/{os.getpid()}/task/{os.getpid()}/children")
    return set(listed.read_text().split())
