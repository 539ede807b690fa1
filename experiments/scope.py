"""How large an experiment is, and what it runs on."""

from dataclasses import dataclass
from functools import cached_property

from justitia.experiments.cells import Cell, cell
from justitia.experiments.store import content_of
from justitia.workloads import KINDS

PRESETS = ("llama-7b-a100-40g", "llama-13b-4xv100-16g", "qwen2.5-32b-h800-80g")
"""The paper's three testbeds; the first is the one that its main table is of."""
QUICK_SEEDS, FULL_SEEDS = 2, 5
_INFERENCES_AN_AGENT = 10


@dataclass(frozen=True)
class Scope:
    """What all experiments of one command have in common.

    Parameters
    ----------
    seed, seeds
        The first seed, and how many: seed, seed + 1, …
    quick
        Fewer seeds and sizes; never another workload.
    agents
        In each run of the mix.
    workload, arrivals
        See `justitia.engines.scenario.build`.
    data
        Agents to train predictors on and judge them by; empty for generated ones.
    """

    seed: int = 7
    seeds: int = FULL_SEEDS
    quick: bool = False
    agents: int = 300
    workload: str = "paper"
    arrivals: str | None = None
    data: str = ""

    @property
    def all_seeds(self) -> range:
        """The seeds, in order."""
        return range(self.seed, self.seed + self.seeds)

    @cached_property
    def _content(self) -> str:
        """A hash of the files that runs read."""
        named = [self.workload] if self.workload != "paper" else []
        if self.arrivals not in (None, "poisson", "burst", "workload"):
            named.append(str(self.arrivals))
        return "/".join(content_of(path) for path in named)

    @cached_property
    def files_content(self) -> str:
        """A hash of all files that are read, those to learn from among them."""
        learned = content_of(self.data) if self.data else ""
        return f"{self._content}+{learned}"

    def simulate(
        self, policy: str, seed: int, *, preset: str = PRESETS[0], **given: object
    ) -> Cell:
        """Return the cell of one policy on this workload."""
        full = {
            "agents": self.agents,
            "workload": self.workload,
            "arrivals": self.arrivals,
            "content": self._content,
        } | given
        agents = full["agents"]
        assert isinstance(agents, int)
        return cell(
            "simulate",
            size=_INFERENCES_AN_AGENT * agents,
            policy=policy,
            seed=seed,
            preset=preset,
            **full,
        )


def size_of(kind: str) -> str:
    """Return the size of a class of agents: small, medium or large.

    A class that is not among the paper's is of no size: other.
    """
    return KINDS[kind].size if kind in KINDS else "other"
