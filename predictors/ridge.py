"""A ridge regression of the log cost, a class each: what any model has to beat.

This module loads scikit-learn.
"""

from collections import defaultdict
from collections.abc import Sequence
from math import exp, log, log1p

import numpy as np
from scipy.sparse import csr_array, hstack
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge

from justitia.policy.exact import LARGEST, SMALLEST

FEATURES = 1000
"""The most words that are counted."""
STRENGTH = 1.0


class Ridges:
    """One ridge a class on TF-IDF of words and the log of the text's length.

    A class whose training texts are all empty, and a class that was not there, get a
    geometric mean: of the class, or of all.

    Parameters
    ----------
    strength
        Of the penalty.
    """

    def __init__(self, strength: float = STRENGTH) -> None:
        self.strength = strength

    def fit(
        self, kinds: Sequence[str], texts: Sequence[str], costs: Sequence[float]
    ) -> "Ridges":
        """Learn from texts and positive costs; there is at least one."""
        self.overall_ = float(np.mean([log(cost) for cost in costs]))
        places: dict[str, list[int]] = defaultdict(list)
        for place, kind in enumerate(kinds):
            places[kind].append(place)
        self.models_ = {
            kind: _OneRidge(
                [texts[k] for k in some], [log(costs[k]) for k in some], self.strength
            )
            for kind, some in places.items()
        }
        return self

    def predict(self, kinds: Sequence[str], texts: Sequence[str]) -> list[float]:
        """Return what agents of these classes with these texts are thought to cost."""
        return [self._cost(kind, text) for kind, text in zip(kinds, texts, strict=True)]

    def _cost(self, kind: str, text: str) -> float:
        model = self.models_.get(kind)
        guess = self.overall_ if model is None else model.log_cost(text)
        return exp(min(max(guess, log(SMALLEST)), log(LARGEST)))


class _OneRidge:
    def __init__(
        self, texts: Sequence[str], log_costs: Sequence[float], strength: float
    ) -> None:
        self._mean = float(np.mean(log_costs))
        self._words: TfidfVectorizer | None = TfidfVectorizer(
            max_features=FEATURES, sublinear_tf=True
        )
        lengths = [log1p(len(text)) for text in texts]
        self._centre, self._spread = float(np.mean(lengths)), float(np.std(lengths))
        try:
            counted = self._words.fit_transform(texts)
        except ValueError:  # no text has a word in it
            self._words = None
            return
        self._ridge = Ridge(strength).fit(
            hstack([counted, self._lengths(texts)]), np.array(log_costs) - self._mean
        )

    def log_cost(self, text: str) -> float:
        if self._words is None:
            return self._mean
        row = hstack([self._words.transform([text]), self._lengths([text])])
        return self._mean + float(self._ridge.predict(row)[0])

    def _lengths(self, texts: Sequence[str]) -> csr_array:
        spread = self._spread or 1.0
        column = [[(log1p(len(text)) - self._centre) / spread] for text in texts]
        return csr_array(np.array(column))
