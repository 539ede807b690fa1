"""What proofs/README.md names exists, and nothing in proofs/coq is left open.

In a table of the README the backticked names in a column "Coq" are theorems or
definitions of ``proofs/coq`` (``File.name`` or the name alone), or files there; those
in a column "Test" or "Tests" are files or folders of tests, or ``file.py::test``.
Wherever it stands, a name that ends in ``_holds`` is a theorem, any other name with an
underscore is declared in ``proofs/coq`` or occurs in our Python, and a file exists.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PROOFS = ROOT / "proofs"
COQ = PROOFS / "coq"
README = (PROOFS / "README.md").read_text(encoding="utf-8")
SOURCES = sorted(COQ.rglob("*.v"))
DECLARED = re.compile(
    r"^\s*(?:Theorem|Lemma|Corollary|Example|Definition|Fixpoint|Record|Inductive)"
    r"\s+([A-Za-z_][\w']*)",
    re.MULTILINE,
)
# A proof with the tactic "admit" has to end in "Admitted".
OPEN = re.compile(r"\b(Admitted|Axioms?|Parameters?|Conjectures?)\b")


def columns(text: str) -> Iterator[tuple[str, str]]:
    """Yield the header and the text of every cell of every table."""
    heads: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            heads = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if not heads:
            heads = [cell.lower() for cell in cells]
        elif not all(set(cell) <= set("-: ") for cell in cells):
            yield from zip(heads, cells, strict=False)


def backticked(text: str) -> list[str]:
    return re.findall(r"`([^`\s]+)`", text)


def cited(*heads: str) -> list[str]:
    return [
        name
        for head, cell in columns(README)
        if head in heads
        for name in backticked(cell)
    ]


def code(file: Path) -> str:
    """Return a Coq file without its comments, which nest."""
    text, depth, kept = file.read_text(encoding="utf-8"), 0, []
    for part in re.split(r"(\(\*|\*\))", text):
        if part == "(*":
            depth += 1
        elif part == "*)" and depth:
            depth -= 1
        elif not depth:
            kept.append(part)
    return "".join(kept)


CODE = {file: code(file) for file in SOURCES}
NAMES = {(file.stem, name) for file in SOURCES for name in DECLARED.findall(CODE[file])}
HOLDS = re.findall(r"`(?:\w+\.)*(\w+_holds)`", README)


WORDS = {
    word
    for folder in ("policy", "proofs", "tests", "engines", "src")
    for file in (ROOT / folder).rglob("*.py")
    if file != Path(__file__)
    for word in re.findall(r"\w+", file.read_text(encoding="utf-8"))
}
FILE = re.compile(r"[\w/.-]+(?:\.(?:py|v|md|sh)|/)")
NAME = re.compile(r"[a-z]\w*_\w+")


def test_the_readme_names_theorems_and_tests() -> None:
    assert HOLDS
    assert cited("coq")
    assert cited("test", "tests")


@pytest.mark.parametrize("name", sorted({*cited("coq"), *HOLDS}))
def test_every_coq_name_of_the_readme_exists(name: str) -> None:
    if name.endswith((".v", "/")):
        assert (COQ / name).exists() or (PROOFS / name).exists()
        return
    *path, last = name.split(".")
    files = {file for file, declared in NAMES if declared == last}
    assert files, f"nothing in proofs/coq is called {last}"
    assert not path or path[0] in files, f"{last} is in {sorted(files)}"


@pytest.mark.parametrize("name", sorted(set(cited("test", "tests"))))
def test_every_test_of_the_readme_exists(name: str) -> None:
    path, _, test = name.partition("::")
    file = ROOT / path
    assert file.exists(), path
    if test:
        *_, function = test.partition("[")[0].split("::")
        assert re.search(rf"(?:def|class) {function}\b", file.read_text("utf-8"))


@pytest.mark.parametrize("name", sorted(set(backticked(README))))
def test_every_file_and_name_of_the_readme_exists(name: str) -> None:
    if FILE.fullmatch(name):
        assert any((folder / name).exists() for folder in (ROOT, PROOFS, COQ)), name
    elif NAME.fullmatch(name):
        assert name in WORDS or any(name == declared for _, declared in NAMES), name


def test_every_theorem_that_holds_is_checked_for_assumptions() -> None:
    holds = {name for file, name in NAMES if name.endswith("_holds")}
    printed = re.findall(
        r"Print Assumptions (?:\w+\.)*(\w+)\.", code(COQ / "Assumptions.v")
    )
    assert holds
    assert holds <= set(printed)


@pytest.mark.parametrize("file", SOURCES, ids=lambda file: str(file.relative_to(COQ)))
def test_nothing_is_left_open(file: Path) -> None:
    assert not OPEN.search(CODE[file])
