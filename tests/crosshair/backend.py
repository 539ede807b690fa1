"""Properties decided by a solver: CrossHair behind Hypothesis, and its verdicts.

With CrossHair the numbers that a property draws are symbols. A run follows one path
through the code and asks the solver about *all* numbers that take it; the next run
takes another path. When there is no other, the property holds for every value of its
strategies, and Hypothesis is told that it is "verified".

The plugin's word alone is not taken for it: it says "verified" also where it left out a
path that went through code which cannot take a symbol. `Told` counts how every run
ended, and `decide` says "confirmed" only if none was left out.

Floats are real numbers to CrossHair, without rounding; no property here draws any.
"""

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.errors import BackendCannotProceed

plugin = pytest.importorskip(
    "hypothesis_crosshair_provider.crosshair_provider",
    reason="needs hypothesis-crosshair: tox run -e crosshair",
)
providers = pytest.importorskip("hypothesis.internal.conjecture.providers")

Property = Callable[[], None]

WHOLE = {
    "completed normally",
    "ignored due to lazily-detected path impossibility",  # no numbers take it
    "exhausted all paths - nothing else to do",
}
"""How a run ends that leaves nothing open."""


class Told(plugin.CrossHairPrimitiveProvider):  # type: ignore[misc, name-defined]
    """CrossHair's backend, telling how its runs ended."""

    last: "Told"

    def __init__(self, *args: Any, **options: Any) -> None:  # noqa: ANN401
        super().__init__(*args, **options)
        self.ended: Counter[str] = Counter()
        self.verified = False
        Told.last = self

    def set_completion(self, msg: str) -> None:
        self.ended[msg] += 1
        super().set_completion(msg)

    def _make_statespace(self) -> Any:  # noqa: ANN401
        space = super()._make_statespace()
        space.extend_timeouts(constant_factor=20.0, smt_multiple=8.0)  # of 2.5 s
        return space

    @contextmanager
    def per_test_case_context_manager(self) -> Iterator[None]:
        try:
            with super().per_test_case_context_manager():
                yield
        except BackendCannotProceed as why:
            self.verified |= why.scope == "verified"
            raise

    @property
    def verdict(self) -> str:
        if self.verified and set(self.ended) <= WHOLE:
            return "confirmed"
        return ", ".join(f"{count} {how}" for how, count in sorted(self.ended.items()))


providers.AVAILABLE_PROVIDERS["crosshair-told"] = f"{__name__}.Told"

symbolically = settings(
    backend="crosshair-told",
    max_examples=400,
    deadline=None,
    database=None,
    derandomize=False,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def decide(prop: Property) -> str:
    """Run a property; return "confirmed", or how the runs ended.

    Raises
    ------
    AssertionError
        If there is a counterexample; it was tried on plain numbers.
    """
    symbolically(prop)()
    return Told.last.verdict


def confirmed(prop: Property) -> Property:
    """Make a test of a property: it holds for all values, and the solver says so."""

    def test() -> None:
        assert decide(prop) == "confirmed"

    test.__doc__ = prop.__doc__
    return test
