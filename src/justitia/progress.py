"""Progress of a comparison: bars on a terminal, plain lines elsewhere."""

from collections.abc import Sequence
from contextlib import AbstractContextManager
from types import TracebackType

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
)


class Progresses(AbstractContextManager["Progresses"]):
    """One bar, or line, a policy.

    Parameters
    ----------
    console
        Where to: standard error, so that results can be piped.
    names
        The policies.
    total
        Inferences in each run.
    """

    def __init__(self, console: Console, names: Sequence[str], total: int) -> None:
        self._console = console
        self._total = total
        self._bars = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            disable=not console.is_terminal,
        )
        self._tasks = {
            name: self._bars.add_task(name, total=max(total, 1)) for name in names
        }
        self._over = 0

    def __enter__(self) -> "Progresses":
        self._bars.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bars.stop()

    def tell(self, name: str, ended: int) -> None:
        """Show how many inferences of a run have ended; -1 says the run is over."""
        if ended >= 0:
            self._bars.update(self._tasks[name], completed=ended)
            return
        self._bars.update(self._tasks[name], completed=max(self._total, 1))
        self._over += 1
        if not self._console.is_terminal:
            self._console.print(
                f"{name} done ({self._over} of {len(self._tasks)})", highlight=False
            )
