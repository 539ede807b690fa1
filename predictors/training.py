"""Trains the models of all classes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import exp
from typing import Any

import numpy as np
from joblib import Parallel, delayed

from justitia.policy.exact import shown
from justitia.predictors.card import MOST_BEYOND
from justitia.predictors.data import fingerprint
from justitia.predictors.errors import TrainingError
from justitia.predictors.features import LONGEST, Features, Floats, sample, words
from justitia.predictors.intervals import margin, shift
from justitia.predictors.kinds import (
    KV,
    Guess,
    KindModel,
    Lengths,
    TextNetwork,
    bounds,
    line,
)
from justitia.predictors.learned import Learned
from justitia.predictors.mlp import MLP
from justitia.workloads.agents import AgentSpec
from justitia.workloads.draws import below, drawn, stream

MOST = 100
"""Agents of a class that are learned from, as in the paper."""
MOST_OF_EACH = 40
"""Agents of a class that the model of all classes learns from."""
FEWEST = 10
"""Agents of a class from whose texts something can be learned; with fewer their lengths
serve."""
STEEPEST = 2.0
"""The power of an inference's cost that an agent's may go with at most."""

Progress = Callable[[int, int, str], None]
"""Told how many of how many models are trained, and the class of the last; empty for
that of all classes."""


@dataclass(frozen=True, slots=True)
class _Sample:
    """Agents to learn from: their fold groups beside them.

    Attributes
    ----------
    everybody
        Whether what is learned is to answer for classes that were never seen.
    """

    agents: tuple[AgentSpec, ...]
    groups: tuple[str, ...]
    everybody: bool = False

    def logs(self) -> Floats:
        return np.log([float(agent.cost(KV)) for agent in self.agents])

    def shift(self, residuals: Floats) -> float:
        """Return what is to be added to a mean of logarithms.

        Of a class, what makes the mean relative error least. Of a class that was never
        seen so little is known that it would be least near zero; an agent that is
        thought to be next to nothing is served before all others, so there it is none.
        """
        return 0.0 if self.everybody else shift(residuals)


def train(
    agents: Sequence[AgentSpec],
    *,
    groups: Mapping[str, str] | None = None,
    most: int = MOST,
    seed: int = 0,
    jobs: int = 1,
    longest: int = LONGEST,
    options: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
) -> Learned:
    """Train a model for each class, and one for all.

    Parameters
    ----------
    agents
        That have finished: their lengths are the real ones. Those without an inference
        are left out.
    groups
        The group of each agent, by id: agents of one group are never on both sides of
        an inner validation. An agent that is not in it is a group of its own.
    most
        Agents of a class that are learned from; of more, some are drawn.
    seed
        Of all that is drawn. The same agents and the same seed give the same model.
    jobs
        Processes; the model does not depend on them.
    longest
        Characters of a text that are read.
    options
        Of `MLP`, other than the usual ones.
    progress
        Told of each model that is ready.

    Raises
    ------
    TrainingError
        If there are no agents, if no text has a word in it, or if a training diverged.
    """
    known = groups or {}
    classes: dict[str, list[AgentSpec]] = {}
    for agent in agents:
        if agent.inferences:
            classes.setdefault(agent.kind, []).append(agent)
    if not classes:
        raise TrainingError("there is nothing to learn from: no agents")
    if type(most) is not int or most < 1:
        raise TrainingError(
            f"the most agents of a class must be a count from 1, not {shown(most)}"
        )
    samples: dict[str, _Sample] = {}
    for kind, mine in classes.items():
        rng = stream(seed, f"train/{kind}")
        chosen = mine if len(mine) <= most else drawn(rng, mine, most)
        samples[kind] = _sample(chosen, known)
    texts = [agent.text for one in samples.values() for agent in one.agents]
    if not any(words(sample(text, longest)) for text in texts):
        raise TrainingError(
            f"there is nothing to learn from: none of {len(texts):,} agents has a text "
            f"with a word in it"
        )
    # Agents without a class are of class "", too.
    work = [("", _everybody(samples)), *samples.items()]
    built = Parallel(n_jobs=min(jobs, len(work)), return_as="generator_unordered")(
        delayed(_train_one)(
            place,
            taught,
            below(stream(seed, f"network/{name}"), 2**31),
            longest,
            dict(options or {}),
        )
        for place, (name, taught) in enumerate(work)
    )
    models: list[KindModel | None] = [None] * len(work)
    for done, (place, model) in enumerate(built, 1):
        models[place] = model
        if progress is not None:
            progress(done, len(work), work[place][0])
    anyone, *own = models
    assert anyone is not None
    seen = frozenset(
        fingerprint(known.get(agent.id, agent.id))
        for one in samples.values()
        for agent in one.agents
    )
    by_kind = {
        kind: model
        for kind, model in zip(samples, own, strict=True)
        if model is not None
    }
    return Learned(by_kind, anyone, seen=seen, about={"seed": seed})


def _sample(agents: Sequence[AgentSpec], groups: Mapping[str, str]) -> _Sample:
    return _Sample(tuple(agents), tuple(groups.get(a.id, a.id) for a in agents))


def _everybody(samples: Mapping[str, _Sample]) -> _Sample:
    """Return some agents of each class, whose class is their group.

    So what the model says of its folds is what it says of classes that it never saw. A
    single class is parted by its own groups.
    """
    chosen: list[AgentSpec] = []
    groups: list[str] = []
    for kind, one in samples.items():
        chosen += one.agents[:MOST_OF_EACH]
        groups += (
            [kind] * min(MOST_OF_EACH, len(one.agents))
            if len(samples) > 1
            else one.groups[:MOST_OF_EACH]
        )
    return _Sample(tuple(chosen), tuple(groups), everybody=True)


def _train_one(
    place: int, taught: _Sample, draw: int, longest: int, options: dict[str, Any]
) -> tuple[int, KindModel]:
    """Train one model; runs in a process of its own. Return its place, too."""
    logs = taught.logs()
    floor, cap = bounds(logs)
    made = KindModel(
        agents=len(logs),
        text=None,
        lengths=_lengths(taught, logs),
        floor=floor,
        cap=cap,
        calls=_calls(taught),
    )
    texts = [agent.text for agent in taught.agents]
    if len(logs) < FEWEST or len({text for text in texts if text.strip()}) < 2:
        residuals = logs - logs.mean()
        made.validation = _errors(residuals, taught.shift(residuals), margin(residuals))
        return place, made
    try:
        features = Features.fit(texts, longest=longest)
    except TrainingError:  # blanks and signs only
        return place, made
    network = MLP(random_state=draw, **options).fit(
        features.transform(texts), logs, groups=taught.groups
    )
    residuals = logs - network.out_of_fold_
    made.text = TextNetwork(
        features, network.network_, taught.shift(residuals), margin(residuals)
    )
    made.validation = _errors(residuals, made.text.shift, made.text.margin)
    return place, made


def _calls(taught: _Sample) -> np.ndarray[Any, np.dtype[np.int64]]:
    return np.array(
        [
            (place, depth, one.prompt_tokens, one.decode_tokens)
            for place, agent in enumerate(taught.agents)
            for depth, one in zip(agent.depths(), agent.inferences, strict=True)
        ],
        dtype=np.int64,
    )


def _lengths(taught: _Sample, logs: Floats) -> Lengths:
    """Fit the cost of an agent to the prompts that are ready when it arrives."""
    prompts, decodes, firsts = [], [], []
    for agent in taught.agents:
        ready = [
            one
            for depth, one in zip(agent.depths(), agent.inferences, strict=True)
            if depth == 0
        ]
        prompts.append(sum(one.prompt_tokens for one in ready) // len(ready))
        decodes += [one.decode_tokens for one in ready]
        firsts.append(ready)
    decode = int(np.median(decodes))
    first = np.log([float(KV(prompt, decode)) for prompt in prompts])
    slope, _ = line(first, logs, flat=True)
    # A longer prompt is never taken for less work.
    slope = min(max(slope, 0.0), STEEPEST) if len(logs) >= FEWEST else 0.0
    constant = float(logs.mean() - slope * first.mean())
    residuals = _left_out(first, logs - constant - slope * first, flat=not slope)
    off = taught.shift(residuals)
    plain = logs - logs.mean()
    typical = float(logs.mean()) + taught.shift(plain)
    made = Lengths(
        typical=Guess(typical, max(typical, float(logs.mean()) + margin(plain))),
        decode=decode,
        slope=slope,
        constant=constant + off,
        margin=max(0.0, margin(residuals) - off),
    )
    work = np.log([float(made.work(ready)) for ready in firsts])
    beyond, most = (
        min(one, MOST_BEYOND) for one in _beyond(taught.groups, logs - work)
    )
    return replace(made, beyond=beyond, beyond_margin=most)


def _beyond(groups: Sequence[str], more: Floats) -> tuple[float, float]:
    """Return what groups have in common of `more`, and a margin for another group.

    The mean over groups, each with the same weight; the margin is that of each group by
    the others.
    """
    names, place = np.unique(np.array(groups), return_inverse=True)
    means = np.bincount(place, more) / np.bincount(place)
    value = max(0.0, float(means.mean()))
    others = (means.sum() - means) / max(len(names) - 1, 1)
    return value, max(0.0, margin(more - np.maximum(others, 0.0)[place]))


def _left_out(x: Floats, residuals: Floats, *, flat: bool) -> Floats:
    """Return the residual of each sample from a line through all others."""
    away = x - x.mean()
    square = float(away @ away)
    lever = np.full(len(x), 1 / len(x))
    if not flat and square > 1e-9:
        lever += away**2 / square
    return residuals / np.maximum(1 - lever, 1 / len(x))


def _errors(residuals: Floats, off: float, most: float) -> dict[str, float]:
    """Return how wrong a model was on samples that it was not trained on."""
    errors = np.abs(1 - np.exp(off - residuals))
    return {
        "mean_relative_error": float(errors.mean()),
        "median_relative_error": float(np.median(errors)),
        "coverage": float((residuals <= most).mean()),
        "factor": exp(float(np.sqrt(np.mean(residuals**2)))),
    }
