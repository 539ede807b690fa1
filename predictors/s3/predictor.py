"""S³ as a predictor of agents: an output length from the text, a cost from the plan."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any

from justitia.policy import CostModel, KVTokenTime
from justitia.policy.exact import LARGEST, SMALLEST, Number
from justitia.predictors.base import Estimate, Prediction, Predictor
from justitia.predictors.data import fingerprint
from justitia.predictors.errors import PredictorError, TrainingError
from justitia.predictors.s3.buckets import BUCKETS, Buckets
from justitia.predictors.scores import HIGH
from justitia.workloads import KINDS, AgentSpec, generate

if TYPE_CHECKING:  # it loads torch
    from justitia.predictors.s3.classifier import Classifier, Size

EPOCHS = 3
RATE = 5e-4
"""Of AdamW, from random weights."""
FINE_EPOCHS, FINE_RATE = 3, 5e-5
"""From weights that know the language, as BERT's authors advise."""

GENERATED = 40
"""Agents of a class that `create_s3` trains on."""
_NEVER_RUN = 10**9
"""The first number of those agents: no workload has so many."""
_KV = KVTokenTime()


@dataclass(frozen=True, slots=True)
class Plan:
    """What an agent is thought to do: so many calls with prompts so long."""

    calls: float
    prompt_tokens: float


class S3(Predictor):
    """A DistilBERT that tells the bucket of an output's length from a text.

    It sees the agent's text, as all predictors do when an agent arrives, and is one for
    all classes. How many calls an agent makes and how long their prompts are, S³ does
    not say; they are the means of the agent's class in training (of all agents for a
    class that was not there), which is kinder to it than one plan for all.

    Parameters
    ----------
    base
        A folder with DistilBERT's weights to start from (see `Classifier.pretrained`).
        None: random ones of `size`.
    size
        Of the random one; None for `classifier.SMALL`.
    buckets
        Into how many lengths are sorted.
    epochs, rate
        Of the training; None for what suits the first weights.
    seed
        Of weights and training.
    """

    name = "s3"

    def __init__(
        self,
        *,
        base: Path | None = None,
        size: Size | None = None,
        buckets: int = BUCKETS,
        epochs: int | None = None,
        rate: float | None = None,
        seed: int = 0,
    ) -> None:
        self.base = base
        self.size = size
        self.count = buckets
        self.epochs = epochs
        self.rate = rate
        self.seed = seed
        self.buckets_: Buckets | None = None
        self.plans_: dict[str, Plan] = {}
        self.overall_: Plan | None = None
        self.high_ = 1.0
        self.trained_on_: dict[str, int] = {}
        self.seen: frozenset[str] = frozenset()
        self.classifier_: Classifier | None = None

    def fit(
        self,
        agents: Sequence[AgentSpec],
        progress: Callable[[int, int], None] | None = None,
        groups: Mapping[str, str] | None = None,
    ) -> S3:
        """Learn from finished agents; what was learned before is forgotten.

        Parameters
        ----------
        progress
            Called with batches done and all there are.
        groups
            The group of each agent, by id, to remember as trained on; None: itself.

        Raises
        ------
        TrainingError
            If no agent has an inference, or the training diverged. What was learned
            before is kept then.
        """
        from justitia.predictors.s3.classifier import (  # noqa: PLC0415 - loads torch
            SMALL,
            Classifier,
        )

        known = [agent for agent in agents if agent.inferences]
        if not known:
            raise TrainingError("S³ needs an agent with inferences to learn from")
        buckets = Buckets.fit(_lengths(known), self.count)
        if self.base is None:
            size = SMALL if self.size is None else self.size
            classifier = Classifier.random(size, self.count, self.seed)
        else:
            classifier = Classifier.pretrained(self.base, self.count, self.seed)
        fine = self.base is not None
        classifier.fit(
            [agent.text for agent in known],
            [_shares(agent, buckets) for agent in known],
            [len(agent.inferences) for agent in known],
            seed=self.seed,
            epochs=self.epochs or (FINE_EPOCHS if fine else EPOCHS),
            rate=self.rate or (FINE_RATE if fine else RATE),
            progress=progress,
        )
        self.buckets_, self.classifier_ = buckets, classifier
        self.plans_, self.overall_ = _plans(known), _plan(known)
        self.seen = frozenset(
            fingerprint(groups[agent.id] if groups else agent.id) for agent in known
        )
        self.high_ = self._high(known)
        self.trained_on_ = dict(Counter(agent.kind for agent in known))
        return self

    def tokens(self, texts: Sequence[str]) -> list[int]:
        """Return what each output after these texts is thought to have, in tokens."""
        if self.classifier_ is None or self.buckets_ is None:
            raise PredictorError("S³ has learned nothing yet: fit it, or load it")
        values = self.buckets_.tokens
        return [values[place] for place in self.classifier_.buckets(texts)]

    def costs(
        self, agents: Sequence[AgentSpec], model: CostModel, *, one_plan: bool = False
    ) -> list[float]:
        """Return what agents are thought to cost, many at once.

        With `one_plan` all are thought to make the calls of the mean agent, whatever
        their class.
        """
        lengths = self.tokens([agent.text for agent in agents])
        return [
            self._cost(None if one_plan else agent.kind, length, model)
            for agent, length in zip(agents, lengths, strict=True)
        ]

    def predict(self, agent: AgentSpec, model: CostModel) -> Prediction:
        """Return the cost of an agent, parted among its stages as S³ sees them.

        One pass of the network, and O(inferences).
        """
        (length,) = self.tokens([agent.text])
        cost = self._cost(agent.kind, length, model)
        depths = agent.depths()
        parts: list[Number] = [0] * (max(depths, default=-1) + 1)
        for depth, one in zip(depths, agent.inferences, strict=True):
            parts[depth] += model(one.prompt_tokens, length)
        whole = float(sum(parts))
        return Prediction(
            cost=cost,
            stage_costs=tuple(
                _bounded(cost * float(part) / whole if whole else cost)
                for part in parts
            ),
            decode_tokens=(length,) * len(agent.inferences),
            source="class" if agent.kind in self.plans_ else "global",
        )

    def estimate(
        self,
        kind: str,
        text: str,
        *,
        prompt_tokens: int | None = None,
        max_tokens: int | None = None,
    ) -> Estimate:
        """Return the cost of one agent in KV token-time, as `Model` says.

        S³ has no use for the lengths. The 90th percentile is that of what agents cost
        in training, as a multiple of what they were predicted to.
        """
        (length,) = self.tokens([text])
        known = "class" if kind in self.plans_ else "global"
        cost = self._cost(kind, length, _KV)
        return Estimate(cost, _bounded(cost * self.high_), known)

    def estimate_of(self, agent: AgentSpec) -> Estimate:
        """Return the cost of `agent`; its lengths are not looked at."""
        return self.estimate(agent.kind, agent.text)

    @property
    def about(self) -> Mapping[str, Any]:
        """What a model says of itself: format, versions, seed, classes."""
        from justitia.predictors.s3.files import about  # noqa: PLC0415 - loads torch

        return about(self)

    def _high(self, agents: Sequence[AgentSpec]) -> float:
        """Return what nine of ten agents cost no more than, over their prediction."""
        guessed = self.costs(agents, _KV)
        ratios = sorted(
            float(agent.cost(_KV)) / guess
            for agent, guess in zip(agents, guessed, strict=True)
        )
        return max(1.0, ratios[ceil(HIGH * len(ratios)) - 1])

    def _cost(self, kind: str | None, length: int, model: CostModel) -> float:
        plan = self.overall_ if kind is None else self.plans_.get(kind, self.overall_)
        assert plan is not None
        one = model(round(plan.prompt_tokens), length)
        return _bounded(plan.calls * float(one))

    def _check(self) -> None:
        """Assert the invariants of the state."""
        assert (self.classifier_ is None) == (self.buckets_ is None)
        assert (self.classifier_ is None) == (not self.plans_)
        assert self.high_ >= 1
        if self.buckets_ is not None:
            assert len(self.buckets_.tokens) == self.count
            assert self.overall_ is not None


