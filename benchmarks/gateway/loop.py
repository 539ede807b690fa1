"""The event loop that uvicorn would take, for what stands beside it."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

import uvicorn

T = TypeVar("T")


def run(doing: Coroutine[Any, Any, T]) -> T:
    """Run something on uvloop where it is installed."""
    make = uvicorn.Config("").get_loop_factory()
    with asyncio.Runner(loop_factory=make) as runner:
        return runner.run(doing)
