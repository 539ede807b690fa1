"""What an agent will cost, before it runs.

This module loads nothing beside the standard library. What learns
(`justitia.predictors.training`) and what it makes (`justitia.predictors.learned`) are
loaded when they are asked for, and need the extra ``predictors``.
"""

from justitia.predictors.base import Estimate, Prediction, Predictor
from justitia.predictors.errors import ModelError, PredictorError, TrainingError
from justitia.predictors.longest import Longest
from justitia.predictors.mean import Mean
from justitia.predictors.noisy import Noisy
from justitia.predictors.oracle import Oracle
from justitia.predictors.registry import create

__all__ = [
    "Estimate",
    "Longest",
    "Mean",
    "ModelError",
    "Noisy",
    "Oracle",
    "Prediction",
    "Predictor",
    "PredictorError",
    "TrainingError",
    "create",
]
