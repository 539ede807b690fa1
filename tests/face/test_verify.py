"""`justitia verify`: what it takes, prints, writes and returns."""

import builtins
import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from justitia import __version__, cli, flags
from justitia.cli import main
from justitia.proofs import verify as suite
from justitia.proofs.properties import ALL
from justitia.proofs.verify import Profile
from tests.face.builders import process, surroundings
from tests.face.conftest import Justitia

MINE = """\
from justitia.policy import SelectivePampering

class Good(SelectivePampering):
    pass

class Bad(SelectivePampering):
    '''Takes an agent twice.'''
    def arrive(self, agent):
        if agent.id not in self._accounts:
            super().arrive(agent)

class Needy(SelectivePampering):
    def __init__(self, size):
        super().__init__()

class Empty:
    def arrive(self, agent): ...

class Outer:
    Inner = Good

def make():
    return Good()

number = 3
"""


@pytest.fixture(autouse=True)
def _mine(_alone: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Have schedulers in the current folder, and few examples."""
    Path("mine.py").write_text(MINE)
    few = [one for one in ALL if one.name in {"total", "bad-input", "tags-stay"}]
    monkeypatch.setattr(suite, "ALL", few)
    monkeypatch.setitem(suite.PROFILES, "quick", Profile(20, 200))


# Help ---------------------------------------------------------------------------------


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--help"]) == 0
    page = capsys.readouterr().out
    for word in (*suite.PROFILES, "MODULE", "--seed", "--json", "./mine.py:MyPolicy"):
        assert word in page
    assert "justitia.policy:SelectivePampering" in page
    assert max(map(len, page.splitlines())) <= 80
    assert main([]) == 0
    assert "verify " in capsys.readouterr().out


def test_help_needs_nothing_of_what_verifies() -> None:
    Path("look.py").write_text(
        "import sys\nfrom justitia.cli import main\nmain(['verify', '--help'])\n"
        "print([name for name in ('hypothesis', 'rich.progress', 'justitia.policy')"
        " if name in sys.modules], file=sys.stderr)\n"
    )
    ran = subprocess.run(
        [sys.executable, "look.py"],
        env=surroundings(),
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.stderr == "[]\n"


# What cannot be used ------------------------------------------------------------------

BAD = [
    ("mine", "'mine': give MODULE:CLASS, such as justitia.policy:SelectivePampering"),
    (":Good", "':Good': give MODULE:CLASS, such as "),
    ("mine:", "'mine:': give MODULE:CLASS, such as "),
    ("no:Good", "no: cannot be imported: ModuleNotFoundError: No module named 'no'"),
    ("no.py:Good", "no.py: cannot be imported: FileNotFoundError: there is no file"),
    (".:Good", ".: cannot be imported: "),
    ("..mine:Good", "..mine: cannot be imported: TypeError: "),
    ("mine:Gone", "mine: has no Gone"),
    ("mine:Outer.Gone", "mine: has no Outer.Gone"),
    ("mine:number", "mine:number: is no class or function but 3, which cannot be"),
    ("mine:Needy", "mine:Needy: cannot be made without arguments: TypeError: "),
    ("mine:Empty", "mine:Empty: has no submit, start, serve, requeue, finish, leave, "),
    ("mine:Good --profile slow", "--profile: must be one of quick, ci, long, not 'sl"),
    ("mine:Good --property no", "--property: no property 'no'; there are: total, bad-"),
    ("mine:Good --seed x", "--seed: must be a valid integer, not 'x'"),
    (f"mine:Good --seed {'9' * 5000}", "--seed: "),
    (f"mine:Good --seed {2**63}", "--seed: must be at most 9223372036854775807, not "),
    ("mine:Good --json no/a", "no/a: cannot be written: No such file or directory"),
    ("mine:Good --json --seed", 'Invalid value "--seed" for --json. It must be a fil'),
    ("mine:Good mine:Bad", "Unused Tokens: ['mine:Bad']."),
    ("mine:Good --seeds 3", "Unknown option: --seeds. Did you mean --seed?"),
]  # fmt: skip


@pytest.mark.parametrize(("given", "message"), BAD)
def test_what_cannot_be_used_is_told_before_anything_runs(
    given: str, message: str, justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(suite, "verify", lambda *_, **__: pytest.fail("it ran"))
    ran = justitia("verify", *given.split(" "))
    assert (ran.code, ran.out) == (flags.USAGE, "")
    assert ran.err.startswith(f"justitia: {message}")
    assert ran.err.count("\n") == 1
    assert len(ran.err) < 600
    if "Unknown" in message:
        assert ran.err.endswith("See: justitia verify --help\n")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("import nothing_of_this_name", "ModuleNotFoundError: No module named 'nothi"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
        ("def f(:", "SyntaxError: "),
        ("raise SystemExit(0)", "SystemExit: 0"),
    ],
)
@pytest.mark.parametrize("module", ["broken_one", "broken_one.py"])
def test_a_module_that_cannot_be_imported_is_told(
    text: str, message: str, module: str, justitia: Justitia
) -> None:
    Path("broken_one.py").write_text(text)
    ran = justitia("verify", f"{module}:X")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"justitia: {module}: cannot be imported: {message}")


def test_hypothesis_that_is_not_installed_is_told(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: object, **named: object) -> ModuleType:
        if name == "justitia.proofs" or name.startswith("hypothesis"):
            raise ModuleNotFoundError("No module named 'hypothesis'", name="hypothesis")
        return real(name, *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    ran = justitia("verify")
    monkeypatch.undo()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == (
        "justitia: justitia verify needs hypothesis, which is not installed; "
        "install it with: pip install 'justitia[proofs]'\n"
    )


# What is found ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "target",
    ["mine:Good", "mine:make", "mine:Outer.Inner", "mine.py:Good", "./mine.py:make"],
)
def test_what_holds(target: str, justitia: Justitia) -> None:
    ran = justitia("verify", target, "--seed", "3")
    assert ran.code == 0, ran.out + ran.err
    lines = ran.out.splitlines()
    assert lines[0] == (
        f"justitia {__version__} verifies {target}, profile quick, seed 3"
    )
    assert [line.split()[:2] for line in lines[2:-2]] == [
        ["property", "verdict"],
        ["total", "held"],
        ["bad-input", "held"],
        ["tags-stay", "held"],
    ]
    assert lines[-1] == "3 properties: 3 held."
    assert ran.err == "verify: done (1 of 1)\n"
    assert "\x1b" not in ran.out + ran.err
    assert sorted(set(os.listdir()) - {"__pycache__"}) == ["mine.py", "small.toml"]


def test_ours_is_what_is_verified_unless_told(justitia: Justitia) -> None:
    ran = justitia("verify")
    assert ran.code == 0
    assert "verifies justitia.policy:SelectivePampering, " in ran.out


def test_what_is_broken(justitia: Justitia) -> None:
    ran = justitia("verify", "mine:Bad")
    assert ran.code == 1
    lines = ran.out.splitlines()
    start = next(n for n, line in enumerate(lines) if line.startswith("bad-input is"))
    assert lines[start] == (
        "bad-input is broken: A wrong state, a duplicate, an unknown agent are refused "
        "and change nothing."
    )
    assert lines[start + 1 : -2] == [
        "arrive of an agent that is there already was not refused with a PolicyError",
        "    policy = Bad()",
        "    policy.arrive(Agent('d', 1))",
        "    policy.submit(Inference('d/0', 'd', 0, 1))",
        "    policy.arrive(Agent('d', 7))",
    ]
    assert lines[-1] == "3 properties: 2 held, 1 broken."


def test_json(justitia: Justitia) -> None:
    ran = justitia("verify", "mine:Bad", "--json", "-")
    assert ran.code == 1
    content = json.loads(ran.out)
    assert content["schema"] == 1
    assert content["version"] == __version__
    assert (content["policy"], content["seed"]) == ("mine:Bad", 7)
    assert [one["status"] for one in content["properties"]] == [
        "held",
        "broken",
        "held",
    ]
    table = justitia("verify", "mine:Bad", "--json", "a.json")
    assert Path("a.json").read_text() == ran.out
    assert "bad-input is broken" in table.out


def test_a_long_history_is_cut_in_the_middle(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("justitia.verdicts.SHOWN", 2)
    ran = justitia("verify", "mine:Bad")
    assert ran.out.splitlines()[-5:-2] == [
        "    policy = Bad()",
        "    … 2 lines left out (--json FILE has all)",
        "    policy.arrive(Agent('d', 7))",
    ]


PRINTING = """\
import asyncio
import sys
from justitia.policy import SelectivePampering

print("imported")

class Prints(SelectivePampering):
    def __init__(self):
        print("made")
        super().__init__()

class Closes(Prints):
    def leave(self, agent_id):
        sys.stdout.close()
        return super().leave(agent_id)

class Cancels(SelectivePampering):
    def peek(self):
        raise asyncio.CancelledError

class Leaves(SelectivePampering):
    def __init__(self):
        raise GeneratorExit("enough")
"""


@pytest.mark.parametrize("name", ["Prints", "Closes"])
def test_what_a_scheduler_prints_is_not_in_the_report(
    name: str, justitia: Justitia
) -> None:
    Path("theirs.py").write_text(PRINTING)
    ran = justitia("verify", f"theirs.py:{name}", "--property", "total", "--json", "-")
    assert ran.code == 0
    assert json.loads(ran.out)["held"]
    assert ran.err.startswith("imported\nmade\n")


def test_what_is_no_exception_is_told_too(justitia: Justitia) -> None:
    Path("theirs.py").write_text(PRINTING)
    ran = justitia("verify", "theirs.py:Cancels", "--property", "total")
    assert ran.code == 1
    assert "\npeek raised CancelledError (theirs.py:19)\n" in ran.out
    assert ran.out.endswith("\n1 property: 1 broken.\n")
    ran = justitia("verify", "theirs.py:Leaves")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.endswith(
        "justitia: theirs.py:Leaves: cannot be made without arguments: "
        "GeneratorExit: enough (theirs.py:23)\n"
    )


def test_a_line_of_a_module_that_cannot_be_imported_is_told(justitia: Justitia) -> None:
    Path("broken_one.py").write_text("\n\n1 / 0\n")
    ran = justitia("verify", "broken_one.py:X")
    assert ran.err.endswith("division by zero (broken_one.py:3)\n")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
def test_a_report_that_cannot_be_saved_is_shown() -> None:
    ran = process(
        *("verify", "mine:Bad", "--property", "bad-input", "--json", "/dev/full")
    )
    assert ran.returncode == 1
    assert "bad-input is broken" in ran.stdout
    assert "justitia: /dev/full: cannot be written: No space left" in ran.stderr


def test_a_report_that_cannot_be_shown_is_saved(
    justitia: Justitia, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken_pipe(_: object) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr("justitia.verifying.show", broken_pipe)
    monkeypatch.setattr(cli, "_forget_output", lambda: None)
    ran = justitia("verify", "mine:Bad", "--json", "a.json")
    assert ran.code == 1
    assert json.loads(Path("a.json").read_text())["held"] is False


def test_ctrl_c(justitia: Justitia, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(suite, "_verify", interrupt)
    ran = justitia("verify", "mine:Good", "--json", "a.json")
    assert (ran.code, ran.out) == (130, "")
    assert ran.err == "justitia: interrupted\n"
    assert not Path("a.json").exists()


# As a process -------------------------------------------------------------------------

PROCESS = """\
from justitia.policy import create

def make():
    return create("fcfs")
"""


def test_as_a_process_twice() -> None:
    Path("theirs.py").write_text(PROCESS)
    pages = []
    for hashes in ("1", "2"):
        ran = process(
            *("verify", "theirs:make", "--json", "-"),
            *("--property", "total", "--property", "fair-order"),
            environment={"PYTHONHASHSEED": hashes},
            python=("-X", "dev", "-W", "error", "-bb"),
        )
        assert ran.returncode == 1
        assert ran.stderr == "verify: done (1 of 1)\n"
        pages.append(ran.stdout)
    assert pages[0] == pages[1]
    assert not Path(".hypothesis").exists()


@pytest.mark.parametrize("colour", [{"NO_COLOR": "1"}, {"FORCE_COLOR": "1"}])
def test_colours(colour: dict[str, str], justitia: Justitia) -> None:
    ran = justitia("verify", "mine:Bad", environment=colour)
    assert ("\x1b[" in ran.out) == ("FORCE_COLOR" in colour)
    assert "━" not in ran.err
