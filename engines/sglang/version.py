"""Which SGLang there is, and whether the adapter knows it."""

import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from justitia.engines.base import EngineError

OLDEST, BELOW = (0, 5, 16), (0, 6, 0)
"""The first version that is known, and the first that is not."""
INSTALL = "pip install 'justitia[sglang]'"


class SGLangUnusable(EngineError):
    """There is no SGLang here, or one that the adapter does not know."""


def check_version() -> str:
    """Return SGLang's version, without importing it.

    Raises
    ------
    SGLangUnusable
        Saying what is there and what is needed.
    """
    found = installed()
    if found is None:
        raise SGLangUnusable(f"SGLang is not installed; install it with: {INSTALL}")
    match = re.match(r"(\d+)\.(\d+)\.(\d+)", found)
    number = tuple(map(int, match.groups())) if match else (0, 0, 0)
    if not OLDEST <= number < BELOW:
        oldest, below = (".".join(map(str, each)) for each in (OLDEST, BELOW))
        raise SGLangUnusable(
            f"SGLang {found} is installed; this version of justitia knows {oldest} and "
            f"later, below {below}. Install one of those: {INSTALL}"
        )
    return found


def installed() -> str | None:
    """Return the version of the SGLang that would be imported; None if there is none.

    It is sought elsewhere, too, where it has no metadata: a checkout, say.
    """
    if find_spec("sglang") is None:
        return None
    try:
        return version("sglang")
    except PackageNotFoundError:
        return "of no known version"
