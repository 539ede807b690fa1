"""How long a policy takes, of all that a run takes."""

from collections.abc import Callable, Iterator
from time import perf_counter
from typing import Any

from justitia.policy import Policy

_VERBS = (
    "arrive", "submit", "start", "serve", "requeue", "finish", "leave", "revise",
    "refuse", "advance", "peek", "preempts", "tag",
)  # fmt: skip
_LINES = ("order", "victims")


class Stopwatch:
    """Adds up the seconds in a policy's verbs, those within others once.

    Attributes
    ----------
    seconds
        So far.
    """

    def __init__(self) -> None:
        self.seconds = 0.0
        self._inside = False

    def on(self, policy: Policy) -> Policy:
        """Return the policy, whose verbs are timed from now on."""
        for verb in _VERBS:
            setattr(policy, verb, self._timed(getattr(policy, verb)))
        for line in _LINES:
            setattr(policy, line, self._stepped(getattr(policy, line)))
        return policy

    def _timed(self, verb: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: object) -> object:
            if self._inside:
                return verb(*args)
            self._inside = True
            began = perf_counter()
            try:
                return verb(*args)
            finally:
                self.seconds += perf_counter() - began
                self._inside = False

        return timed

    def _stepped(self, line: Callable[[], Iterator[Any]]) -> Callable[[], Any]:
        def stepped() -> Iterator[Any]:
            following = self._timed(line().__next__)
            while True:
                try:
                    yield following()
                except StopIteration:
                    return

        return stepped
