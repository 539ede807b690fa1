"""What a property is: a name, a sentence, and where to look for the contrary."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from hypothesis.strategies import SearchStrategy

from justitia.proofs.recorder import Broken, Session


@dataclass(frozen=True, slots=True)
class Family:
    """Cases of one sort, and what must hold in each.

    Attributes
    ----------
    cases
        Hypothesis draws the cases from it.
    check
        Given a session and a case, raises `Broken` where the property is.
    """

    cases: SearchStrategy[Any]
    check: Callable[[Session, Any], None]


@dataclass(frozen=True, slots=True)
class Property:
    """Something that a scheduler should keep.

    Attributes
    ----------
    name
        In kebab case.
    says
        What holds, in one sentence.
    families
        Where to look for the contrary. Each gets its own share of examples, so that a
        situation which chance seldom brings about is met all the same.
    needs
        Options that an object must be made with. One that does not take them does not
        offer the property.
    verb
        A verb that an object without which does not offer the property.
    """

    name: str
    says: str
    families: tuple[Family, ...]
    needs: Mapping[str, object] = field(default_factory=dict)
    verb: str = ""


def expect(kept: object, message: str) -> None:
    """Raise `Broken` with a message unless something was kept."""
    if not kept:
        raise Broken(message)
