"""Experiments that run in seconds."""

from typing import Any

from justitia.experiments import Scope
from justitia.experiments.cells import Cell, cell


def scope(**given: object) -> Scope:
    """Return a scope of few agents."""
    return Scope(**({"seeds": 1, "quick": True, "agents": 12} | given))  # type: ignore[arg-type]


def simulated(policy: str = "vtc", seed: int = 7, **given: object) -> Cell:
    """Return a cell that runs in a tenth of a second."""
    full: dict[str, Any] = {"preset": "llama-7b-a100-40g", "agents": 8, "density": 2}
    return cell("simulate", policy=policy, seed=seed, **(full | given))
