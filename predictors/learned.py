"""Costs learned from agents that have run: a model a class, and what serves others."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, isnan, nan
from typing import Any

import numpy as np

from justitia.policy import CostModel
from justitia.policy.exact import Number
from justitia.predictors.base import Estimate, Prediction, Predictor
from justitia.predictors.kinds import KV, ROOM, Guess, KindModel
from justitia.workloads.agents import AgentSpec

SOURCES = ("class", "typical", "length", "global", "ready")
"""Who answered. ``class``: the network of the agent's class. ``typical``: what the
class costs as a rule, since the text says nothing. ``length``: how many tokens the
first prompts have, and may be answered with. For a class that was never seen:
``global``, the network of all classes, or ``ready``, what the inferences cost that are
ready when it arrives, which is all that is sure of it (see `Lengths.work`). All but the
first are fallbacks, and counted."""


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

    def predict(
        self, agent: AgentSpec, model: CostModel, correction: float = 0.0
    ) -> Prediction:
        """Return the cost of an agent under `model`, and how it is spread.

        What it looks at: class and text; where there is no text that says something, or
        the class was never seen, the prompts of the inferences that are ready at the
        arrival; and how many inferences each stage has, to divide the cost among
        stages.

        Parameters
        ----------
        correction
            Added to the logarithm of the cost, within the bounds (see `Online`).
        """
        depths = agent.depths()
        plain = self.estimate_of(agent, depths)
        own = self.models.get(agent.kind, self.anyone)
        view = own.under(model)
        estimate = _under(own, plain, model, correction)
        # Calls that are there to be seen say nothing of how long their answers are.
        ready = plain.source == "ready"
        factor = 1.0 if ready else own.decode_factor(plain.cost)
        return Prediction(
            estimate.cost,
            view.shape.stage_costs(estimate.cost, depths),
            tuple(
                _at_most(view.shape.decode_tokens(depth, factor), one.max_tokens)
                for depth, one in zip(depths, agent.inferences, strict=True)
            ),
            high=estimate.high,
            source=estimate.source,
        )

    def estimate_of(
        self, agent: AgentSpec, depths: Sequence[int] | None = None
    ) -> Estimate:
        """Return what an agent costs, as `predict` does, in KV token-steps.

        Its `AgentSpec.depths` may be given where they are known already.
        """
        return self._counted(self._of(agent, depths))

    def uncounted(
        self, agent: AgentSpec, model: CostModel = KV, correction: float = 0.0
    ) -> Estimate:
        """Return what `predict` says of an agent's cost; `counts` stay as they are."""
        own = self.models.get(agent.kind, self.anyone)
        return _under(own, self._of(agent, None).estimate, model, correction)

    def notes(self) -> tuple[str, ...]:
        """Return how many answers were fallbacks, of which kind, or out of bounds."""
        found = {source: self.counts[source] for source in SOURCES}
        asked, fell = sum(found.values()), sum(found.values()) - found["class"]
        told = []
        if fell:
            parts = (f"{n:,} {s}" for s, n in found.items() if n and s != "class")
            told.append(f"{fell:,} of {asked:,} by a fallback: {', '.join(parts)}")
        for mark, what in (
            ("clamped", "cut to the bounds of its class"),
            ("refused", "no number, so lengths answered"),
        ):
            if self.counts[mark]:
                told.append(f"{self.counts[mark]:,} of {asked:,}: {what}")
        return tuple(told)

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
        ready = None
        if prompt_tokens is not None:
            ready = self.anyone.lengths.first(prompt_tokens, max_tokens)
        known = _Known(prompt_tokens, max_tokens, ready)
        return self._counted(self._asked(kind, text, known))

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
            self._counted(self._answer(own, guess, text, _Known()))
            for own, guess, text in zip(owns, guesses, texts, strict=True)
        ]

    def tokens(
        self, kind: str, prompt_tokens: int, longest: int, *, depth: int = 0
    ) -> int:
        """Return what one inference will produce: at least 1, at most `longest`."""
        own = self.models.get(kind, self.anyone)
        shape = own.under(KV).shape
        return _at_most(shape.decode_tokens(depth), longest)

    def _of(self, agent: AgentSpec, depths: Sequence[int] | None) -> _Answer:
        found = agent.depths() if depths is None else depths
        ready = [
            one
            for depth, one in zip(found, agent.inferences, strict=True)
            if depth == 0
        ]
        if not ready:
            return self._asked(agent.kind, agent.text, _Known())
        limits = [i.max_tokens for i in ready if i.max_tokens is not None]
        known = _Known(
            sum(i.prompt_tokens for i in ready) // len(ready),
            max(limits) if len(limits) == len(ready) else None,
            self.anyone.lengths.work(ready),
        )
        return self._asked(agent.kind, agent.text, known)

    def _asked(self, kind: str, text: str, known: _Known) -> _Answer:
        own = self.models.get(kind, self.anyone)
        guess = None if own.text is None else own.text.guess(text)
        return self._answer(own, guess, text, known)

    def _answer(
        self, own: KindModel, guess: Guess | None, text: str, known: _Known
    ) -> _Answer:
        """Return an estimate, and what is to be counted of it."""
        seen = own is not self.anyone
        source, marks = "class" if seen else "global", []
        if not seen and known.ready is not None:
            source, guess = "ready", own.lengths.of_ready(known.ready)
        log, high = (None, None) if guess is None else _numbers(guess)
        if guess is not None and log is None:
            marks.append("refused")
        if log is None:
            lengths = own.lengths
            if seen and known.prompt_tokens is None and known.max_tokens is None:
                source, guess = "typical", lengths.typical
            else:
                guess = lengths.guess(known.prompt_tokens, known.max_tokens, text)
                source = "length"
            log, high = guess.log, guess.high
        low, cap = own.floor, own.cap
        if source == "ready":
            cap = max(cap, log + ROOM)
        value = min(max(log, low), cap)
        if value != log:
            marks.append("clamped")
        high = cap if high is None else max(high, value)
        cost, high = exp(value), exp(min(high, cap + ROOM))
        if source == "ready":  # as the logarithm is rounded
            assert known.ready is not None
            cost = max(cost, float(known.ready))
        return _Answer(Estimate(cost, max(cost, high), source), (source, *marks))

    def _counted(self, answer: _Answer) -> Estimate:
        self.counts.update(answer.marks)
        return answer.estimate

    def _check(self) -> None:
        """Assert all invariants."""
        allowed = {*SOURCES, "clamped", "refused"}
        assert self.counts.keys() <= allowed
        for own in (self.anyone, *self.models.values()):
            own._check()


