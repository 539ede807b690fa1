"""Output lengths sorted into buckets."""

from collections.abc import Iterable
from dataclasses import dataclass

from justitia.policy.exact import MOST_TOKENS, shown
from justitia.predictors.errors import PredictorError

BUCKETS = 10
"""As in S³."""


@dataclass(frozen=True, slots=True)
class Buckets:
    """Ranges of equal width from 0 to the longest output.

    Parameters
    ----------
    longest
        Tokens; what is longer falls into the last bucket.
    tokens
        What an output of each bucket is taken for.

    Raises
    ------
    PredictorError
        If there are no buckets, or a length is no count.
    """

    longest: int
    tokens: tuple[int, ...]

    def __post_init__(self) -> None:
        for value in (self.longest, *self.tokens):
            if type(value) is not int or not 0 <= value <= MOST_TOKENS:
                raise PredictorError(
                    f"a length of S³'s buckets must be a count of tokens, "
                    f"not {shown(value)}"
                )
        if not self.tokens:
            raise PredictorError("S³ must have a bucket")

    @classmethod
    def fit(cls, lengths: Iterable[int], count: int = BUCKETS) -> "Buckets":
        """Return the buckets of these output lengths.

        An output of a bucket is taken for the mean of those in it. S³ takes it for the
        upper end, since it sets memory aside; for a cost that would be too much each
        time, so this is kinder to it.
        """
        known = list(lengths)
        longest = max(known, default=0)
        ends = [(place + 1) * (longest + 1) // count for place in range(count)]
        empty = cls(longest, tuple(ends))
        inside: list[list[int]] = [[] for _ in range(count)]
        for length in known:
            inside[empty.of(length)].append(length)
        means = (
            round(sum(some) / len(some)) if some else end
            for some, end in zip(inside, ends, strict=True)
        )
        return cls(longest, tuple(means))

    def of(self, length: int) -> int:
        """Return the bucket of an output length, from 0."""
        last = len(self.tokens) - 1
        return min(length * len(self.tokens) // (self.longest + 1), last)
