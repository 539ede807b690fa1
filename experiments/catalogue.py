"""The experiments by name, in the order of a report."""

from justitia.experiments import (
    cost,
    density,
    main,
    noise,
    overhead,
    predictor,
    scale,
    starvation,
)
from justitia.experiments.section import Experiment

EXPERIMENTS: dict[str, Experiment] = {
    module.EXPERIMENT.name: module.EXPERIMENT
    for module in (
        main, predictor, cost, starvation, noise, density, overhead, scale
    )
}  # fmt: skip
"""By name."""


def names() -> list[str]:
    """Return the names of all experiments."""
    return list(EXPERIMENTS)
