"""`justitia` as a process: exit codes, pipes, terminals, Ctrl-C."""

import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.face.builders import PRESET, agents_file, command, process, surroundings

FEW = ("run", "--agents", "3", "--jobs", "1")
LONG = ("run", "--agents", "500", "--policy", "vtc,justitia,fcfs", "--load", "9")


@pytest.fixture(autouse=True)
def _preset(_alone: None) -> None:
    Path("small.toml").write_text(PRESET)


def test_exit_codes() -> None:
    assert process(*FEW).returncode == 0
    for arguments, code, message in (
        (("run", "--engine", "openai"), 2, "justitia: --url: must be given with engi"),
        (("run", "--policy", "no"), 2, "justitia: --policy: must be one of "),
        (
            ("run", "--json", "/dev/full", *FEW[1:]),
            1,
            "/dev/full: cannot be written: No",
        ),
    ):
        ran = process(*arguments)
        assert ran.returncode == code
        assert message in ran.stderr
        assert "Traceback" not in ran.stderr


def test_strict_pythons_have_nothing_to_say() -> None:
    ran = process(
        *("run", "--agents", "2", "--jobs", "2", "--policy", "vtc,fcfs"),
        *("--json", "a.json"),
        python=("-X", "dev", "-W", "error", "-bb"),
    )
    assert (ran.returncode, ran.stderr.count("\n")) == (0, 2), ran.stderr


def test_same_bytes_twice_whatever_the_jobs_and_the_hashes() -> None:
    texts = []
    for jobs in ("1", "2"):
        ran = process(
            *("run", "--agents", "6", "--jobs", jobs, "--json", "-"),
            environment={"PYTHONHASHSEED": jobs},
        )
        assert ran.returncode == 0, ran.stderr
        texts.append(ran.stdout)
    assert texts[0] == texts[1]
    assert len(json.loads(texts[0])["runs"]) == 7


# Pipes --------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [("--json", "-"), (), ("--help",)])
def test_a_reader_that_goes_away_is_no_error_to_speak_of(
    arguments: tuple[str, ...],
) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    ran = process(*FEW, "--policy", "vtc", *arguments, stdout=writer)
    os.close(writer)
    assert ran.stderr in ("", "vtc: done (1 of 1)\n")
    assert ran.returncode == 1


@pytest.mark.parametrize("arguments", [FEW, (*FEW, "--json", "-"), ("--version",)])
def test_a_full_disk_is_told(arguments: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        ran = process(*arguments, stdout=full)
    assert ran.returncode == 1
    assert ran.stderr.endswith(
        "justitia: standard output: cannot be written: No space left on device\n"
    )
    assert "Traceback" not in ran.stderr


def test_closed_streams() -> None:
    shell = " ".join(command(*FEW, "--policy", "vtc"))
    for redirections, code in (
        (">&-", 0),
        ("--json - >&-", 2),
        ("2>&- >/dev/null", 0),
        ("--policy no 2>&-", 2),
        ("--json /dev/stdout 2>&- | cat >/dev/null", 0),
    ):
        ran = subprocess.run(
            ["sh", "-c", f"{shell} {redirections}"],
            env=surroundings(),
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert ran.returncode == code, (redirections, ran.stderr)
        assert "Traceback" not in ran.stderr


def test_an_encoding_that_lacks_a_letter() -> None:
    agents_file("tést.jsonl")
    ran = process(
        *FEW, "--workload", "tést.jsonl", environment={"PYTHONIOENCODING": "ascii"}
    )
    assert ran.returncode == 0, ran.stderr
    assert "(t\\xe9st.jsonl)" in ran.stdout


# Terminals ----------------------------------------------------------------------------


@pytest.mark.parametrize(("columns", "jobs"), [(80, "1"), (100, "2")])
def test_on_a_terminal_bars_come_and_go_and_tables_fit(columns: int, jobs: str) -> None:
    agents = agents_file(n=100, decode=300, arrivals=tuple(range(100)))
    code, page = _on_a_terminal(
        *("run", "--jobs", jobs, "--workload", agents), columns=columns
    )
    assert code == 0
    assert "━" in page
    assert "done (1 of" not in page
    screen = _screen(page)
    assert not any("━" in line for line in screen)
    assert screen[0].startswith("justitia ")
    for heading in ("gain    paper", "allowed  ratio", "cancelled  refused"):
        assert any(line.endswith(heading) for line in screen)
    tables = [line for line in screen if line and line not in screen[:3]]
    assert max(map(len, tables)) <= 80
    assert "…" not in page


def test_standard_error_on_a_terminal_and_results_in_a_pipe() -> None:
    code, page = _on_a_terminal(*FEW, "--policy", "vtc", redirect="out.txt")
    assert code == 0
    assert _screen(page) == []
    assert "\x1b" not in Path("out.txt").read_text()


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"NO_COLOR": "1"}])
def test_terminals_that_want_less(environment: dict[str, str]) -> None:
    code, page = _on_a_terminal(*FEW, "--policy", "vtc", environment=environment)
    assert code == 0
    assert "\x1b[3" not in page
    if "TERM" in environment:
        assert page.startswith("vtc: done (1 of 1)\r\n")
        assert "\x1b" not in page


