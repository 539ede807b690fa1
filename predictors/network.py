"""A multilayer perceptron that has been trained, in numpy.

What it answers needs no torch: an engine's scheduler loads a model in a few
milliseconds and asks it in a fraction of one. `justitia.predictors.mlp` trains it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from justitia.predictors.features import Floats, Row

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Layer = tuple[Floats, Floats]
"""Weights (members, inputs, outputs) and biases (members, outputs)."""


class Network:
    """Several perceptrons side by side, whose answers are averaged.

    Parameters
    ----------
    layers
        From the input to one output. Between them a negative number becomes 0 (ReLU).
    mean, spread
        What an output is multiplied by the second of, and has the first added to.
    linear
        A linear answer to the same input beside each member's layers: weights and, in
        the last column, the constant, (members, inputs + 1).
    share
        How much of a member's answer is the linear one, from 0 to 1.

    Notes
    -----
    Complexity: O(features that are not zero · width of the first layer · members) for a
    row, plus the further layers.
    """

    def __init__(
        self,
        layers: Sequence[Layer],
        mean: float,
        spread: float,
        linear: Floats,
        share: float,
    ) -> None:
        self.layers = tuple(layers)
        self.mean = mean
        self.spread = spread
        self.linear = linear
        self.share = share
        weights, biases = self.layers[0]
        members, inputs, width = weights.shape
        wide = members * width
        # All that the input is multiplied by, side by side: one product serves all.
        self._first = np.empty((inputs, wide + members))
        self._first[:, :wide] = weights.transpose(1, 0, 2).reshape(inputs, wide)
        self._first[:, wide:] = linear[:, :-1].T
        self._first_bias = np.concatenate((biases.reshape(wide), linear[:, -1]))

    @property
    def members(self) -> int:
        """How many perceptrons there are."""
        return len(self.linear)

    @property
    def inputs(self) -> int:
        """How many features a row has."""
        return len(self._first)

    def value(self, row: Row) -> float:
        """Return the answer to one row."""
        first = row.values @ self._first[row.columns]
        return float(self._rest(first[None]).mean())

    def values(self, rows: csr_array | Floats) -> Floats:
        """Return the answers to a matrix, a row each."""
        answers: Floats = self.each(rows).mean(axis=0)
        return answers

    def each(self, rows: csr_array | Floats) -> Floats:
        """Return the answers of each member, (members, rows)."""
        return self._rest(np.asarray(rows @ self._first))

    def _rest(self, first: Floats) -> Floats:
        first += self._first_bias
        members = self.members
        hidden = first[:, :-members].reshape(len(first), members, -1)
        hidden = hidden.transpose(1, 0, 2)
        for weights, biases in self.layers[1:]:
            hidden = np.maximum(hidden, 0) @ weights + biases[:, None, :]
        deep = hidden[:, :, 0]
        answers = deep + self.share * (first[:, -members:].T - deep)
        return answers * self.spread + self.mean

    def _check(self) -> None:
        """Assert all invariants."""
        assert len(self.layers) >= 2
        before = self.inputs
        for weights, biases in self.layers:
            assert weights.shape == (self.members, before, biases.shape[1])
            assert biases.shape[0] == self.members
            assert np.isfinite(weights).all()
            assert np.isfinite(biases).all()
            before = biases.shape[1]
        assert before == 1
        assert self.linear.shape == (self.members, self.inputs + 1)
        assert np.isfinite(self.linear).all()
        assert np.isfinite(self.mean)
        assert 0 < self.spread < np.inf
        assert 0 <= self.share <= 1
