"""Costs learned from agents that have run: a model a class, and what serves others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import exp, isnan, nan
from typing import Any

import numpy as np

from justitia.policy import CostModel
from justitia.predictors.base import Estimate, Prediction, Predictor
from justitia.predictors.kinds import KV, ROOM, Guess, KindModel
from justitia.workloads.agents import AgentSpec

SOURCES = ("class", "typical", "length", "global")
"""Who answered. ``class``: the network of the agent's class. ``typical``: what the
class costs as a rule, since the text says nothing. ``length``: how many tokens the
first prompts have, and may be answered with. ``global``: the network of all classes,
for a class that was never seen. All but the first are fallbacks, and counted."""


class Learned(Predictor):
    """Predicts from an agent's class and text; made by `train`, or by `load`.

    Whatever a class, a text or a model brings, the answer is a finite positive number
    between the bounds of the class (see `KindModel`), in the time that one text takes.

    Parameters
    ----------
    kinds
        The model of each class.
    anyone
        That of all classes together.
    seen
        `fingerprint` of each group that it was trained on: who judges the model must
        not judge it by those.
    about
        What else the directory says of it.

    Attributes
    ----------
    counts
        Answers by source; ``"clamped"``, those that were cut to the bounds;
        ``"refused"``, numbers that were none. It has no more keys than these, whatever
        classes are asked for.

    Notes
    -----
    Complexity: see `Features`; O(1) in the length of a text beyond `LONGEST`
    characters. Only answers to other cost models than KV token-time take memory: one
    shape for each that was asked for.
    """

    name = "learned"

    def __init__(
        self,
        kinds: Mapping[str, KindModel],
        anyone: KindModel,
        *,
        seen: frozenset[str] = frozenset(),
        about: Mapping[str, Any] | None = None,
    ) -> None:
        self.models = dict(kinds)
        self.anyone = anyone
        self.seen = seen
        self.about: dict[str, Any] = dict(about or {})
        self.counts: Counter[str] = Counter()

    @property
    def kinds(self) -> tuple[str, ...]:
        """The classes that it has models of."""
        return tuple(self.models)

    def predict(self, agent: AgentSpec, model: CostModel) -> Prediction:
        """Return the cost of an agent under `model`, and how it is spread.

        What it looks at: class and text; where there is no text that says something,
        the prompts of the inferences that are ready at the arrival; and how many
        inferences each stage has, to divide the cost among stages.
        """
        depths = agent.depths()
        estimate = self.estimate_of(agent, depths)
        own = self.models.get(agent.kind, self.anyone)
        view = own.under(model)
        cost = view.cost(estimate.cost)
        factor = own.decode_factor(estimate.cost)
        return Prediction(
            cost,
            view.shape.stage_costs(cost, depths),
            tuple(
                _at_most(view.shape.decode_tokens(depth, factor), one.max_tokens)
                for depth, one in zip(depths, agent.inferences, strict=True)
            ),
            high=max(cost, view.cost(estimate.high)),
            source=estimate.source,
        )

    def estimate_of(
        self, agent: AgentSpec, depths: Sequence[int] | None = None
    ) -> Estimate:
        """Return what an agent costs, as `predict` does, in KV token-steps.

        Its `AgentSpec.depths` may be given where they are known already.
        """
        found = agent.depths() if depths is None else depths
        ready = [
            one
            for depth, one in zip(found, agent.inferences, strict=True)
            if depth == 0
        ]
        prompt = sum(i.prompt_tokens for i in ready) // len(ready) if ready else None
        limits = [i.max_tokens for i in ready if i.max_tokens is not None]
        return self.estimate(
            agent.kind,
            agent.text,
            prompt_tokens=prompt,
            max_tokens=max(limits) if limits and len(limits) == len(ready) else None,
        )

    def estimate(
        self,
        kind: str,
        text: str,
        *,
        prompt_tokens: int | None = None,
        max_tokens: int | None = None,
    ) -> Estimate:
        """Return what an agent of a class with this text costs, in KV token-steps.

        Parameters
        ----------
        prompt_tokens, max_tokens
            Of the inferences that are ready when it arrives (the mean, and the most),
            where they are known; asked only when the text says nothing.
        """
        own = self.models.get(kind, self.anyone)
        guess = None if own.text is None else own.text.guess(text)
        return self._estimate(own, guess, text, prompt_tokens, max_tokens)

    def estimates(self, kinds: Sequence[str], texts: Sequence[str]) -> list[Estimate]:
        """Return what many agents cost, as `estimate` does, in less time each."""
        guesses: list[Guess | None] = [None] * len(texts)
        owns = [self.models.get(kind, self.anyone) for kind in kinds]
        places: dict[int, list[int]] = {}
        for place, own in enumerate(owns):
            places.setdefault(id(own), []).append(place)
        for mine in places.values():
            network = owns[mine[0]].text
            if network is not None:
                found = network.guesses([texts[place] for place in mine])
                for place, guess in zip(mine, found, strict=True):
                    guesses[place] = guess
        return [
            self._estimate(own, guess, text, None, None)
            for own, guess, text in zip(owns, guesses, texts, strict=True)
        ]

    def tokens(
        self, kind: str, prompt_tokens: int, longest: int, *, depth: int = 0
    ) -> int:
        """Return what one inference will produce: at least 1, at most `longest`."""
        own = self.models.get(kind, self.anyone)
        shape = own.under(KV).shape
        return _at_most(shape.decode_tokens(depth), longest)

    def _estimate(
        self,
        own: KindModel,
        guess: Guess | None,
        text: str,
        prompt_tokens: int | None,
        max_tokens: int | None,
    ) -> Estimate:
        known = own is not self.anyone
        source = "class" if known else "global"
        log, high = (None, None) if guess is None else _numbers(guess)
        if guess is not None and log is None:
            self.counts["refused"] += 1
        if log is None:
            lengths = own.lengths
            if known and prompt_tokens is None and max_tokens is None:
                source, guess = "typical", lengths.typical
            else:
                guess = lengths.guess(prompt_tokens, max_tokens, text)
                source = "length"
            log, high = guess.log, guess.high
        self.counts[source] += 1
        value = min(max(log, own.floor), own.cap)
        if value != log:
            self.counts["clamped"] += 1
        most = own.cap + ROOM
        high = most if high is None else min(max(high, value), most)
        return Estimate(exp(value), exp(high), source)

    def _check(self) -> None:
        """Assert all invariants."""
        allowed = {*SOURCES, "clamped", "refused"}
        assert self.counts.keys() <= allowed
        for own in (self.anyone, *self.models.values()):
            own._check()


def _numbers(guess: Guess) -> tuple[float | None, float | None]:
    """Return what a model said as floats, None for what is no number.

    It may be whatever a model makes: a numpy scalar, an array of one element.
    """
    found: list[float | None] = []
    for value in (guess.log, guess.high):
        try:
            number = float(np.asarray(value).item())
        except (TypeError, ValueError):
            number = nan
        found.append(None if isnan(number) else number)
    return found[0], found[1]


def _at_most(count: int, limit: int | None) -> int:
    return count if limit is None else min(count, limit)
