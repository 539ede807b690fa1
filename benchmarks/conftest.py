"""Collects what the benchmarks measure and prints it as one table of ratios."""

from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest


@dataclass
class Figures:
    """Microseconds of an event, by name and by how many agents there are."""

    micros: dict[str, dict[int, float]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, name: str, size: int, seconds: float) -> None:
        """Keep one figure."""
        self.micros.setdefault(name, {})[size] = seconds * 1e6

    def lines(self) -> Iterator[str]:
        """Yield the table, each figure also as a multiple of the heap's of its size."""
        heap = self.micros.get("heap push + pop", {})
        sizes = sorted(heap)
        if sizes:
            heads = "".join(f"{size:>20,}" for size in sizes)
            yield f"{'us an event (x the heap)':<32}{heads}{'growth':>9}"
        for name, by_size in self.micros.items():
            if not by_size.keys() <= heap.keys():
                continue
            cells = "".join(
                f"{by_size[size]:>11.2f} ({by_size[size] / heap[size]:>5.2f})"
                if size in by_size
                else f"{'':>20}"
                for size in sizes
            )
            first, last = min(by_size), max(by_size)
            yield f"{name:<32}{cells}{by_size[last] / by_size[first]:>9.2f}"
        yield from self.notes


_FIGURES = pytest.StashKey[Figures]()


def pytest_configure(config: pytest.Config) -> None:
    """Make the place where figures are kept."""
    config.stash[_FIGURES] = Figures()


@pytest.fixture(scope="session")
def figures(pytestconfig: pytest.Config) -> Figures:
    """Return the figures of this run."""
    return pytestconfig.stash[_FIGURES]


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Print the table."""
    terminalreporter.section("ratios")
    for line in config.stash[_FIGURES].lines():
        terminalreporter.line(line)
