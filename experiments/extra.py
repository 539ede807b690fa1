"""Says what to install where the extra ``experiments`` is not installed."""

from importlib.util import find_spec

from justitia.experiments.errors import ExperimentError

LIBRARIES = ("jinja2", "joblib", "matplotlib", "scipy")
"""What the extra brings, as it is imported."""


def check_installed(what: str) -> None:
    """Raise `ExperimentError` where a library of the extra is missing.

    Parameters
    ----------
    what
        Who needs it, for the message.
    """
    for name in LIBRARIES:
        try:
            there = find_spec(name) is not None
        except ValueError:  # blocked in sys.modules
            there = False
        if not there:
            raise ExperimentError(
                f"{what} needs {name}, which is not installed; "
                "install it with: pip install 'justitia[experiments]'"
            )
