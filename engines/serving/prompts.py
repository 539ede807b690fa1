"""Prompts of made-up tokens: a workload says how long they are, not what they say."""

_SPECIAL = 3
"""Token ids below this are left out: they begin and end texts."""
_DIGITS = 4
"""Tokens that tell prompts apart; a block of a cache holds more."""


def made_up(number: int, length: int, vocabulary: int) -> list[int]:
    """Return a prompt that begins with `number` in the base of the vocabulary.

    No two of one engine share a block, so a cache of prefixes finds nothing.

    >>> made_up(7, 6, 503), made_up(500, 2, 503)
    ([10, 3, 3, 3, 7, 8], [3, 4])
    """
    base = vocabulary - _SPECIAL
    digits = [number // base**place for place in range(min(length, _DIGITS))]
    return [_SPECIAL + one % base for one in (*digits, *range(_DIGITS, length))]