def test_colours_that_are_forced_draw_no_bars_in_a_pipe() -> None:
    ran = process(*FEW, "--policy", "vtc", environment={"FORCE_COLOR": "1"})
    assert "━" not in ran.stderr
    assert "vtc: done (1 of 1)" in ran.stderr


# Ctrl-C -------------------------------------------------------------------------------


@pytest.mark.parametrize("jobs", ["1", "3"])
@pytest.mark.parametrize("running", [False, True])
def test_ctrl_c_ends_all_of_it_at_once(jobs: str, running: bool) -> None:
    leader, follower = _terminal(80)
    child = subprocess.Popen(
        command(*LONG, "--jobs", jobs, "--json", "a.json"),
        env=surroundings(),
        stdin=follower,
        stdout=follower,
        stderr=follower,
        preexec_fn=_own_terminal,  # noqa: PLW1509
    )
    os.close(follower)
    page = b""
    if running:
        while "━".encode() not in page:
            page += _read(leader)
    else:
        while b"pydantic_core" not in Path(f"/proc/{child.pid}/maps").read_bytes():
            time.sleep(0.01)  # it has begun to import what it runs
    workers = _workers(child.pid, at_least=int(jobs) if running and jobs != "1" else 0)
    began = time.monotonic()
    os.write(leader, b"\x03")
    while more := _read(leader):
        page += more
    assert child.wait(timeout=20) == 130
    assert time.monotonic() - began < 10
    assert page.endswith(b"justitia: interrupted\r\n")
    assert b"Traceback" not in page
    assert sorted(os.listdir()) == ["small.toml"]
    assert not any(map(_alive, workers))


def test_a_worker_that_is_killed_is_told() -> None:
    child = subprocess.Popen(
        command(*LONG, "--jobs", "2", "--json", "a.json"),
        env=surroundings(),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    workers = _workers(child.pid, at_least=2)
    os.kill(workers[0], signal.SIGKILL)
    out, err = child.communicate(timeout=20)
    assert (child.returncode, out) == (1, "")
    assert "its process ended before its run did (SIGKILL; was memory short?)" in err
    assert "Traceback" not in err
    assert sorted(os.listdir()) == ["small.toml"]


def test_workers_do_not_outlive_who_asked_them() -> None:
    with Path("err.txt").open("w") as file:
        child = subprocess.Popen(
            command(*LONG, "--jobs", "2"), env=surroundings(), stdout=file, stderr=file
        )
    workers = _workers(child.pid, at_least=2)
    child.kill()
    child.wait()
    ends = time.monotonic() + 20
    while any(map(_alive, workers)) and time.monotonic() < ends:
        time.sleep(0.02)
    assert not any(map(_alive, workers))


def _terminal(columns: int) -> tuple[int, int]:
    leader, follower = pty.openpty()
    size = struct.pack("HHHH", 40, columns, 0, 0)
    fcntl.ioctl(follower, termios.TIOCSWINSZ, size)
    return leader, follower


def _own_terminal() -> None:
    """Make standard input the terminal that Ctrl-C comes from.

    A suite that was started in the background has SIGINT ignored, and so would this.
    """
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _read(leader: int) -> bytes:
    """Return what has been written, empty at the end."""
    if not select.select([leader], [], [], 30)[0]:
        raise TimeoutError
    with suppress(OSError):  # what Linux says when the last writer has gone
        return os.read(leader, 65536)
    return b""


def _on_a_terminal(
    *arguments: str,
    columns: int = 80,
    environment: dict[str, str] | None = None,
    redirect: str = os.devnull,
) -> tuple[int, str]:
    leader, follower = _terminal(columns)
    with Path(redirect).open("w") as file:
        child = subprocess.Popen(
            command(*arguments),
            env=surroundings({"TERM": "xterm"} | (environment or {})),
            stdin=follower,
            stdout=follower if redirect == os.devnull else file,
            stderr=follower,
        )
    os.close(follower)
    page = b""
    while more := _read(leader):
        page += more
    os.close(leader)
    return child.wait(timeout=30), page.decode()


def _screen(page: str) -> list[str]:
    """Return what is on the screen in the end, of a page that only goes up to erase."""
    lines = [""]
    first, *others = re.split(r"\x1b\[(\??[0-9;]*[A-Za-z])", page)
    for code, text in zip(["", *others[::2]], [first, *others[1::2]], strict=True):
        if code.endswith("A"):
            del lines[len(lines) - int(code[:-1] or 1) :]
            lines = lines or [""]
        elif code == "2K":
            lines[-1] = ""
        for n, part in enumerate(text.replace("\r\n", "\n").split("\n")):
            if n:
                lines.append("")
            lines[-1] = (lines[-1] + part).rpartition("\r")[2]
    while lines and not lines[-1]:
        lines.pop()
    return lines


def _workers(pid: int, *, at_least: int) -> list[int]:
    """Wait for processes that run policies; that is not multiprocessing's tracker."""
    found: list[int] = []
    while len(found) < at_least:
        time.sleep(0.02)
        listed = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        lines = {int(one): Path(f"/proc/{one}/cmdline").read_bytes() for one in listed}
        found = [one for one, line in lines.items() if b"spawn_main" in line]
    return found


def _alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False
