"""What `import justitia.policy` costs above a bare interpreter."""

import subprocess
import sys
from statistics import median
from time import perf_counter

from benchmarks.conftest import Figures

RUNS = 7
SECONDS = 0.025


def start(program: str) -> float:
    """Return the seconds that an interpreter takes for a program."""
    began = perf_counter()
    subprocess.run([sys.executable, "-P", "-c", program], check=True)
    return perf_counter() - began


def test_import(figures: Figures) -> None:
    """Compare in turn; the medians of seven."""
    start("import justitia.policy")  # compiled, and in the cache
    pairs = [(start("import justitia.policy"), start("pass")) for _ in range(RUNS)]
    cost = median(a for a, _ in pairs) - median(b for _, b in pairs)
    figures.notes.append(f"import justitia.policy: {cost * 1e3:.1f} ms")
    assert cost <= SECONDS
