"""Put a scheduler through every property, and say which it keeps.

`verify` takes a class, or any function that makes an object with the verbs of
`justitia.policy.Policy`, looks for a history that breaks a property, and makes what it
finds as small as it can. Results repeat from the seed. Nothing is written anywhere.

Needs Hypothesis: in a clone, ``pip install '.[proofs]'``.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import HealthCheck, Phase, Verbosity, configuration, given, settings
from hypothesis import seed as seeded
from hypothesis.errors import HypothesisException

from justitia.proofs.properties import ALL, Family, Property
from justitia.proofs.recorder import NEEDED, Broken, Session, said

SCHEMA = 1
"""Of `Report.document`: raised when a key changes its meaning, or goes."""
HELD, BROKEN, NOT_OFFERED = "held", "broken", "not offered"


@dataclass(frozen=True, slots=True)
class Profile:
    """How hard to look.

    Attributes
    ----------
    examples
        Cases of each family of a property.
    smaller
        Cases to try in order to make a failure smaller; 0: it is left as it is.
    """

    examples: int
    smaller: int


PROFILES = {
    "quick": Profile(60, 500),
    "ci": Profile(300, 2_000),
    "long": Profile(4_000, 10_000),
}


@dataclass(frozen=True, slots=True)
class Result:
    """What became of one property.

    Attributes
    ----------
    status
        ``"held"``, ``"broken"``, or ``"not offered"``.
    examples
        How many cases were tried, up to the first that broke it.
    message
        What was wrong, or not offered; empty if it held.
    history
        The smallest history found that breaks it: lines of Python, with the answers.
    """

    name: str
    says: str
    status: str
    examples: int = 0
    message: str = ""
    history: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """What became of every property."""

    policy: str
    profile: str
    seed: int
    results: tuple[Result, ...]

    @property
    def held(self) -> bool:
        """Whether none was broken."""
        return all(result.status != BROKEN for result in self.results)

    def document(self, *, version: str) -> dict[str, object]:
        """Return it as what JSON can hold."""
        return {
            "schema": SCHEMA,
            "version": version,
            "policy": self.policy,
            "profile": self.profile,
            "seed": self.seed,
            "held": self.held,
            "properties": [
                {**asdict(result), "history": list(result.history)}
                for result in self.results
            ],
        }


class Unusable(ValueError):
    """What was given makes no object with the verbs of a policy; says why."""


def check_usable(make: Callable[..., object]) -> None:
    """Make one object, and look for the verbs.

    Raises
    ------
    Unusable
        Naming the verbs that are missing.
    """
    try:
        policy = make()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise Unusable(f"cannot be made without arguments: {said(error)}") from error
    missing = [verb for verb in NEEDED if not callable(getattr(policy, verb, None))]
    if missing:
        raise Unusable(f"has no {', '.join(missing)}")


def verify(
    make: Callable[..., object],
    *,
    name: str = "make",
    profile: str = "quick",
    seed: int = 7,
    properties: Iterable[str] | Iterable[Property] | None = None,
    progress: Callable[[int], None] = lambda _: None,
) -> Report:
    """Look for histories that break properties.

    Parameters
    ----------
    make
        A class, or a function without arguments, that makes an object with the verbs.
    name
        What it is called in histories and in the report.
    profile
        One of `PROFILES`.
    seed
        The same seed finds the same.
    properties
        Which to look at, or their names; None: all that there are.
    progress
        Told how many are done, after each.

    Raises
    ------
    Unusable
        If an object cannot be made, or has not the verbs; or if there is no property of
        a name.
    """
    check_usable(make)
    results = []
    with _nothing_written():
        for one in choose(properties):
            results.append(_verify(one, make, name, PROFILES[profile], seed))
            progress(len(results))
    return Report(name, profile, seed, tuple(results))


def _verify(
    one: Property, make: Callable[..., object], name: str, profile: Profile, seed: int
) -> Result:
    lacks = _not_offered(one, make)
    if lacks:
        return Result(one.name, one.says, NOT_OFFERED, message=lacks)
    called = name.rpartition(":")[2].rpartition(".")[2]
    tried, found = 0, list[_Found]()
    for family in one.families:
        hunt = _Hunt(family, make, called, profile)
        hunt.go(seed)
        if not found:
            tried += hunt.tried
        if hunt.found is not None:
            found.append(hunt.found)
    if not found:
        return Result(one.name, one.says, HELD, tried)
    shortest = min(found, key=lambda each: len(each.history))
    return Result(one.name, one.says, BROKEN, tried, shortest.message, shortest.history)


def _not_offered(one: Property, make: Callable[..., object]) -> str:
    """Return what an object lacks that a property needs, or nothing."""
    try:
        policy = make(**one.needs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if not one.needs:
            return ""  # whatever it is, the property will meet it
        options = ", ".join(f"{key}={value!r}" for key, value in one.needs.items())
        return f"not made with {options}: {type(error).__name__}"
    if one.verb and not callable(getattr(policy, one.verb, None)):
        return f"has no {one.verb}"
    return ""


class _Failed(AssertionError):
    """Raised at one place, so that Hypothesis takes all failures for the same."""


@dataclass(frozen=True, slots=True)
class _Found:
    message: str
    history: tuple[str, ...]


class _Hunt:
    """Looks for a case of a family that breaks the property.

    Attributes
    ----------
    tried
        How many cases, up to the first that did.
    found
        The smallest that did, or None.
    """

    def __init__(
        self,
        family: Family,
        make: Callable[..., object],
        name: str,
        profile: Profile,
    ) -> None:
        self._family, self._make, self._name = family, make, name
        self._profile = profile
        self._smaller = 0
        self._failing: set[str] = set()
        self.tried = 0
        self.found: _Found | None = None

    def go(self, seed: int) -> None:
        """Look, and make what is found smaller."""
        attempt: Callable[[Any], None] = self._attempt
        phases = [Phase.generate, Phase.target]
        if self._profile.smaller:
            phases.append(Phase.shrink)

        @settings(
            max_examples=self._profile.examples,
            database=None,
            deadline=None,
            derandomize=False,
            print_blob=False,
            report_multiple_bugs=False,
            verbosity=Verbosity.quiet,
            phases=phases,
            suppress_health_check=list(HealthCheck),
        )
        @seeded(seed)
        @given(self._family.cases)
        def test(case: Any) -> None:  # noqa: ANN401 - of the family
            attempt(case)

        try:
            test()
        except _Failed:
            pass
        except HypothesisException as error:
            # Told the same, the object did not do the same.
            found = self.found or _Found(f"{type(error).__name__}: {error}", ())
            self.found = _Found(f"{found.message} (not every time)", found.history)

    def _attempt(self, case: Any) -> None:  # noqa: ANN401 - of the family
        if self.found is None:
            self.tried += 1
        else:
            self._smaller += 1
            if (
                self._smaller > self._profile.smaller
                and repr(case) not in self._failing
            ):
                return  # enough: hold on to what has been found
        session = Session(self._make, self._name)
        message = ""
        try:
            self._family.check(session, case)
        except Broken as error:
            message = str(error)
        except HypothesisException:
            raise
        except Exception as error:  # what a wrong answer led to
            message = f"{type(error).__name__}: {error}"
        if message:
            self.found = _Found(message, tuple(session.lines))
            self._failing.add(repr(case))
            raise _Failed


@contextmanager
def _nothing_written() -> Iterator[None]:
    """Give Hypothesis a folder that is soon gone for whatever it likes to keep."""
    before = configuration.__dict__["__hypothesis_home_directory"]
    with TemporaryDirectory(prefix="justitia-") as folder:
        configuration.set_hypothesis_home_dir(folder)
        try:
            yield
        finally:
            configuration.set_hypothesis_home_dir(before)


def choose(
    properties: Iterable[str] | Iterable[Property] | None = None,
) -> list[Property]:
    """Return properties by their names; all that there are, for None.

    Raises
    ------
    Unusable
        If there is none of a name, naming those that there are.
    """
    by_name = {one.name: one for one in ALL}
    chosen = []
    for one in ALL if properties is None else properties:
        if isinstance(one, str):
            if one not in by_name:
                raise Unusable(f"no property {one!r}; there are: {', '.join(by_name)}")
            chosen.append(by_name[one])
        else:
            chosen.append(one)
    return chosen
