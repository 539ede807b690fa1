"""Says what of the extra ``gateway`` is not installed."""

from collections.abc import Iterable
from importlib.util import find_spec

CLIENT = ("httpcore", "httpx", "prometheus_client")
"""What speaks to engines needs, as it is imported."""
SERVER = (*CLIENT, "starlette", "uvicorn")
"""What the gateway needs; httptools and uvloop only make it quicker."""


def missing(libraries: Iterable[str]) -> str | None:
    """Return the first library that is not there, without importing any."""
    for name in libraries:
        try:
            there = find_spec(name) is not None
        except ValueError:  # blocked in sys.modules
            there = False
        if not there:
            return name
    return None
