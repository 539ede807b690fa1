"""A multilayer perceptron for few samples and many features, trained in torch.

Four layers, the first as wide as the input asks for. A hundred samples of two thousand
features would be learned by heart: so several perceptrons are trained at once, each on
all folds but one, each stops where its own fold is predicted best, and their mean
answers. What each said of its fold is what the training gives beside the model: errors
on samples that were not learned from.

Source: section 4.2 of the Justitia paper (a 4-layer MLP for each class on TF-IDF).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from justitia.predictors.errors import TrainingError
from justitia.predictors.features import Floats
from justitia.predictors.network import Network

if TYPE_CHECKING:
    from numpy.random import RandomState

NARROWEST, WIDEST = 16, 32
FEATURES_A_UNIT = 64
"""The first layer has a unit for so many features, between the two widths."""


def widths(features: int) -> tuple[int, int, int]:
    """Return the widths of the hidden layers for an input of so many features.

    >>> widths(2012), widths(4)
    ((31, 15, 7), (16, 8, 4))
    """
    first = min(max(features // FEATURES_A_UNIT, NARROWEST), WIDEST)
    return first, first // 2, first // 4


class MLP(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Regression by the mean of perceptrons that were each trained on most of the data.

    Parameters
    ----------
    members
        Perceptrons, and folds: each is trained on all folds but its own. Groups (see
        `fit`) are never parted; with fewer groups there are fewer members.
    shortcut
        Weight from 0 to 1 of a ridge regression of the same features beside each
        perceptron, of the same folds.
    ridge
        The L2 penalty of that.
    learning_rate, weight_decay
        Of AdamW. The decay is the L2 penalty of the weights, not of the biases.
    dropout
        The share of features that are left out of a step of training.
    epochs, patience
        Passes over the data at most; training stops when no member has got better on
        its fold for so many.
    random_state
        Seeds folds, initial weights and dropout. The same seed gives the same model on
        the same machine.

    Attributes
    ----------
    network_ : Network
        What predicts, in numpy.
    out_of_fold_ : ndarray of shape (n_samples,)
        The prediction of each sample by the member that was not trained on it. It chose
        when to stop by those, so they are a little better than new ones would be.
    epochs_ : ndarray of shape (members,)
        The epoch that each member was taken from.
    n_features_in_ : int
    """

    def __init__(
        self,
        *,
        members: int = 5,
        shortcut: float = 0.5,
        ridge: float = 1.0,
        learning_rate: float = 3e-3,
        weight_decay: float = 1e-2,
        dropout: float = 0.2,
        epochs: int = 300,
        patience: int = 40,
        random_state: int | RandomState | None = None,
    ) -> None:
        self.members = members
        self.shortcut = shortcut
        self.ridge = ridge
        self.learning_rate = learning_rate
        self.weight_decay = weight_decay
        self.dropout = dropout
        self.epochs = epochs
        self.patience = patience
        self.random_state = random_state

    def fit(self, X: Any, y: Any, groups: Sequence[object] | None = None) -> MLP:  # noqa: ANN401
        """Train on samples X, a row each and dense or sparse, and their values y.

        Parameters
        ----------
        groups
            What each sample is made from; samples of one group lie in one fold.

        Raises
        ------
        ValueError
            If X, y or a parameter cannot be used.
        TrainingError
            If training diverged: no member ever predicted its fold with a number.
        """
        X, y = validate_data(
            self, X, y, accept_sparse="csr", y_numeric=True, dtype=np.float64
        )
        self._validate()
        if hasattr(X, "toarray"):
            X = X.toarray()
        rng = check_random_state(self.random_state)
        folds = _folds(len(y), self.members, groups, rng)
        mean, spread = float(y.mean()), float(y.std())
        if not spread > 1e-12 * max(1.0, abs(mean)):
            spread = 1.0
        scaled = (y - mean) / spread
        fitted = _Training(self, X, scaled, folds, int(rng.randint(2**31 - 1)))
        with _one_thread():
            fitted.run()
        weights = fitted.shortcut()
        self.network_ = Network(fitted.layers(), mean, spread, weights, self.shortcut)
        each = self.network_.each(X)
        own = np.minimum(folds, self.network_.members - 1)
        self.out_of_fold_ = each[own, np.arange(len(y))]
        self.epochs_ = fitted.best_epochs
        return self

    def predict(self, X: Any) -> Floats:  # noqa: ANN401
        """Return the values of samples, a row each."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return self.network_.values(X)

    def __sklearn_tags__(self) -> Any:  # noqa: ANN401
        """Return what scikit-learn's checks are to expect."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _validate(self) -> None:
        for name, least in (("members", 1), ("epochs", 1), ("patience", 1)):
            value = getattr(self, name)
            if not isinstance(value, int | np.integer) or value < least:
                raise ValueError(f"{name} must be an int from {least}, not {value!r}")
        allowed: tuple[tuple[str, Callable[[float], bool], str], ...] = (
            ("shortcut", lambda v: 0 <= v <= 1, "from 0 to 1"),
            ("ridge", lambda v: 0 < v < np.inf, "positive"),
            ("learning_rate", lambda v: 0 < v < np.inf, "positive"),
            ("weight_decay", lambda v: 0 <= v < np.inf, "not negative"),
            ("dropout", lambda v: 0 <= v < 1, "from 0 to below 1"),
        )
        for name, holds, words in allowed:
            value = getattr(self, name)
            if not holds(value):
                raise ValueError(f"{name} must be a number {words}, not {value!r}")


