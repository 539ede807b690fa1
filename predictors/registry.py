"""Predictors by name, so that a predictor is a word in a configuration file."""

import os
from collections.abc import Callable

from justitia.policy import PolicyError
from justitia.policy.exact import shown
from justitia.predictors.base import Predictor
from justitia.predictors.extra import check_installed, installed
from justitia.predictors.longest import Longest
from justitia.predictors.mean import Mean
from justitia.predictors.noisy import Noisy
from justitia.predictors.oracle import Oracle

FORMS = ("oracle", "noisy:LAMBDA", "mean", "max", "s3", "s3:DIR", "online:DIR", "DIR")
"""What `create` understands, as a message shows it."""

_SIMPLE: dict[str, Callable[[], Predictor]] = {
    "oracle": Oracle,
    "mean": Mean,
    "max": Longest,
}


def create(text: str, seed: int = 0) -> Predictor:
    """Make a predictor from its name, with what it takes after a colon.

    >>> create("noisy:3").name
    'noisy:3'

    Parameters
    ----------
    text
        ``"oracle"`` for the real costs, ``"noisy:3"`` for costs that are off by a
        factor of up to 3 either way, ``"mean"`` for the mean of what agents of the
        class have cost so far, ``"max"`` for what they cost if every inference produces
        all that it may, ``"s3"`` for the S³ baseline and ``"s3:DIR"`` for one from a
        directory; the directory of a model, or ``"online:DIR"`` for one that goes on
        learning from the agents that finish. A directory is given with a slash in it
        (``"./model"``) where it has one of these names.
    seed
        Of whatever the predictor draws.

    Raises
    ------
    PolicyError
        If there is no such predictor, naming those that there are; if what follows the
        colon is not allowed; if the directory holds no model that can be used; or if
        the extra ``predictors`` that it needs is not installed.
    """
    if isinstance(text, str):
        name, colon, argument = text.partition(":")
        if text in _SIMPLE:
            return _SIMPLE[text]()
        if name == "noisy" and colon:
            return Noisy(_number(argument), seed)
        if name == "s3" and (not colon or argument):
            return _s3(argument, seed)
        if name == "online" and argument:
            return _online(argument, seed)
        if os.sep in text or os.path.isdir(text):
            return _model(text)
    raise PolicyError(f"no predictor {shown(text)}; there are: {', '.join(FORMS)}")


def _s3(folder: str, seed: int) -> Predictor:
    from justitia.predictors.s3 import create_s3, load_s3  # noqa: PLC0415

    check_installed("predictor s3")
    return load_s3(folder) if folder else create_s3(seed)


def _model(folder: str) -> Predictor:
    from justitia.predictors.model import load  # noqa: PLC0415

    with installed(f"predictor {folder}"):
        model = load(folder)
    assert isinstance(model, Predictor)
    model.name = folder
    return model


def _online(folder: str, seed: int) -> Predictor:
    with installed(f"predictor online:{folder}"):
        from justitia.predictors.model import load  # noqa: PLC0415

        model = load(folder)
        from justitia.predictors.learned import Learned  # noqa: PLC0415
        from justitia.predictors.online import Online, trains  # noqa: PLC0415
    if not isinstance(model, Learned):
        raise PolicyError(
            f"online:DIR takes a model of networks, one a class; {folder} is another"
        )
    made = Online(model, trains(seed))
    made.name = f"online:{folder}"
    return made


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise PolicyError(
            f"noisy:LAMBDA takes a number of at least 1 (noisy:3), not {shown(text)}"
        ) from None
