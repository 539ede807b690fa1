"""What README.md and docs/ show is what happens.

A block fenced as ``python`` is complete: it is run, and must print what the block
``text`` says that comes next, if one does. A fragment is fenced as ``py``. Every
command of ``justitia`` in a block of a shell must be understood; in a block of no
language, and between backquotes, every ``justitia run``. A block ``toml`` that is a
settings file or a preset must be one to us.
"""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, takewhile
from pathlib import Path

import pytest

from justitia.cli import app
from justitia.config import KEYS, PREFIX, load
from justitia.engines.serving import ServingSettings
from justitia.engines.sim import load_preset
from justitia.gateway.loading import KEYS as GATEWAY_KEYS
from justitia.gateway.loading import load as load_gateway
from justitia.serving import ServeSettings
from tests.face.builders import PRESET

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
SHELLS = {"bash", "sh", "shell", "console"}
FENCE = re.compile(
    r"^(?P<indent> *)(?P<fence>```+|~~~+)(?P<language>\w*)[^\n`]*\n"
    r"(?P<text>.*?)^(?P=indent)(?P=fence)[ \t]*$",
    re.MULTILINE | re.DOTALL,
)
SEPARATORS = {"|", "||", "&&", ";", "&"}
SKETCH = re.compile(r"[…\[\]<>]|\.\.\.")
"""Of a command that shows its form only."""
CODE = re.compile(r"(?<!`)`(justitia run[^`]*)`(?!`)")


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


def commands() -> list[tuple[str, list[str]]]:
    """Return what is given to justitia in every command line, with its place."""
    found = []
    for block in blocks():
        if block.language in {"", *SHELLS}:
            for line in block.text.replace("\\\n", " ").splitlines():
                found += [
                    (str(block), given)
                    for given in given_in(line)
                    if block.language or given[:1] == ["run"]
                ]
    for page in PAGES:
        text = FENCE.sub("", page.read_text("utf-8"))
        for match in CODE.finditer(text):
            place = str(page.relative_to(ROOT))
            found += [(place, words) for words in given_in(match[1])]
    return found


def given_in(line: str) -> Iterator[list[str]]:
    """Yield what justitia is given, each time that a line of a shell calls it."""
    try:
        words = shlex.split(line.strip().removeprefix("$ "), comments=True)
    except ValueError:  # a quotation that is not closed: no command
        return
    for is_separator, command in groupby(words, lambda word: word in SEPARATORS):
        call = [word for word in command if not re.match(r"\w+=", word)]
        if call[:2] == ["python", "-m"]:
            del call[:2]
        if not is_separator and call and Path(call[0]).name == "justitia":
            given = list(
                takewhile(lambda word: not re.match(r"\d?[<>]", word), call[1:])
            )
            if not any(map(SKETCH.search, given)):
                yield given


def of(language: str) -> list[Block]:
    return [block for block in blocks() if block.language == language]


@pytest.mark.parametrize("block", of("python"), ids=str)
def test_python_runs_and_prints_what_is_shown(block: Block, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").write_text(PRESET)  # as the pages call a preset
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


@pytest.mark.parametrize(("place", "given"), commands())
def test_commands_are_understood(place: str, given: list[str]) -> None:
    app.parse_args(given, exit_on_error=False, print_error=False)


@pytest.mark.parametrize("block", of("toml"), ids=str)
def test_toml_is_what_we_read(
    block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    content = tomllib.loads(block.text)
    Path("block.toml").write_text(block.text, encoding="utf-8")
    if "capacity_tokens" in content:
        load_preset("block.toml")
    elif "gateway" in content:
        keys = dict.fromkeys(re.findall(r'keys?_env = "(\w+)"', block.text))
        held = {name: f"key-{number}" for number, name in enumerate(keys)}
        load_gateway({}, file="block.toml", environment=held)
    elif content.keys() & {*KEYS, "policies"}:
        for key in ("workload", "arrivals"):  # that such a file is there is enough
            if str(content.get(key)).endswith((".jsonl", ".csv", ".gz")):
                Path(content[key]).touch()
        load({}, file="block.toml", environment={})


def test_variables_that_are_named_are_read() -> None:
    known = {f"{PREFIX}{key.upper()}" for key in (*KEYS, "config")}
    known |= {f"{PREFIX}CI_VENV", f"{PREFIX}API_KEY"}
    fields = (*ServingSettings.model_fields, *ServeSettings.__dataclass_fields__)
    known |= {f"{PREFIX}{field.upper()}" for field in (*fields, *GATEWAY_KEYS)}
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
    for line, given in (
        ("JUSTITIA_SEED=3 justitia run --json - | head -1", [["run", "--json", "-"]]),
        ("python -m justitia run --plot 'a b'  # x", [["run", "--plot", "a b"]]),
        (".venv/bin/justitia run > out.txt 2>&1", [["run"]]),
        ("$ cd x && justitia && justitia run", [[], ["run"]]),
        ("pip install justitia", []),
        ("justitia run [--agents N]", []),
    ):
        assert list(given_in(line)) == given
