"""A model that goes on learning from the agents that finish.

Between two trainings each class has one number that the next predictions are corrected
by, within the model's own bounds: what would have made the last ones least wrong. Where
errors grow (drift) what was learned before is forgotten, and once enough agents have
come since, or enough of a class that was never seen, a new model of the class is
trained on the last of them. It is judged beside the one that answers by others of them,
and takes its place only if it is no worse: a training that comes to nothing changes
nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from math import hypot, inf, isfinite, log
from typing import Any

import numpy as np

from justitia.policy import CostModel
from justitia.policy.exact import shown
from justitia.predictors.base import Estimate, Prediction, Predictor
from justitia.predictors.errors import PredictorError
from justitia.predictors.intervals import shift
from justitia.predictors.kinds import KV, TextNetwork
from justitia.predictors.learned import Learned
from justitia.workloads.agents import AgentSpec

MOST_KINDS = 256
"""Classes that are learned of; agents of further ones are predicted all the same."""
MOST_AGENTS = 200
"""Agents of a class that are remembered, the newest."""
ENOUGH = 50
"""Agents of a class, since it changed or was first seen, that a new model of it is
trained on; and as many more until the next try, where that was no better."""
HELD_OUT = 5
"""Every so many-th agent, from the newest back, judges a new model."""
RECENT = 50
"""The errors of a class that its correction is made of, the newest."""
DOUBT = 5
"""Of n errors the correction is n/(n + this) of what they ask for."""
BOUND = log(8)
"""The largest correction, and the most that one error counts; natural logarithm."""
SLACK, LIMIT = 0.25, 15.0
"""Of Page and Hinkley's test: what an error may grow by without counting, and the sum
of what is beyond that from which there is drift, both in standard deviations. Without
drift an alarm comes about once in 10,000 agents; errors larger by two deviations give
one within 20 after a training on 100 agents, most within 13."""
LEAST_DEVIATION = 0.05
"""Of errors in training, as far as the test goes; natural logarithm."""
MOST_STEP = 3.0
"""What one error counts at most, in standard deviations: costs have long tails."""
FIRST = 10
"""Values from which the deviation is known well enough to count."""

Train = Callable[[Sequence[AgentSpec]], Learned]
"""Makes a new model; `justitia.predictors.training.train` with its options."""


@dataclass(slots=True)
class Drift:
    """Page and Hinkley's test of whether a mean has grown.

    Keeps the sum of how far values lie above their running mean, less some slack; the
    mean has grown where that sum is far above its least value so far, and did so after
    that value: `since` is how many have come from there on. O(1) a value.

    Source: Page, Continuous Inspection Schemes, 1954.
    """

    values: int = 0
    mean: float = 0.0
    square: float = 0.0
    total: float = 0.0
    least: float = 0.0
    since: int = 0

    def add(self, value: float) -> bool:
        """Take note of a value; return whether there is drift."""
        before = self.mean
        self.values += 1
        self.mean += (value - before) / self.values
        self.square += (value - before) * (value - self.mean)
        if self.values < FIRST:
            return False
        spread = max((self.square / self.values) ** 0.5, 1e-9)
        step = (value - self.mean) / spread
        self.total += min(max(step, -MOST_STEP), MOST_STEP) - SLACK
        self.since += 1
        if self.total <= self.least:
            self.least, self.since = self.total, 0
        return self.total - self.least > LIMIT

    def _check(self) -> None:
        """Assert all invariants."""
        assert self.values >= 0
        assert self.square >= -1e-9
        assert self.least <= min(self.total, 0.0)
        assert 0 <= self.since <= self.values


@dataclass(slots=True)
class _Watch:
    """Whether the errors of a class have changed: higher, lower, or wider."""

    tests: tuple[Drift, Drift, Drift]

    @classmethod
    def begin(cls, count: int = 0, mean: float = 0, deviation: float = 0) -> _Watch:
        """Return one that knows of so many errors of the training, if of any."""
        # Of a normal variable: the mean and the deviation of its absolute value.
        size, spread = 0.798 * hypot(mean, deviation), 0.603 * deviation
        first, wide = count * deviation**2, count * spread**2
        return cls(
            (
                Drift(count, mean, first),
                Drift(count, -mean, first),
                Drift(count, size, wide),
            )
        )

    def add(self, error: float) -> int:
        """Take note of an error; return how many came since a drift, 0 without one."""
        values = (error, -error, abs(error))
        alarms = [
            test
            for test, value in zip(self.tests, values, strict=True)
            if test.add(value)
        ]
        return min((test.since for test in alarms), default=0)


@dataclass(slots=True)
class _Followed:
    """What is known of one class.

    Attributes
    ----------
    errors
        Logarithms of real over predicted cost, by cost model, that of KV token-time
        always among them.
    since
        Agents since the last drift, or the first.
    after
        How many of those there must be before a model is trained.
    """

    watch: _Watch
    agents: deque[AgentSpec] = field(default_factory=lambda: deque(maxlen=MOST_AGENTS))
    errors: dict[CostModel, deque[float]] = field(default_factory=dict)
    corrections: dict[CostModel, float] = field(default_factory=dict)
    drifts: bool = False
    since: int = 0
    after: int = ENOUGH

    def add(self, model: CostModel, error: float) -> None:
        """Take note of an error under a cost model."""
        known = self.errors.setdefault(model, deque(maxlen=RECENT))
        known.append(error)
        self.corrections[model] = _correction(known)

    def begin(self, since: int) -> None:
        """Forget all but the newest so many, which came since a drift."""
        self.watch = _Watch.begin()
        self.drifts = True
        self.since = min(since, len(self.agents))
        self.after = ENOUGH
        self.agents = _last(self.agents, self.since)
        for model, known in self.errors.items():
            self.errors[model] = _last(known, self.since)
            self.corrections[model] = _correction(self.errors[model])


class Online(Predictor):
    """A learned model, corrected by what finished agents really cost.

    Parameters
    ----------
    live
        The model to begin with.
    train
        Makes a new model of a class where it is due, which takes seconds; None: the
        model is corrected, never replaced.

    Attributes
    ----------
    live
        The model that answers.
    counts
        ``"learned"`` agents, ``"drift"`` alarms, models ``"replaced"`` and ``"kept"``.

    Notes
    -----
    Complexity: as the model's, plus O(`RECENT` log `RECENT`) to learn; memory
    O(`MOST_KINDS` · `MOST_AGENTS` agents).
    """

    name = "online"

    def __init__(self, live: Learned, train: Train | None = None) -> None:
        self.live = live
        self.counts: Counter[str] = Counter()
        self._train = train
        self._kinds: dict[str, _Followed] = {}
        self._alarms: Counter[str] = Counter()
        self._replaced: Counter[str] = Counter()

    @property
    def due(self) -> tuple[str, ...]:
        """The classes that have drifted since their model was made, or have none."""
        return tuple(
            kind
            for kind, one in self._kinds.items()
            if one.drifts or kind not in self.live.models
        )

    def correction(self, kind: str, model: CostModel = KV) -> float:
        """Return what is added to the logarithm of a cost of this class."""
        known = self._kinds.get(kind)
        return 0.0 if known is None else known.corrections.get(model, 0.0)

    def estimate_of(self, agent: AgentSpec) -> Estimate:
        """Return what an agent costs in KV token-steps, corrected."""
        self.live.estimate_of(agent)  # it is counted
        return self._uncounted(agent)

    def predict(self, agent: AgentSpec, model: CostModel) -> Prediction:
        """Return what the live model says of an agent, corrected."""
        return self.live.predict(agent, model, self.correction(agent.kind, model))

    def learn(self, agent: AgentSpec, model: CostModel) -> None:
        """Take note of an agent that has finished.

        O(inferences) and a prediction; a training now and then, where one was given.
        """
        if not agent.inferences:
            return
        kind = agent.kind
        known = self._kinds.get(kind)
        if known is None:
            if len(self._kinds) >= MOST_KINDS:
                return
            known = self._kinds[kind] = _Followed(self._watch(kind))
        known.agents.append(agent)
        known.since += 1
        self.counts["learned"] += 1
        # What a drift is does not depend on the policy's cost model; how far costs are
        # off under it does.
        error = self._error(agent, KV)
        known.add(KV, error)
        if model != KV:
            known.add(model, self._error(agent, model))
        since = known.watch.add(error)
        if since:
            self.counts["drift"] += 1
            self._alarms[kind] += 1
            known.begin(since)
        due = known.drifts or kind not in self.live.models
        if self._train is not None and due and known.since >= known.after:
            self.retrain(kind)

    def retrain(self, kind: str, train: Train | None = None) -> bool:
        """Train a model of a class on its last agents; return whether it answers now.

        Takes seconds. The one that answered stays where training raises, where the new
        one says anything that is no positive number, and where it is worse, by mean
        relative error on the newest agents, than the old one with its correction.

        Parameters
        ----------
        train
            In place of that which was given to all.
        """
        trains = train or self._train
        known = self._kinds.get(kind)
        if trains is None or known is None:
            return False
        taught: list[AgentSpec] = []
        judges: list[AgentSpec] = []
        for place, agent in enumerate(reversed(known.agents)):
            (taught if place % HELD_OUT else judges).append(agent)
        try:
            new = trains(taught)
            made = self._with(kind, new)
            better = _wrong(made.uncounted, judges) <= _wrong(self._uncounted, judges)
        except (PredictorError, ArithmeticError, ValueError, KeyError):
            better = False
        if not better:
            known.after = known.since + ENOUGH
            self.counts["kept"] += 1
            return False
        self.live = made
        self._kinds[kind] = _Followed(self._watch(kind), known.agents)
        self._replaced[kind] += 1
        self.counts["replaced"] += 1
        return True

    def notes(self) -> tuple[str, ...]:
        """Return what changed since the beginning, class by class."""
        told = [*self.live.notes()]
        for kind, times in self._alarms.items():
            again = "" if times == 1 else f" {times} times"
            told.append(f"drift: what class {shown(kind)} costs has changed{again}")
        for kind in self._replaced:
            told.append(f"class {shown(kind)} has a new model, of its last agents")
        return tuple(told)

    def _with(self, kind: str, new: Learned) -> Learned:
        """Return the live model with another for one class."""
        made = Learned(
            {**self.live.models, kind: new.models[kind]},
            self.live.anyone,
            seen=self.live.seen | new.seen,
            about=self.live.about,
        )
        made.counts = self.live.counts
        return made

    def _uncounted(self, agent: AgentSpec) -> Estimate:
        return self.live.uncounted(agent, KV, self.correction(agent.kind))

    def _error(self, agent: AgentSpec, model: CostModel) -> float:
        """Return how far the live model is off, uncorrected."""
        raw = log(agent.cost(model)) - log(self.live.uncounted(agent, model).cost)
        return min(max(raw, -BOUND), BOUND)

    def _watch(self, kind: str) -> _Watch:
        """Return what watches the errors of a model, which it had in training, too."""
        known = self.live.models.get(kind)
        factor = None if known is None else known.validation.get("factor")
        if known is None or factor is None or not factor >= 1:
            return _Watch.begin()
        # What makes relative errors least was added to a mean of logarithms.
        shifted = known.text.shift if isinstance(known.text, TextNetwork) else 0.0
        return _Watch.begin(
            min(known.agents, MOST_AGENTS),
            min(max(-shifted, -BOUND), BOUND),
            min(max(log(factor), LEAST_DEVIATION), BOUND),
        )

    def _check(self) -> None:
        """Assert all invariants."""
        self.live._check()
        assert len(self._kinds) <= MOST_KINDS
        for known in self._kinds.values():
            for test in known.watch.tests:
                test._check()
            assert known.errors.keys() == known.corrections.keys()
            assert all(len(some) <= RECENT for some in known.errors.values())
            assert all(isfinite(one) for one in known.corrections.values())
            assert all(abs(one) <= BOUND for one in known.corrections.values())
            assert 0 < len(known.agents) <= MOST_AGENTS
            assert known.since >= 0


def trains(seed: int) -> Train:
    """Return what trains with the usual options, and loads torch when it has to."""

    def train_(agents: Sequence[AgentSpec]) -> Learned:
        from justitia.predictors.training import train  # noqa: PLC0415 - loads torch

        return train(agents, most=MOST_AGENTS, seed=seed)

    return train_


def _last(values: deque[Any], count: int) -> deque[Any]:
    """Return the newest of them, in a deque that takes as many as theirs."""
    return deque(islice(values, max(0, len(values) - count), None), values.maxlen)


def _correction(errors: Sequence[float]) -> float:
    """Return what would have made these least wrong, less where they are few."""
    count = len(errors)
    return shift(np.array(errors)) * count / (count + DOUBT)


def _wrong(
    estimate: Callable[[AgentSpec], Estimate], agents: Sequence[AgentSpec]
) -> float:
    """Return the mean relative error; infinite if an answer is no positive number."""
    total = 0.0
    for agent in agents:
        guess = estimate(agent).cost
        if not 0 < guess < inf:
            return inf
        total += abs(1 - guess / float(agent.cost(KV)))
    return total / max(len(agents), 1)
