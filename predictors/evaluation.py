"""A model judged on agents that it was not trained on, beside simpler predictors.

This module loads scikit-learn.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from time import perf_counter_ns

from justitia.policy import KVTokenTime
from justitia.predictors.data import Data, fingerprint
from justitia.predictors.errors import PredictorError
from justitia.predictors.model import Model
from justitia.predictors.ridge import Ridges
from justitia.predictors.s3 import S3
from justitia.predictors.scores import Score, score
from justitia.workloads.agents import AgentSpec

_KV = KVTokenTime()
_NANOSECONDS = 1_000_000
TIMED = 200
"""Predictions of a class that are timed at most."""

MEAN, RIDGE, S3_ROW, S3_ONE_PLAN = "mean", "ridge", "s3", "s3_one_plan"
STEPS = (RIDGE, S3_ROW, "predict")
"""What takes time, in order."""


@dataclass(frozen=True, slots=True)
class Latency:
    """Milliseconds from a text to its cost, one at a time."""

    p50: float
    p99: float


@dataclass(frozen=True, slots=True)
class Judged:
    """One class of agents.

    Attributes
    ----------
    trained_on
        Agents of it in the data that the model was trained on, which are not judged.
    model
        How the model did.
    baselines
        How others did that were trained on the same agents, by name.
    real, predicted
        Costs, agent by agent.
    """

    trained_on: int
    model: Score
    latency: Latency
    baselines: Mapping[str, Score]
    real: Sequence[float]
    predicted: Sequence[float]


@dataclass(frozen=True, slots=True)
class Evaluation:
    """A model on some data.

    Attributes
    ----------
    classes
        By name.
    latency
        Over the predictions of all classes.
    trained_on, empty
        Agents that were not judged: trained on, or of no work at all.
    sources
        How many predictions came from where; see `Prediction.source`.
    """

    classes: Mapping[str, Judged]
    latency: Latency
    trained_on: int
    empty: int
    sources: Mapping[str, int]

    def over_classes(self, pick: Callable[[Judged], float | None]) -> float | None:
        """Return the mean over classes of what `pick` gives; None if one has none."""
        values = [pick(judged) for judged in self.classes.values()]
        known = [value for value in values if value is not None]
        return fmean(known) if known and len(known) == len(values) else None


def evaluate(
    model: Model,
    data: Data,
    *,
    s3: S3 | None = None,
    progress: Callable[[str, int, int], None] | None = None,
) -> Evaluation:
    """Judge a model by the agents of `data` whose group it was not trained on.

    Where agents that it was trained on are in the data too, simpler predictors are
    trained on these very agents and judged by the same others: the mean of the class, a
    ridge (`Ridges`), and S³, told what plan the agent's class has, and with one plan
    for all.

    Parameters
    ----------
    s3
        One that is to be fitted; None leaves S³ out.
    progress
        Called with what is being done, and how far that is of how much.

    Raises
    ------
    PredictorError
        If no agent is left to be judged by.
    """
    tell = progress or (lambda what, done, whole: None)
    seen = model.seen
    known, judged, empty = [], [], 0
    for agent in data.agents:
        if not agent.cost(_KV):
            empty += 1
        elif fingerprint(data.groups[agent.id]) in seen:
            known.append(agent)
        else:
            judged.append(agent)
    if not judged:
        why = f"all {len(known):,} were trained on" if known else "there are none"
        raise PredictorError(f"no agents to judge the model by: {why}")
    guesses = _baselines(known, judged, s3, tell)
    by_kind: dict[str, list[int]] = defaultdict(list)
    for place, agent in enumerate(judged):
        by_kind[agent.kind].append(place)
    real = [float(agent.cost(_KV)) for agent in judged]
    counts = Counter(agent.kind for agent in known)
    sources: Counter[str] = Counter()
    times: list[int] = []
    classes = {}
    for number, (kind, places) in enumerate(sorted(by_kind.items())):
        tell("predict", number, len(by_kind))
        agents = [judged[place] for place in places]
        estimates = [model.estimate_of(agent) for agent in agents]
        sources.update(estimate.source for estimate in estimates)
        mine = _timed(model, agents)
        times += mine
        costs = [real[place] for place in places]
        predicted = [estimate.cost for estimate in estimates]
        classes[kind] = Judged(
            trained_on=counts[kind],
            model=score(
                costs,
                predicted,
                [estimate.high for estimate in estimates],
                sum(estimate.fallback for estimate in estimates),
            ),
            latency=_latency(mine),
            baselines={
                name: score(costs, [guessed[place] for place in places])
                for name, guessed in guesses.items()
            },
            real=costs,
            predicted=predicted,
        )
    tell("predict", len(by_kind), len(by_kind))
    return Evaluation(classes, _latency(times), len(known), empty, dict(sources))


def _baselines(
    known: Sequence[AgentSpec],
    judged: Sequence[AgentSpec],
    s3: S3 | None,
    tell: Callable[[str, int, int], None],
) -> dict[str, list[float]]:
    """Return what predictors that learn from `known` say of `judged`."""
    if not known:
        return {}
    costs = [float(agent.cost(_KV)) for agent in known]
    kinds = [agent.kind for agent in known]
    of_kind: dict[str, list[float]] = defaultdict(list)
    for kind, cost in zip(kinds, costs, strict=True):
        of_kind[kind].append(cost)
    means = {kind: fmean(some) for kind, some in of_kind.items()}
    overall = fmean(costs)
    tell(RIDGE, 0, 1)
    ridges = Ridges().fit(kinds, [agent.text for agent in known], costs)
    guesses = {
        MEAN: [means.get(agent.kind, overall) for agent in judged],
        RIDGE: ridges.predict(
            [agent.kind for agent in judged], [agent.text for agent in judged]
        ),
    }
    tell(RIDGE, 1, 1)
    if s3 is not None:
        s3.fit(known, lambda done, whole: tell(S3_ROW, done, whole))
        guesses[S3_ROW] = s3.costs(judged, _KV)
        guesses[S3_ONE_PLAN] = s3.costs(judged, _KV, one_plan=True)
    return guesses


def _timed(model: Model, agents: Sequence[AgentSpec]) -> list[int]:
    """Return the nanoseconds of predictions, one agent at a time, after a first one."""
    model.estimate_of(agents[0])
    times = []
    for agent in agents[:TIMED]:
        begin = perf_counter_ns()
        model.estimate_of(agent)
        times.append(perf_counter_ns() - begin)
    return times


def _latency(times: Sequence[int]) -> Latency:
    ordered = sorted(times)
    last = len(ordered) - 1
    return Latency(
        p50=ordered[round(0.5 * last)] / _NANOSECONDS,
        p99=ordered[round(0.99 * last)] / _NANOSECONDS,
    )
