"""What goes wrong with an experiment as a whole."""

from justitia.policy import PolicyError


class ExperimentError(PolicyError):
    """An experiment that cannot be run here; says why, and what would help."""
