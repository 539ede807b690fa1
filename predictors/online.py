"""A model that goes on learning from the agents that finish.

Between two trainings each class has one number that the next predictions are corrected
by: what would have made the last ones least wrong. Where errors keep growing (drift) a
new model is due. It is trained on the agents seen last, judged beside the live one by
others of them, which neither was trained on, and takes its place only if it is no
worse: a training that comes to nothing changes nothing.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from math import exp, inf, isfinite, log

import numpy as np

from justitia.policy import CostModel
from justitia.predictors.base import Estimate, Prediction, Predictor
from justitia.predictors.errors import PredictorError
from justitia.predictors.intervals import shift
from justitia.predictors.kinds import KV
from justitia.predictors.learned import Learned
from justitia.workloads.agents import AgentSpec

MOST_KINDS = 256
"""Classes that are learned of; agents of further ones are predicted all the same."""
MOST_AGENTS = 200
"""Agents of a class that are remembered, the newest."""
HELD_OUT = 5
"""Every so many-th agent, from the newest back, judges a new model."""
RECENT = 50
"""The errors of a class that its correction is made of, the newest."""
DOUBT = 20
"""Of n errors the correction is n/(n + this) of what they ask for."""
BOUND = log(8)
"""The largest correction, and the most that one error counts; natural logarithm."""
SLACK, LIMIT = 0.25, 15.0
"""Of Page and Hinkley's test: what an error may grow by without counting, and the sum
of what is beyond that from which there is drift, both in standard deviations. Without
drift an alarm comes about once in 10,000 agents; errors larger by two deviations give
one within ten."""
FIRST = 10
"""Values from which the deviation is known well enough to count."""

Train = Callable[[Sequence[AgentSpec]], Learned]
"""Makes a new model; `justitia.predictors.training.train` with its options."""


@dataclass(slots=True)
class Drift:
    """Page and Hinkley's test of whether a mean has grown.

    Keeps the sum of how far values lie above their running mean, less some slack; the
    mean has grown where that sum is far above its least value so far. O(1) a value.

    Source: Page, Continuous Inspection Schemes, 1954.
    """

    values: int = 0
    mean: float = 0.0
    square: float = 0.0
    total: float = 0.0
    least: float = 0.0

    def add(self, value: float) -> bool:
        """Take note of a value; return whether there is drift."""
        before = self.mean
        self.values += 1
        self.mean += (value - before) / self.values
        self.square += (value - before) * (value - self.mean)
        if self.values < FIRST:
            return False
        spread = max((self.square / self.values) ** 0.5, 1e-9)
        self.total += (value - self.mean) / spread - SLACK
        self.least = min(self.least, self.total)
        return self.total - self.least > LIMIT

    def _check(self) -> None:
        """Assert all invariants."""
        assert self.values >= 0
        assert self.square >= -1e-9
        assert self.least <= min(self.total, 0.0)


@dataclass(slots=True)
class _Followed:
    agents: deque[AgentSpec] = field(default_factory=lambda: deque(maxlen=MOST_AGENTS))
    errors: deque[float] = field(default_factory=lambda: deque(maxlen=RECENT))
    correction: float = 0.0
    drift: Drift = field(default_factory=Drift)
    drifts: bool = False


class Online(Predictor):
    """A learned model, corrected by what finished agents really cost.

    Parameters
    ----------
    live
        The model to begin with.

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

    def __init__(self, live: Learned) -> None:
        self.live = live
        self.counts: Counter[str] = Counter()
        self._kinds: dict[str, _Followed] = {}

    @property
    def due(self) -> tuple[str, ...]:
        """The classes whose errors have grown since the live model was made."""
        return tuple(kind for kind, one in self._kinds.items() if one.drifts)

    def estimate_of(self, agent: AgentSpec) -> Estimate:
        """Return what an agent costs in KV token-steps, corrected."""
        estimate = self.live.estimate_of(agent)
        factor = self._factor(agent.kind)
        return replace(
            estimate, cost=estimate.cost * factor, high=estimate.high * factor
        )

    def predict(self, agent: AgentSpec, model: CostModel) -> Prediction:
        """Return what the live model says, all costs times the class's correction."""
        told = self.live.predict(agent, model)
        factor = self._factor(agent.kind)
        if factor == 1:
            return told
        assert told.high is not None
        return replace(
            told,
            cost=told.cost * factor,
            stage_costs=tuple(cost * factor for cost in told.stage_costs),
            high=told.high * factor,
        )

    def learn(self, agent: AgentSpec, model: CostModel) -> None:
        """Take note of an agent that has finished. O(inferences) and a prediction."""
        if not agent.inferences:
            return
        if agent.kind not in self._kinds and len(self._kinds) >= MOST_KINDS:
            return
        known = self._kinds.setdefault(agent.kind, _Followed())
        raw = log(agent.cost(KV)) - log(self.live.estimate_of(agent).cost)
        error = min(max(raw, -BOUND), BOUND)
        if not known.drifts and known.drift.add(abs(error)):
            known.drifts = True
            self.counts["drift"] += 1
        known.errors.append(error)
        count = len(known.errors)
        known.correction = shift(np.array(known.errors)) * count / (count + DOUBT)
        known.agents.append(agent)
        self.counts["learned"] += 1

    def retrain(self, train: Train | None = None) -> bool:
        """Train a model on the agents seen last; return whether it is the live one now.

        Takes seconds: call it outside of whatever must not wait, and not beside `learn`
        in another thread. The live model stays where training raises, where the new one
        says anything that is no positive number, and where it is worse by mean relative
        error on the newest agents.
        """
        taught: list[AgentSpec] = []
        judges: list[AgentSpec] = []
        for known in self._kinds.values():
            for place, agent in enumerate(reversed(known.agents)):
                (taught if place % HELD_OUT else judges).append(agent)
        try:
            new = (train or _train)(taught)
            worst = _error(self.live, judges)
            better = bool(judges) and _error(new, judges) <= worst < inf
        except (PredictorError, ArithmeticError, ValueError):
            better = False
        if not better:
            self.counts["kept"] += 1
            return False
        self.live = new
        for known in self._kinds.values():
            known.errors.clear()
            known.correction = 0.0
            known.drift = Drift()
            known.drifts = False
        self.counts["replaced"] += 1
        return True

    def _factor(self, kind: str) -> float:
        known = self._kinds.get(kind)
        return 1.0 if known is None else exp(known.correction)

    def _check(self) -> None:
        """Assert all invariants."""
        self.live._check()
        assert len(self._kinds) <= MOST_KINDS
        for known in self._kinds.values():
            known.drift._check()
            assert len(known.errors) <= RECENT
            assert isfinite(known.correction)
            assert abs(known.correction) <= BOUND
            assert 0 < len(known.agents) <= MOST_AGENTS


def _train(agents: Sequence[AgentSpec]) -> Learned:
    """Train with the usual options."""
    from justitia.predictors.training import train  # noqa: PLC0415 - loads torch

    return train(agents)


def _error(model: Learned, agents: Sequence[AgentSpec]) -> float:
    """Return the mean relative error; infinite if an answer is no positive number."""
    total = 0.0
    for agent in agents:
        guess = model.estimate_of(agent).cost
        if not 0 < guess < inf:
            return inf
        total += abs(1 - guess / float(agent.cost(KV)))
    return total / max(len(agents), 1)
