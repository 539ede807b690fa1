"""Everything that an exact run needs but the line: a value, to be run many times.

A `Scenario` can be printed and pasted into a test; its coins are numbers, not
functions, for the same reason. `justitia.proofs.strategies` draws them.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias

from justitia.proofs.admissions import Admission, Whim, coin
from justitia.proofs.plans import Plan, Work, kv_token_time
from justitia.proofs.server import History, Line, Server


@dataclass(frozen=True, slots=True)
class Tosses:
    """A coin that falls on yes at the tosses named, counted from 1, and at no other."""

    yes: frozenset[int] = frozenset()

    def __call__(self, n: int) -> bool:
        """Return what toss `n` says."""
        return n in self.yes


@dataclass(frozen=True, slots=True)
class Seeded:
    """A coin that falls on yes about once in `one_in`, and no more after `last`.

    So that nothing can be paused, or sent back, for ever.
    """

    seed: int
    one_in: int
    last: int = 300

    def __call__(self, n: int) -> bool:
        """Return what toss `n` says."""
        return n <= self.last and coin(self.seed, self.one_in)(n)


Coins: TypeAlias = Tosses | Seeded


@dataclass(frozen=True, slots=True)
class Scenario:
    """Agents, and a server for them; see `Server` for what each part means.

    Examples
    --------
    >>> from justitia.proofs.admissions import Slots
    >>> from justitia.proofs.lines import FairLine
    >>> mouse, elephant = Plan(1, (((0, 1),),)), Plan(0, (((5, 4),),))
    >>> Scenario((elephant, mouse), Slots(1)).run(FairLine()).agent_finishes()
    {0: 4, 1: 5}
    """

    plans: tuple[Plan, ...]
    admission: Admission
    chunk: int | None = None
    pauses: Coins = Tosses()
    preempts: Coins = Tosses()

    def server(self, line: Line, *, work: Work = kv_token_time) -> Server:
        """Return a server that has not run yet."""
        admission = self.admission
        if isinstance(admission, Whim):  # it counts its tosses
            admission = replace(admission, tossed=0)
        return Server(
            self.plans,
            line,
            admission,
            chunk=self.chunk,
            pauses=self.pauses,
            preempts=self.preempts,
            work=work,
        )

    def run(self, line: Line, *, work: Work = kv_token_time) -> History:
        """Run it to its end; see `Server.run`."""
        return self.server(line, work=work).run()
