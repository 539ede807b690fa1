"""Progress of a comparison: bars on a terminal, plain lines elsewhere."""

from collections.abc import Mapping, Sequence
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

from justitia.engines.interrupts import held


class Progresses(AbstractContextManager["Progresses"]):
    """One bar, or line, a policy.

    Parameters
    ----------
    console
        Where to: standard error, so that results can be piped.
    names
        The policies.
    total
        Inferences in each run, or by name what a bar counts to.
    """

    def __init__(
        self,
        console: Console,
        names: Sequence[str],
        total: int | Mapping[str, int],
    ) -> None:
        self._console = console
        self._totals = {
            name: max(total if isinstance(total, int) else total[name], 1)
            for name in names
        }
        # Asked of the file: FORCE_COLOR makes rich take a pipe for a terminal.
        self._drawn = console.is_interactive and console.file.isatty()
        self._bars = Progress(
            TextColumn("{task.description}", markup=False),
            BarColumn(),
            TaskProgressColumn(),
            TimeElapsedColumn(),
            console=console,
            transient=True,
            redirect_stdout=False,
            redirect_stderr=False,
            disable=not self._drawn,
        )
        self._tasks = {
            name: self._bars.add_task(name, total=each)
            for name, each in self._totals.items()
        }
        self._over = 0

    def __enter__(self) -> "Progresses":
        try:
            with held():  # rich does not bear to be interrupted as it draws
                self._bars.start()
        except KeyboardInterrupt:
            self._bars.stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with held():
            self._bars.stop()

    def tell(self, name: str, ended: int) -> None:
        """Show how many inferences of a run have ended; -1 says the run is over."""
        task = self._tasks[name]
        if ended >= 0:
            self._bars.update(task, completed=ended)
            return
        self._bars.update(task, completed=self._totals[name])
        self._over += 1
        if not self._drawn:
            self._console.print(
                f"{name}: done ({self._over} of {len(self._tasks)})",
                highlight=False,
                markup=False,
                soft_wrap=True,
            )
