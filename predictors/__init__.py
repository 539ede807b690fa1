"""What an agent will cost, before it runs."""

from justitia.predictors.base import Prediction, Predictor
from justitia.predictors.noisy import Noisy
from justitia.predictors.oracle import Oracle
from justitia.predictors.registry import create

__all__ = ["Noisy", "Oracle", "Prediction", "Predictor", "create"]
