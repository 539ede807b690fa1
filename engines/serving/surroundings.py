"""The surroundings of a real engine in this process: variables, and its output."""

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager


def prepare(environment: Mapping[str, str]) -> None:
    """Set variables, but none that is set already; before the engine is imported."""
    for name, value in environment.items():
        os.environ.setdefault(name, value)


@contextmanager
def quietly() -> Iterator[None]:
    """Keep what libraries say of themselves as an engine starts or ends out of results.

    Standard output is for results, and libraries in C++ print to its descriptor: that
    goes to standard error meanwhile. Warnings of what they will change are dropped.
    """
    logging.getLogger("torch._library.triton").setLevel(logging.ERROR)
    with warnings.catch_warnings(), _stdout_on_stderr():
        warnings.simplefilter("ignore")
        yield


@contextmanager
def _stdout_on_stderr() -> Iterator[None]:
    if sys.stdout is not None:
        sys.stdout.flush()
    try:
        kept = os.dup(1)
    except OSError:  # closed
        yield
        return
    try:
        os.dup2(2, 1)
        yield
    finally:
        os.dup2(kept, 1)
        os.close(kept)