class _Generated(S3):
    """S³ that learns from generated agents when it is first asked."""

    def tokens(self, texts: Sequence[str]) -> list[int]:
        if self.classifier_ is None:
            taught = _taught(self.seed)
            self.buckets_, self.classifier_ = taught.buckets_, taught.classifier_
            self.plans_, self.overall_ = taught.plans_, taught.overall_
            self.trained_on_, self.high_ = taught.trained_on_, taught.high_
        return super().tokens(texts)


def create_s3(seed: int = 0) -> S3:
    """Return an S³ for workloads that are generated.

    Before its first prediction it trains a small DistilBERT on agents of every class
    that `justitia.workloads.generate` makes, which are in no run: some seconds, once a
    process.
    """
    return _Generated(seed=seed)


def load_s3(path: str | Path) -> S3:
    """Return an S³ that was saved; see `justitia.predictors.s3.files`."""
    from justitia.predictors.s3.files import load  # noqa: PLC0415 - loads torch

    return load(path)


@lru_cache(maxsize=1)
def _taught(seed: int) -> S3:
    agents = [
        generate(kind, _NEVER_RUN + number, seed)
        for kind in KINDS
        for number in range(GENERATED)
    ]
    return S3(seed=seed).fit(agents)


def _lengths(agents: Iterable[AgentSpec]) -> Iterable[int]:
    return (one.decode_tokens for agent in agents for one in agent.inferences)


def _shares(agent: AgentSpec, buckets: Buckets) -> list[float]:
    """Return the part of an agent's outputs that falls into each bucket."""
    counts = Counter(buckets.of(length) for length in _lengths([agent]))
    return [counts[k] / counts.total() for k in range(len(buckets.tokens))]


def _plans(agents: Iterable[AgentSpec]) -> dict[str, Plan]:
    by_kind: dict[str, list[AgentSpec]] = defaultdict(list)
    for agent in agents:
        by_kind[agent.kind].append(agent)
    return {kind: _plan(some) for kind, some in by_kind.items()}


def _plan(agents: Sequence[AgentSpec]) -> Plan:
    prompts = [one.prompt_tokens for agent in agents for one in agent.inferences]
    return Plan(len(prompts) / len(agents), sum(prompts) / len(prompts))


def _bounded(cost: float) -> float:
    return min(max(cost, float(SMALLEST)), float(LARGEST))
