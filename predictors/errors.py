"""What goes wrong with a predictor."""

from justitia.policy import PolicyError


class PredictorError(PolicyError):
    """A predictor that cannot be made or asked; says why."""


class TrainingError(PredictorError):
    """Agents from which nothing can be learned, or a training that came to nothing."""


class ModelError(PredictorError):
    """A directory that is not a model that this version can use; says what is wrong."""
