"""The surroundings of a real engine: variables, arguments, and its output."""

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


def flags(arguments: Mapping[str, object]) -> list[str]:
    """Return an engine's arguments as a command line has them.

    >>> flags({"device": "cpu", "disable_cuda_graph": True, "page_size": 1})
    ['--device', 'cpu', '--disable-cuda-graph', '--page-size', '1']
    """
    line = []
    for name, value in arguments.items():
        line.append("--" + name.replace("_", "-"))
        if value is not True:
            line.append(str(value))
    return line


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