@dataclass(frozen=True, slots=True)
class _Known:
    """What is known of an agent beside its class and its text.

    Attributes
    ----------
    prompt_tokens, max_tokens
        Of the inferences that are ready when it arrives: the mean, and the most.
    ready
        The work of those.
    """

    prompt_tokens: int | None = None
    max_tokens: int | None = None
    ready: Number | None = None


@dataclass(frozen=True, slots=True)
class _Answer:
    """An estimate, and what is counted of it."""

    estimate: Estimate
    marks: tuple[str, ...]


def _under(
    own: KindModel, plain: Estimate, model: CostModel, correction: float
) -> Estimate:
    """Return a cost in KV token-steps as one of a model's, corrected within bounds."""
    if model == KV and not correction:
        return plain
    view = own.under(model)
    cost = float(view.cost(plain.cost))
    high = max(cost, float(view.cost(plain.high)))
    if correction:
        cap = exp(own.cap)
        if plain.source == "ready":  # more than its model has seen may be there
            cap = max(cap, plain.cost * exp(ROOM))
        low, most = sorted(float(view.cost(kv)) for kv in (exp(own.floor), cap))
        cost = min(max(cost * exp(correction), low), most)
        most = max(cost, float(view.cost(cap * exp(ROOM))))
        high = min(max(cost, high * exp(correction)), most)
    return Estimate(cost, high, plain.source)


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
