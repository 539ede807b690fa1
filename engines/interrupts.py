"""Ctrl-C, where it must not come in between."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def held() -> Iterator[None]:
    """Let Ctrl-C wait for the end of a block that is soon over.

    Threads and processes that are started in the block never hear of it: it is for who
    started them, to whom it comes as `KeyboardInterrupt`.
    """
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
