"""One timer for many waits: each has all of its time, and no more."""

import asyncio

import pytest

from justitia.gateway.patience import Patience


class Skipping(asyncio.SelectorEventLoop):
    """A loop whose time goes on only where there is nothing else to do."""

    _at = 0.0

    def time(self) -> float:
        return self._at

    def _run_once(self) -> None:
        if not self._ready and self._scheduled:  # type: ignore[attr-defined]
            self._at = max(self._at, self._scheduled[0].when())  # type: ignore[attr-defined]
        super()._run_once()  # type: ignore[misc]


def test_what_takes_too_long_is_ended_and_nothing_else_is() -> None:
    async def doing() -> list[str]:
        patience, told = Patience(0.05), []
        for number in range(40):  # longer in all than one may take
            with patience:
                await asyncio.sleep(0.005)
            told.append(str(number))
        for _ in range(2):
            with pytest.raises(TimeoutError), patience:
                await asyncio.sleep(60)
            task = asyncio.current_task()
            assert task is not None
            assert not task.cancelling()
            with patience:
                await asyncio.sleep(0)
        await asyncio.sleep(0.1)  # nothing is left that could go off
        patience.close()
        return told

    with asyncio.Runner(loop_factory=Skipping) as runner:
        assert len(runner.run(doing())) == 40


def test_who_cancels_is_heard() -> None:
    async def doing() -> None:
        began = asyncio.Event()

        async def work() -> None:
            patience = Patience(60)
            try:
                with patience:
                    began.set()
                    await asyncio.sleep(60)
            finally:
                patience.close()

        task = asyncio.create_task(work())
        await began.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(doing())


def test_there_is_one_timer() -> None:
    async def doing() -> None:
        loop, made = asyncio.get_running_loop(), 0
        at = loop.call_at

        def counted(*arguments: object, **more: object) -> asyncio.TimerHandle:
            nonlocal made
            made += 1
            return at(*arguments, **more)  # type: ignore[arg-type]

        loop.call_at = counted  # type: ignore[method-assign]
        patience = Patience(60)
        for _ in range(100):
            with patience:
                pass
        assert made == 1
        patience.close()

    asyncio.run(doing())
