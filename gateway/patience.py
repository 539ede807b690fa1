"""How long one task waits for each of many things, by one timer."""

import asyncio
from types import TracebackType


class Patience:
    """A limit on what a block awaits, for one task that enters it again and again.

    As `asyncio.timeout`, with the same limit each time, and without a new timer each
    time: there is one at most, which looks when it goes off whether the block that is
    awaited then has been for long enough. Handing over an event of a stream takes less
    than a timer does.

    Parameters
    ----------
    seconds
        That a block may take; `TimeoutError` is raised where it takes longer.

    Notes
    -----
    Complexity: O(1). Not for blocks within each other. It must be closed at the end.
    """

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._task: asyncio.Task[object] | None = None
        self._cancelling = 0
        self._until: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._late = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert self._until is None
        self._task, self._cancelling = task, task.cancelling()
        loop = task.get_loop()
        self._until = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_at(self._until, self._look)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        task, self._task, self._until = self._task, None, None
        if not self._late:
            return
        self._late = False
        assert task is not None
        # Whoever else cancelled it is to be heard, as `asyncio.timeout` has it.
        if task.uncancel() <= self._cancelling and kind is asyncio.CancelledError:
            raise TimeoutError from error

    def _look(self) -> None:
        self._timer = None
        if self._until is None or self._task is None:
            return
        loop = self._task.get_loop()
        if loop.time() < self._until:
            self._timer = loop.call_at(self._until, self._look)
        else:
            self._late = True
            self._task.cancel()

    def close(self) -> None:
        """Have no timer any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