def _folds(
    samples: int, most: int, groups: Sequence[object] | None, rng: RandomState
) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Return the fold of each sample; one fold where there are not two groups."""
    names = list(range(samples)) if groups is None else list(groups)
    if len(names) != samples:
        raise ValueError(f"groups must be {samples}, one a sample, not {len(names)}")
    order = {name: place for place, name in enumerate(dict.fromkeys(names))}
    count = max(1, min(most, len(order)))
    place = rng.permutation(len(order)) % count
    return np.array([place[order[name]] for name in names], dtype=np.int64)


class _Training:
    """One training: all members at once, since a step is mostly overhead."""

    def __init__(
        self,
        settings: MLP,
        rows: Floats,
        values: Floats,
        folds: np.ndarray[Any, np.dtype[np.int64]],
        seed: int,
    ) -> None:
        self._settings = settings
        self._folds = folds
        self._members = int(folds.max()) + 1
        self._draw = torch.Generator().manual_seed(seed)
        self._rows64, self._values64 = rows, values
        self._rows = torch.tensor(rows, dtype=torch.float32)
        self._values = torch.tensor(values, dtype=torch.float32)
        own = folds[None] == np.arange(self._members)[:, None]
        held = own if self._members > 1 else np.ones_like(own)
        taught = ~own if self._members > 1 else own
        self._held, self._taught = _shares(held), _shares(taught)
        self._trained_on = taught
        sizes = [rows.shape[1], *widths(rows.shape[1]), 1]
        self._layers = [
            self._layer(*pair, last=pair[1] == 1 and k == len(sizes) - 2)
            for k, pair in enumerate(pairwise(sizes))
        ]
        self._best = [
            (weights.detach().clone(), biases.detach().clone())
            for weights, biases in self._layers
        ]
        self._best_error = torch.full((self._members,), torch.inf)
        self.best_epochs = np.zeros(self._members, dtype=np.int64)

    def _layer(
        self, inputs: int, outputs: int, *, last: bool
    ) -> tuple[torch.Tensor, torch.Tensor]:
        weights = torch.randn(self._members, inputs, outputs, generator=self._draw)
        weights *= (2 / inputs) ** 0.5 * (0.1 if last else 1.0)
        biases = torch.zeros(self._members, 1, outputs)
        return weights.requires_grad_(), biases.requires_grad_()

    def run(self) -> None:
        """Train until nothing gets better.

        Raises
        ------
        TrainingError
            If a member never predicted its fold with a number.
        """
        settings = self._settings
        parts: list[dict[str, Any]] = [
            {"params": [w for w, _ in self._layers]},
            {"params": [b for _, b in self._layers], "weight_decay": 0.0},
        ]
        optimiser = torch.optim.AdamW(
            parts,
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
        )
        for epoch in range(settings.epochs):
            optimiser.zero_grad()
            errors = (self._forward(self._dropped()) - self._values) ** 2
            (errors * self._taught).sum().backward()
            optimiser.step()
            self._keep(epoch)
            if epoch - self.best_epochs.max() >= settings.patience:
                break
        if not torch.isfinite(self._best_error).all():
            raise TrainingError(
                f"training diverged: an error was no finite number within "
                f"{settings.epochs} epochs at learning_rate {settings.learning_rate:g}"
            )

    def layers(self) -> list[tuple[Floats, Floats]]:
        """Return the layers of the best epochs."""
        return [
            (weights.double().numpy(), biases[:, 0].double().numpy())
            for weights, biases in self._best
        ]

    def shortcut(self) -> Floats:
        """Return each member's ridge: weights and, last, the constant.

        In the dual form, which is small where samples are fewer than features.
        """
        members = []
        for taught in self._trained_on:
            rows, values = self._rows64[taught], self._values64[taught]
            centre, mean = rows.mean(axis=0), values.mean()
            away = rows - centre
            kernel = away @ away.T
            kernel.flat[:: len(kernel) + 1] += self._settings.ridge
            weights = away.T @ np.linalg.solve(kernel, values - mean)
            members.append(np.append(weights, mean - centre @ weights))
        return np.array(members)

    def _forward(self, rows: torch.Tensor) -> torch.Tensor:
        (weights, biases), *others = self._layers
        hidden = rows @ weights + biases
        for weights, biases in others:
            hidden = torch.relu(hidden) @ weights + biases
        return hidden[..., 0]

    def _dropped(self) -> torch.Tensor:
        left_out = self._settings.dropout
        if not left_out:
            return self._rows
        shape = (self._members, 1, self._rows.shape[1])
        kept = torch.rand(shape, generator=self._draw) >= left_out
        return self._rows * kept / (1 - left_out)

    @torch.no_grad()  # type: ignore[untyped-decorator]
    def _keep(self, epoch: int) -> None:
        """Keep the weights of members that have got better on their folds."""
        errors = (self._forward(self._rows) - self._values) ** 2
        error = (errors * self._held).sum(dim=1)
        better = error < self._best_error - 1e-4
        if not better.any():
            return
        self._best_error = torch.where(better, error, self._best_error)
        self.best_epochs[better.numpy()] = epoch
        for (kept, kept_biases), (weights, biases) in zip(
            self._best, self._layers, strict=True
        ):
            kept[better] = weights.detach()[better]
            kept_biases[better] = biases.detach()[better]


def _shares(chosen: np.ndarray[Any, np.dtype[np.bool_]]) -> torch.Tensor:
    """Return weights that make each row of a mask a mean over what is chosen."""
    counts = np.maximum(chosen.sum(axis=1, keepdims=True), 1)
    return torch.tensor(chosen / counts, dtype=torch.float32)


@contextmanager
def _one_thread() -> Iterator[None]:
    """Let torch use one thread, so that a model does not depend on the machine's."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
