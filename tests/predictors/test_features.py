"""What is read of a text, against scikit-learn's own reading."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.predictors import extra  # noqa: F401 - skips where scikit-learn is not

# After it: these load scikit-learn.
import numpy as np  # isort: skip
from sklearn.feature_extraction.text import TfidfVectorizer  # isort: skip

from justitia.predictors.errors import TrainingError  # isort: skip
from justitia.predictors.features import (  # isort: skip
    BOUND,
    COUNT_SCALE,
    COUNTS,
    GRAMS,
    WORD,
    Features,
    sample,
)

TEXTS = (
    "Write a summary of the following text.",
    "The quick brown fox, of the following:  two  blanks\n\nand lines?",
    "O型血的人比A型或B型血的人更容易患胃溃疡",
    "İstanbul'da ÉTÉ ẞ 12 34; f(x) = [1, 2]",
    "if x == 1: return {'a': 2} # of the",
)
FEATURES = Features.fit(TEXTS)
_SETTINGS = {"sublinear_tf": True, "min_df": 1, "max_features": 1000}
CHARACTERS = TfidfVectorizer(analyzer="char", ngram_range=(1, GRAMS), **_SETTINGS)
WORDS = TfidfVectorizer(token_pattern=WORD, **_SETTINGS)
CHARACTERS.fit(TEXTS)
WORDS.fit(TEXTS)


def by_gram(text: str) -> dict[str, float]:
    row = CHARACTERS.transform([text])
    names = CHARACTERS.get_feature_names_out()
    return {names[k]: v for k, v in zip(row.indices, row.data, strict=True)}


def spelled(key: int) -> str:
    letters = ""
    while key:
        letters = chr((key & (2**21 - 1)) - 1) + letters
        key >>= 21
    return letters


@given(st.text(max_size=200) | st.lists(st.sampled_from(TEXTS)).map(" ".join))
def test_it_reads_what_scikit_learn_reads(text: str) -> None:
    row = FEATURES.row(text)
    dense = dict(zip(row.columns.tolist(), row.values.tolist(), strict=True))
    first = len(COUNTS)
    grams = {
        spelled(int(key)): dense[first + place]
        for place, key in enumerate(FEATURES.grams)
        if first + place in dense
    }
    assert grams == pytest.approx(by_gram(sample(text)), rel=1e-12)
    words = WORDS.transform([sample(text)])
    names = WORDS.get_feature_names_out()
    expected = {names[k]: v for k, v in zip(words.indices, words.data, strict=True)}
    start = first + len(FEATURES.grams)
    mine = {
        term: dense[start + place]
        for place, term in enumerate(FEATURES.terms)
        if start + place in dense
    }
    assert mine == pytest.approx(expected, rel=1e-12)
    assert (row.known > 0) == bool(mine)


@given(st.lists(st.text(max_size=50), max_size=5))
def test_many_texts_are_rows_of_one(texts: list[str]) -> None:
    together = FEATURES.transform(texts)
    assert together.shape == (len(texts), FEATURES.size)
    for line, text in zip(together.toarray(), texts, strict=True):
        row = FEATURES.row(text)
        alone = np.zeros(FEATURES.size)
        alone[row.columns] = row.values
        assert (line == alone).all()
        assert np.isfinite(line).all()
        assert (abs(line[: len(COUNTS)]) <= BOUND * COUNT_SCALE).all()
    FEATURES._check()


def test_lone_surrogate_is_a_character() -> None:
    assert np.isfinite(FEATURES.row("a \ud800 b of").values).all()


@given(st.text(max_size=50), st.integers(1, 60))
def test_a_sample_is_the_beginning_and_the_end(text: str, most: int) -> None:
    part = sample(text, most)
    assert len(part) == min(most, len(text))
    half = (most + 1) // 2
    if len(text) > most:
        assert part == text[:half] + text[len(text) - most // 2 :]


def test_length_counts_beyond_what_is_read() -> None:
    short, long = "one two three. " * 1000, "one two three. " * 4000
    features = Features.fit([short, long, "one two"], longest=1000)
    columns = [COUNTS.index(name) for name in ("characters", "words", "sentences")]
    rows = features.transform([short, long]).toarray()
    assert (rows[1, columns] > rows[0, columns]).all()
    others = slice(len(COUNTS), None)
    assert rows[0, others] == pytest.approx(rows[1, others])


@pytest.mark.parametrize("texts", [[], [""] * 100, [" ", "1 2", "?!"]])
def test_b32_texts_without_a_word_teach_nothing(texts: list[str]) -> None:
    with pytest.raises(TrainingError, match="nothing to learn from"):
        Features.fit(texts)


@pytest.mark.parametrize(
    ("text", "words"),
    [("1 2", []), ("To be", ["to", "be"]), ("血型 ab", ["血", "型", "ab"]), ("", [])],
)
def test_words(text: str, words: list[str]) -> None:
    from justitia.predictors.features import words as found

    assert found(text) == words
