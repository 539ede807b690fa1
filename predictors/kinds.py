"""What is known of one class of agents: of their texts, their lengths, their calls."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import exp, inf, isfinite, log
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from justitia.policy import CostModel, KVTokenTime
from justitia.policy.exact import LARGEST, SMALLEST, Number, tokens
from justitia.predictors.features import Features, Ints, sample, stacked, words
from justitia.predictors.network import Network
from justitia.predictors.shape import Shape
from justitia.workloads.agents import InferenceSpec

KV = KVTokenTime()
TOKENS_A_WORD = 4 / 3
"""Tokens of a word of English, where only the text is known."""
ROOM = log(10)
"""How far outside the costs that were seen a prediction may lie, and how much further
what nine of ten agents do not exceed; natural logarithm."""
_STEEPEST = 8.0
"""The largest factor, either way, by which an inference's tokens follow its agent's
cost."""


@dataclass(frozen=True, slots=True)
class Guess:
    """A predicted cost and what nine of ten agents do not exceed, as logarithms."""

    log: float
    high: float


class TextModel(Protocol):
    """Whatever makes a cost of a text."""

    def guess(self, text: str) -> Guess | None:
        """Return the cost, None if the text says nothing."""

    def guesses(self, texts: Sequence[str]) -> list[Guess | None]:
        """Return the costs of many texts, each as `guess` does."""


@dataclass(frozen=True, slots=True)
class TextNetwork:
    """Features of the text, and a network that makes the logarithm of a cost of them.

    Parameters
    ----------
    shift
        Added to what the network says. It predicts a mean of logarithms; the mean
        relative error is least a little below (see `justitia.predictors.intervals`).
    margin
        Added to what the network says, for nine of ten agents.
    """

    features: Features
    network: Network
    shift: float
    margin: float

    def guess(self, text: str) -> Guess | None:
        """Return the cost of a text, None if no word of it was seen in training."""
        if not text:
            return None
        row = self.features.row(text)
        if not row.known:
            return None
        return self._guess(self.network.value(row))

    def guesses(self, texts: Sequence[str]) -> list[Guess | None]:
        """Return the costs of many texts.

        They may differ from those of `guess` in the last digits, since sums are made in
        another order.
        """
        rows = [self.features.row(text) for text in texts]
        values = self.network.values(stacked(rows, self.features.size))
        return [
            self._guess(float(value)) if row.known else None
            for row, value in zip(rows, values, strict=True)
        ]

    def _guess(self, value: float) -> Guess:
        return Guess(value + self.shift, value + self.margin)

    def _check(self) -> None:
        """Assert all invariants."""
        self.features._check()
        self.network._check()
        assert self.network.inputs == self.features.size
        assert isfinite(self.shift)
        assert isfinite(self.margin)


@dataclass(frozen=True, slots=True)
class Lengths:
    """What a class's agents cost by the length of their first prompts alone.

    Parameters
    ----------
    typical
        The cost, where not even that is known.
    decode
        What an inference of theirs produces that is ready when they arrive: the median.
    slope, constant
        Of the logarithm of the agent's cost over that of such an inference's.
    margin
        Added for nine of ten agents.
    beyond
        The logarithm of what an agent costs over the work of what is ready when it
        arrives (see `work`), at least 0: more of it is to come.
    beyond_margin
        Added to that for nine of ten agents.
    """

    typical: Guess
    decode: int
    slope: float
    constant: float
    margin: float
    beyond: float = 0.0
    beyond_margin: float = 0.0

    def guess(
        self, prompt_tokens: int | None, max_tokens: int | None, text: str
    ) -> Guess:
        """Return the cost of an agent whose first inferences have these lengths.

        Raises
        ------
        PolicyError
            If a length is no count of tokens.
        """
        if prompt_tokens is None:
            part = sample(text)
            scale = len(text) / len(part) if part else 0.0
            prompt_tokens = round(len(words(part)) * scale * TOKENS_A_WORD)
        value = self.constant + self.slope * log(self.first(prompt_tokens, max_tokens))
        return Guess(value, value + self.margin)

    def first(self, prompt_tokens: int, max_tokens: int | None) -> Number:
        """Return the work of one inference that is ready when its agent arrives.

        Raises
        ------
        PolicyError
            If a length is no count of tokens.
        """
        decode = self.decode
        if max_tokens is not None:
            decode = min(decode, tokens(max_tokens, "max_tokens"))
        return KV(tokens(prompt_tokens, "prompt_tokens"), decode)

    def work(self, ready: Iterable[InferenceSpec]) -> Number:
        """Return the work of all inferences that are ready when their agent arrives."""
        return sum(self.first(one.prompt_tokens, one.max_tokens) for one in ready)

    def of_ready(self, work: Number) -> Guess:
        """Return the cost of an agent of which so much work is ready at its arrival."""
        value = log(work) + self.beyond
        return Guess(value, value + self.beyond_margin)

    def _check(self) -> None:
        """Assert all invariants."""
        numbers = (self.typical.log, self.slope, self.constant, self.margin)
        assert all(isfinite(number) for number in numbers)
        assert self.typical.high >= self.typical.log
        assert self.decode >= 0
        assert 0 <= self.beyond < inf
        assert 0 <= self.beyond_margin < inf


@dataclass(frozen=True, slots=True)
class View:
    """A class under one cost model.

    Parameters
    ----------
    slope, constant
        Of the logarithm of an agent's cost over that of its KV token-time.
    shape
        How the cost is spread over stages.
    """

    slope: float
    constant: float
    shape: Shape

    def cost(self, kv: float) -> float:
        """Return the cost of an agent whose KV token-time this is."""
        if self.slope == 1 and not self.constant:
            return kv
        most = log(LARGEST)
        value = self.constant + self.slope * log(kv)
        return min(max(exp(min(max(value, -most), most)), SMALLEST), LARGEST)


@dataclass(slots=True)
class KindModel:
    """A class of agents.

    Parameters
    ----------
    agents
        How many it was trained on.
    text
        None where no text says anything.
    floor, cap
        Logarithms between which every prediction lies.
    calls
        All calls of the agents that it was trained on: agent, depth, prompt tokens,
        decode tokens; what a class costs under a model is made of them when it is first
        asked for.
    validation
        Errors on samples that were not learned from, by name.
    """

    agents: int
    text: TextModel | None
    lengths: Lengths
    floor: float
    cap: float
    calls: Ints
    validation: dict[str, float] = field(default_factory=dict)
    _views: dict[CostModel, View] = field(default_factory=dict)
    _decode: tuple[float, float] | None = None

    def under(self, model: CostModel) -> View:
        """Return the class under a cost model. O(calls) the first time, O(1) then."""
        view = self._views.get(model)
        if view is None:
            shape = Shape()
            shape.learn(self.calls[:, 1:].tolist(), model)
            slope, constant = 1.0, 0.0
            if model != KV:
                slope, constant = line(self.costs(KV), self.costs(model))
            view = self._views[model] = View(slope, constant, shape)
        return view

    def costs(self, model: CostModel) -> NDArray[np.float64]:
        """Return the logarithm of each training agent's cost under a model."""
        sums: list[Number] = [0] * self.agents
        for agent, _, prompt, decode in self.calls.tolist():
            sums[agent] += model(prompt, decode)
        return np.array([log(cost) for cost in sums])

    def decode_factor(self, kv: float) -> float:
        """Return how much longer than on average the answers of an agent are.

        As far as they went with the cost in training.
        """
        if self._decode is None:
            totals = np.bincount(self.calls[:, 0], self.calls[:, 3], self.agents)
            counts = np.bincount(self.calls[:, 0], minlength=self.agents)
            lengths = np.log(np.maximum(totals / np.maximum(counts, 1), 0.5))
            costs = self.costs(KV)
            slope, _ = line(costs, lengths, flat=True)
            self._decode = min(max(slope, 0.0), 1.0), float(costs.mean())
        slope, mean = self._decode
        most = log(_STEEPEST)
        return exp(min(max(slope * (log(kv) - mean), -most), most))

    def _check(self) -> None:
        """Assert all invariants."""
        assert self.agents > 0
        assert isfinite(self.floor)
        assert self.floor < self.cap < log(LARGEST)
        self.lengths._check()
        assert self.calls.ndim == 2
        assert self.calls.shape[1] == 4
        assert set(self.calls[:, 0].tolist()) == set(range(self.agents))
        assert (self.calls >= 0).all()
        for view in self._views.values():
            view.shape._check()
        if isinstance(self.text, TextNetwork):
            self.text._check()


def line(
    x: NDArray[np.float64], y: NDArray[np.float64], *, flat: bool = False
) -> tuple[float, float]:
    """Return slope and constant of the least squares line.

    Where all x are the same the slope is 1; or 0, if that is to be `flat`.
    """
    away = x - x.mean()
    square = float(away @ away)
    slope = 0.0 if flat else 1.0
    if square > 1e-9:
        slope = float(away @ (y - y.mean())) / square
    return slope, float(y.mean() - slope * x.mean())


def bounds(logs: NDArray[np.float64]) -> tuple[float, float]:
    """Return floor and cap for a class whose costs have these logarithms."""
    return float(logs.min()) - ROOM, float(logs.max()) + ROOM
