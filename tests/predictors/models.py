"""A small model for tests, trained once a process; and what can be put into it."""

from collections.abc import Sequence
from copy import deepcopy
from functools import cache

from justitia.predictors.kinds import Guess
from justitia.predictors.learned import Learned
from justitia.predictors.training import train
from justitia.workloads import AgentSpec, generate
from tests.workloads.builders import agent, call

KINDS = ("MRS", "SC", "FVP")
QUICK = {"epochs": 40, "patience": 10, "members": 3}


def agents(kind: str, count: int = 30, first: int = 0) -> list[AgentSpec]:
    return [generate(kind, first + k, seed=1) for k in range(count)]


@cache
def _trained() -> Learned:
    textless = [agent(call(100 + k, 20 + k), id=f"t{k}", kind="DM") for k in range(20)]
    known = [one for kind in KINDS for one in agents(kind)]
    return train([*known, *textless], seed=3, options=QUICK)


def trained() -> Learned:
    """Return a model of three classes with texts, and of one without (DM)."""
    return deepcopy(_trained())


class Stub:
    """A text model that says the same of every text."""

    def __init__(self, log: object, high: object = None) -> None:
        self._guess = Guess(log, log if high is None else high)  # type: ignore[arg-type]

    def guess(self, text: str) -> Guess:
        return self._guess

    def guesses(self, texts: Sequence[str]) -> list[Guess | None]:
        return [self._guess] * len(texts)
