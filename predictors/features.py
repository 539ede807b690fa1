"""What a text says: which characters and words it has how often, and how long it is.

The frequencies are scikit-learn's TF-IDF of characters (1 to 3 in a row, so that any
script works) and of words. scikit-learn learns them; reading one text through it takes
longer than the whole prediction may, so `Features` looks them up itself: an n-gram of
up to three characters is a number of 63 bits, so a sorted array tells how often each is
there. The tests hold the two against each other.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from justitia.predictors.errors import TrainingError

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

LONGEST = 2048
"""Characters of a text that are read: the first and the last half of so many. Its
length counts as a whole. ``docs/predictors.md`` has what that costs in error."""

COUNT_SCALE = 0.3
"""What a standard deviation of a count is worth beside the frequencies of a text, whose
squares add up to 1 for characters and to 1 for words."""
GRAMS = 3
MOST_GRAMS = 1000
MOST_WORDS = 1000
BOUND = 5.0
"""Counts are cut at so many standard deviations: a text unlike any that was learned
from is as unlike as a model can take."""

# Scripts that put no blank between words: a character is a word there.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
)
WORD = rf"[{_UNSPACED}]|[^\W{_UNSPACED}]{{2,}}"
_WORD = re.compile(WORD)
_BLANKS = re.compile(r"\s\s+")
_BITS = np.uint64(21)

_CLASSES = {
    "lines": "\n",
    "sentences": ".!?",
    "questions": "?",
    "commas": ",;:",
    "digits": "0123456789",
    "capitals": "ABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "brackets": "()[]{}<>",
    "operators": "=+-*/%#",
    "quotes": "\"'`",
}
COUNTS = ("characters", "words", *_CLASSES, "not ascii")
"""What is counted, in order."""


def _membership() -> NDArray[np.float64]:
    """Return which ASCII character is of which class; the last row is all others."""
    table = np.zeros((129, len(_CLASSES) + 1))
    for column, characters in enumerate(_CLASSES.values()):
        for character in characters:
            if character.isascii():
                table[ord(character), column] = 1
    table[128, -1] = 1
    return table


_MEMBERSHIP = _membership()


def sample(text: str, most: int = LONGEST) -> str:
    """Return a text, or the beginning and the end of one that is longer than `most`."""
    if len(text) <= most:
        return text
    head = (most + 1) // 2
    return text[:head] + text[len(text) - (most - head) :]


def words(text: str) -> list[str]:
    """Return the words of a text, in lower case."""
    return _WORD.findall(_BLANKS.sub(" ", text.lower()))


@dataclass(frozen=True, slots=True)
class Row:
    """The features of one text that are not zero.

    Attributes
    ----------
    columns, values
        Which, ascending, and what they are.
    known
        How many of the words were seen in training: with none the text says nothing
        that anything was learned of.
    """

    columns: Ints
    values: Floats
    known: int


class Features:
    """Turns texts into numbers; made by `fit`, or from what `arrays` and `terms` gave.

    Parameters
    ----------
    grams
        The n-grams of characters, as numbers (see `_keys`), ascending.
    gram_weights
        Their inverse document frequencies.
    terms
        The words.
    term_weights
        Theirs.
    centre, spread
        Mean and standard deviation of the logarithms of the counts.
    longest
        Characters of a text that are read.

    Notes
    -----
    A row is O(min(characters, longest) · log(n-grams)), whatever the length of the
    text.
    """

    def __init__(
        self,
        *,
        grams: NDArray[np.uint64],
        gram_weights: Floats,
        terms: Sequence[str],
        term_weights: Floats,
        centre: Floats,
        spread: Floats,
        longest: int = LONGEST,
    ) -> None:
        self.grams = grams
        self.gram_weights = gram_weights
        self.terms = tuple(terms)
        self.term_weights = term_weights
        self.centre = centre
        self.spread = spread
        self.longest = longest
        self._place = {term: place for place, term in enumerate(self.terms)}
        first = len(COUNTS)
        self._counts = np.arange(first)
        self._first_gram = first
        self._first_term = first + len(grams)

    @property
    def size(self) -> int:
        """How many features there are."""
        return self._first_term + len(self.terms)

    @classmethod
    def fit(
        cls,
        texts: Sequence[str],
        *,
        longest: int = LONGEST,
        most_grams: int = MOST_GRAMS,
        most_words: int = MOST_WORDS,
    ) -> Features:
        """Learn which characters and words there are.

        Raises
        ------
        TrainingError
            If no text has a word in it.
        """
        from sklearn.feature_extraction.text import TfidfVectorizer  # noqa: PLC0415

        read = [sample(text, longest) for text in texts]
        if not any(_WORD.search(part) for part in read):
            raise TrainingError(
                f"there is nothing to learn from: none of {len(read):,} texts has a "
                f"word in it"
            )
        least = 2 if len(read) > 10 else 1
        common: dict[str, Any] = {"sublinear_tf": True, "dtype": np.float64}
        grams = TfidfVectorizer(
            analyzer="char", ngram_range=(1, GRAMS), min_df=least,
            max_features=most_grams, **common,
        )  # fmt: skip
        terms = TfidfVectorizer(
            token_pattern=WORD, min_df=1, max_features=most_words, **common
        )
        try:
            grams.fit(read)
        except ValueError:  # no n-gram is in two of them
            grams.set_params(min_df=1).fit(read)
        terms.fit(read)
        keys = np.array([_key(gram) for gram in grams.vocabulary_], dtype=np.uint64)
        column = np.array(list(grams.vocabulary_.values()))
        order = np.argsort(keys)
        by_column = sorted(terms.vocabulary_, key=terms.vocabulary_.__getitem__)
        logs = np.log1p(
            np.array([_counts(t, p) for t, p in zip(texts, read, strict=True)])
        )
        spread = logs.std(axis=0)
        return cls(
            grams=keys[order],
            gram_weights=grams.idf_[column[order]],
            terms=by_column,
            term_weights=terms.idf_,
            centre=logs.mean(axis=0),
            spread=np.where(spread > 1e-9, spread, 1.0),
            longest=longest,
        )

    def row(self, text: str) -> Row:
        """Return the features of one text."""
        part = sample(text, self.longest)
        counts = (np.log1p(_counts(text, part)) - self.centre) / self.spread
        np.clip(counts, -BOUND, BOUND, out=counts)
        counts *= COUNT_SCALE
        low = _BLANKS.sub(" ", part.lower())
        grams, gram_values = self._grams(low)
        place = self._place
        found = [place[word] for word in _WORD.findall(low) if word in place]
        times = np.bincount(np.array(found, dtype=np.int64), minlength=len(self.terms))
        terms, term_values = _weighted(times, self.term_weights)
        return Row(
            np.concatenate(
                (self._counts, grams + self._first_gram, terms + self._first_term)
            ),
            np.concatenate((counts, gram_values, term_values)),
            len(found),
        )

    def transform(self, texts: Sequence[str]) -> csr_array:
        """Return the features of many texts, a row each."""
        return stacked([self.row(text) for text in texts], self.size)

    def _grams(self, low: str) -> tuple[Ints, Floats]:
        """Return the n-grams that a text has.

        The text's are sorted and the known ones looked for among them: a known one's
        place counted from the left and from the right differ by how often it is there.
        """
        keys = np.sort(_keys(low))
        times = keys.searchsorted(self.grams, "right") - keys.searchsorted(self.grams)
        return _weighted(times, self.gram_weights)

    def _check(self) -> None:
        """Assert all invariants."""
        assert (np.diff(self.grams.astype(object)) > 0).all()
        assert len(self.grams) == len(self.gram_weights)
        assert len(self.terms) == len(self.term_weights) == len(self._place)
        assert len(self.centre) == len(self.spread) == len(COUNTS)
        assert (self.spread > 0).all()
        for numbers in (
            self.gram_weights, self.term_weights, self.centre, self.spread
        ):  # fmt: skip
            assert np.isfinite(numbers).all()


def stacked(rows: Sequence[Row], size: int) -> csr_array:
    """Return rows as one sparse matrix of `size` columns."""
    from scipy.sparse import csr_array  # noqa: PLC0415 - slow to import

    ends = np.cumsum([0, *(len(row.columns) for row in rows)])
    none = np.array([], dtype=np.int64)
    return csr_array(
        (
            np.concatenate([none.astype(float), *(row.values for row in rows)]),
            np.concatenate([none, *(row.columns for row in rows)]),
            ends,
        ),
        shape=(len(rows), size),
    )


def _weighted(times: Ints, weights: Floats) -> tuple[Ints, Floats]:
    """Return what is there how often as TF-IDF: (1 + log tf) · idf, of length 1."""
    found = times.nonzero()[0]
    values = (1 + np.log(times[found])) * weights[found]
    length = np.sqrt(values @ values)
    return found, values / length if length else values


def _counts(text: str, part: str) -> Floats:
    """Return `COUNTS` of a text, those of a part of it taken for the whole."""
    codes = np.minimum(_codes(part), 128)
    classes = np.bincount(codes, minlength=129) @ _MEMBERSHIP
    words = len(part.split())
    scale = len(text) / len(part) if part else 1.0
    return np.array([len(text), words * scale, *(classes * scale)])


def _codes(text: str) -> NDArray[np.uint32]:
    return np.frombuffer(text.encode("utf-32-le", "surrogatepass"), dtype=np.uint32)


def _keys(text: str) -> NDArray[np.uint64]:
    """Return the numbers of all n-grams of a text.

    A character is its code point plus 1 in 21 bits, so n-grams of different lengths
    differ.
    """
    codes = _codes(text).astype(np.uint64)
    codes += np.uint64(1)
    runs = [codes]
    for length in range(1, GRAMS):
        if len(codes) <= length:
            break
        runs.append((runs[-1][:-1] << _BITS) | codes[length:])
    return np.concatenate(runs)


def _key(gram: str) -> int:
    key = 0
    for character in gram:
        key = key << 21 | (ord(character) + 1)
    return key
