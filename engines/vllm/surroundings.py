"""What vLLM must find in the environment, and where its output goes."""

import logging
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

IN_PROCESS = {
    "VLLM_ENABLE_V1_MULTIPROCESSING": "0",
    "VLLM_NO_USAGE_STATS": "1",
    "VLLM_LOGGING_LEVEL": "ERROR",
    "VLLM_LOGGING_STREAM": "ext://sys.stderr",
    "TRANSFORMERS_VERBOSITY": "error",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
}
"""The engine in this process, and quiet: it warns of a scheduler of one's own."""
TINY_ON_CPU = {
    "OMP_NUM_THREADS": "1",
    "VLLM_CPU_OMP_THREADS_BIND": "nobind",
    "VLLM_CPU_KVCACHE_SPACE": "1",
    "HF_HUB_OFFLINE": "1",
}
"""For a model whose layers are smaller than what two threads take to agree."""


def prepare(environment: Mapping[str, str]) -> None:
    """Set variables, but none that is set already; before vLLM is imported."""
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
