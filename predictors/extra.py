"""Says what to install where the extra is not installed."""

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec

from justitia.predictors.errors import PredictorError

LIBRARIES = (
    "numpy", "joblib", "safetensors", "scipy", "sklearn", "tokenizers", "torch",
    "transformers",
)  # fmt: skip
"""What the extra ``predictors`` brings, as it is imported."""


@contextmanager
def installed(what: str) -> Iterator[None]:
    """Let a library of the extra that cannot be imported be told as what it is.

    Parameters
    ----------
    what
        Who needs it, for the message.

    Raises
    ------
    PredictorError
        Naming the library, and how to install it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        name = (error.name or "").partition(".")[0]
        if name not in LIBRARIES:
            raise
        raise _missing(what, name) from None


def check_installed(what: str) -> None:
    """Raise what `installed` raises, without importing anything."""
    for name in LIBRARIES:
        try:
            there = find_spec(name) is not None
        except ValueError:  # blocked in sys.modules
            there = False
        if not there:
            raise _missing(what, name)


def _missing(what: str, library: str) -> PredictorError:
    return PredictorError(
        f"{what} needs {library}, which is not installed; "
        "install it with: pip install 'justitia[predictors]'"
    )
