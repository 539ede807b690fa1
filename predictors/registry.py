"""Predictors by name, so that a predictor is a word in a configuration file."""

from justitia.policy import PolicyError
from justitia.policy.exact import shown
from justitia.predictors.base import Predictor
from justitia.predictors.noisy import Noisy
from justitia.predictors.oracle import Oracle

FORMS = ("oracle", "noisy:LAMBDA")
"""What `create` understands, as a message shows it."""


def create(text: str, seed: int = 0) -> Predictor:
    """Make a predictor from its name, with what it takes after a colon.

    >>> create("noisy:3").name
    'noisy:3'

    Parameters
    ----------
    text
        ``"oracle"`` for the real costs, ``"noisy:3"`` for costs that are off by a
        factor of up to 3 either way.
    seed
        Of whatever the predictor draws.

    Raises
    ------
    PolicyError
        If there is no such predictor, naming those that there are; or if what follows
        the colon is not allowed.
    """
    if isinstance(text, str):
        name, colon, argument = text.partition(":")
        if name == "oracle" and not colon:
            return Oracle()
        if name == "noisy" and colon:
            return Noisy(_number(argument), seed)
    raise PolicyError(f"no predictor {shown(text)}; there are: {', '.join(FORMS)}")


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PolicyError(
            f"noisy:LAMBDA takes a number of at least 1 (noisy:3), not {shown(text)}"
        ) from None
