"""From errors that were seen to what is added to a prediction.

Both functions take residuals on the scale of logarithms, real minus predicted, of
samples that the model was not trained on.
"""

from math import ceil

import numpy as np

from justitia.predictors.features import Floats

COVERAGE = 0.9
"""The share of agents that cost at most what `high` says."""


def margin(residuals: Floats, coverage: float = COVERAGE) -> float:
    """Return what is to be added so that this share of new samples is not above it.

    Split conformal prediction: of n residuals the ceil((n + 1) · coverage)-th smallest.
    For samples that are exchangeable with these it covers at least `coverage` of them,
    and less than 1/(n + 1) more, whatever the model is and however errors are
    distributed. Fewer samples than that takes get the largest residual, which covers
    n/(n + 1).

    Source: Vovk, Gammerman and Shafer, Algorithmic Learning in a Random World, 2005;
    Lei et al., Distribution-Free Predictive Inference for Regression, 2018.

    >>> margin(np.arange(1.0, 20.0))
    18.0
    """
    ordered = np.sort(residuals)
    place = min(ceil((len(ordered) + 1) * coverage - 1e-9), len(ordered))
    return float(ordered[place - 1])


def shift(residuals: Floats) -> float:
    """Return what is to be added so that the mean relative error is least.

    That is the mean of abs(1 - exp(s - r)) over residuals r: least where s is their
    median, each weighing exp(-r). An agent that costs half of what was predicted is
    wrong by 1, one that costs double by 1/2; so this is below the plain median.

    >>> round(shift(np.log([0.5, 1.0, 4.0])), 3)
    -0.693
    """
    ordered = np.sort(residuals)
    weight = np.cumsum(np.exp(-(ordered - ordered[0])))
    return float(ordered[np.searchsorted(weight, weight[-1] / 2)])
