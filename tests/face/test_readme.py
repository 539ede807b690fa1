"""What README.md and docs/ show is what happens.

A block fenced as ``python`` is complete: it is run, and must print what the block
``text`` says that comes next, if one does. A fragment is fenced as ``py``. Every command
line of ``justitia`` must be understood, and a block ``toml`` must be a settings file, a
preset, or a part of pyproject.toml.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from justitia.cli import app
from justitia.config import KEYS, PREFIX, load
from justitia.engines.sim import load_preset

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
SHELLS = {"bash", "sh", "shell", "console"}
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+|~~~+)(?P<language>\w*)[^\n`]*\n"
    r"(?P<text>.*?)^(?P=indent)(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
CODE = re.compile(r"(?<!`)`(justitia [^`]+)`(?!`)")


@dataclass(frozen=True)
class Block:
    page: Path
    line: int
    language: str
    text: str
    printed: str | None = None

    def __str__(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


def blocks() -> Iterator[Block]:
    for page in PAGES:
        content = page.read_text("utf-8")
        found = list(FENCE.finditer(content))
        for match, after in zip(found, [*found[1:], None], strict=True):
            printed = None
            if after is not None and after["language"] == "text":
                printed = after["text"]
            line = content.count("\n", 0, match.start()) + 1
            yield Block(page, line, match["language"], match["text"], printed)


def commands() -> Iterator[tuple[str, str]]:
    """Yield every command line of justitia, with its place."""
    for block in blocks():
        if block.language in SHELLS:
            for command in block.text.replace("\\\n", " ").splitlines():
                command = command.strip().removeprefix("$ ")
                if re.search(r"(^|\s)(python -m )?justitia\s", command + " "):
                    yield str(block), command
    for page in PAGES:
        text = FENCE.sub("", page.read_text("utf-8"))
        for match in CODE.finditer(text):
            yield str(page.relative_to(ROOT)), " ".join(match[1].split())


def words(command: str) -> list[str] | None:
    """Return what justitia is given, None where it is named for something else."""
    given = shlex.split(command, comments=True)
    starts = [k for k, word in enumerate(given) if word == "justitia"]
    if not starts:
        return None
    before, after = given[: starts[0]], given[starts[0] + 1 :]
    calls = [word for word in before if "=" not in word]
    if calls not in ([], ["python", "-m"], ["env"], ["time"]):
        return None
    ends = [k for k, word in enumerate(after) if re.match(r"[|;&<]|\d?>", word)]
    return after[: ends[0]] if ends else after


def of(language: str) -> list[Block]:
    return [block for block in blocks() if block.language == language]


@pytest.mark.parametrize("block", of("python"), ids=str)
def test_python_runs_and_prints_what_is_shown(block: Block, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-"],
        input=block.text,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stderr
    if block.printed is not None:
        assert ran.stdout == block.printed


@pytest.mark.parametrize("block", of("py"), ids=str)
def test_fragments_of_python_are_python(block: Block) -> None:
    compile(block.text, str(block), "exec")


@pytest.mark.parametrize(("place", "command"), commands())
def test_commands_are_understood(place: str, command: str) -> None:
    given = words(command)
    if given is None or any(re.search(r"[…\[\]<>]|\.\.\.", word) for word in given):
        pytest.skip("not a command, or a sketch of one")
    app.parse_args(given, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("block", of("toml"), ids=str)
def test_toml_is_what_we_read(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = tomllib.loads(block.text)
    file = tmp_path / "block.toml"
    file.write_text(block.text, encoding="utf-8")
    if "capacity_tokens" in content:
        load_preset(file)
    elif content.keys() & {*KEYS, "policies"}:
        load({}, file=str(file), environment={})


def test_variables_that_are_named_are_read() -> None:
    known = {f"{PREFIX}{key.upper()}" for key in (*KEYS, "config")}
    known |= {f"{PREFIX}CI_VENV"}
    for page in PAGES:
        named = set(re.findall(rf"\b{PREFIX}[A-Z_]+\b", page.read_text("utf-8")))
        assert named <= known, page.name


# The reading of pages -----------------------------------------------------------------


def test_how_pages_are_read() -> None:
    page = "a\n```python x\n1\n```\nb\n```text\n2\n```\n```sh\n```\n"
    assert [(m["language"], m["text"]) for m in FENCE.finditer(page)] == [
        ("python", "1\n"),
        ("text", "2\n"),
        ("sh", ""),
    ]
    assert words("JUSTITIA_SEED=3 justitia run --json - | head -1") == [
        "run", "--json", "-",
    ]  # fmt: skip
    assert words("python -m justitia run --plot 'a b.png'  # draws") == [
        "run", "--plot", "a b.png",
    ]  # fmt: skip
    assert words("justitia run > out.txt 2>&1") == ["run"]
    assert words("pip install justitia") is None
