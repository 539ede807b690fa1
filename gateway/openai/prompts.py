"""Prompts of a workload for a server: of token ids where it takes some, else of text.

A workload says how long prompts are, not what they say. No two of them begin alike, so
that no cache of prefixes finds anything.
"""

from dataclasses import dataclass
from time import time_ns
from typing import Protocol

from justitia.engines.serving.prompts import made_up

_VOCABULARY = 256
"""Token ids are below this: every model has as many."""
_TEXT = (
    "time year people way day man thing woman life child world school state family "
    "student group country problem hand part place case week company system program "
    "question work government number night point home water room mother area money "
    "story fact month lot right study book eye job word business issue side kind head "
    "house service friend father power hour game line end member law car"
)
_WORDS = tuple(_TEXT.split())
_DIGITS = 6
"""Words that tell prompts apart."""


class Prompts(Protocol):
    """Makes prompts by number, of about so many tokens."""

    def make(self, number: int, tokens: int) -> list[int] | str:
        """Return a prompt of `tokens` tokens, at least 1."""


class Ids:
    """Prompts of token ids: exactly as long as they are to be."""

    def make(self, number: int, tokens: int) -> list[int]:
        """Return a prompt."""
        return made_up(number, tokens, _VOCABULARY)


@dataclass(frozen=True, slots=True)
class Words:
    """Prompts of words, as long as the tokens of a word make them.

    Attributes
    ----------
    each
        Tokens of a word.
    more
        Tokens that a prompt has beside its words.
    """

    each: float = 1.0
    more: float = 0.0

    def make(self, number: int, tokens: int) -> str:
        """Return a prompt, of a word at least.

        >>> Words(each=2).make(1, 6)
        'year time time'
        """
        return words(number, max(1, round((tokens - self.more) / self.each)))


def words(number: int, count: int) -> str:
    """Return so many words, of which the first tell the number.

    >>> words(1, 3), words(0, 3)
    ('year time time', 'time time time')
    """
    base = len(_WORDS)
    digits = [number // base**place for place in range(min(count, _DIGITS))]
    chosen = (*digits, *range(_DIGITS, count))
    return " ".join(_WORDS[one % base] for one in chosen)


def measured(few: tuple[int, int], many: tuple[int, int]) -> Words:
    """Return prompts of words, from two of which the words and tokens are known.

    >>> measured((8, 10), (40, 42)), measured((8, 17), (40, 81))
    (Words(each=1.0, more=2.0), Words(each=2.0, more=1.0))

    A server that counts nothing that can be used is taken for one with a token a word:

    >>> measured((8, 7), (40, 7))
    Words(each=1.0, more=0.0)
    """
    each = (many[1] - few[1]) / (many[0] - few[0])
    more = few[1] - each * few[0]
    if each <= 0 or more < 0:
        each, more = many[1] / many[0], 0.0
    return Words(each, more) if each >= 1 / 2 else Words()


def first_number() -> int:
    """Return a number that no prompt of an earlier run had: the time in milliseconds.

    A server outlives runs, and its cache with it.
    """
    return time_ns() // 10**6
