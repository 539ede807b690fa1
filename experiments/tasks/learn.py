"""A predictor that is trained, judged by agents it never saw, and scheduled with."""

from collections.abc import Callable
from statistics import fmean
from time import perf_counter
from typing import TYPE_CHECKING

from justitia.engines.scenario import build
from justitia.engines.sim import SimEngine, load_preset
from justitia.experiments.cells import Outcome
from justitia.experiments.tasks.simulate import told
from justitia.policy import KVTokenTime, create
from justitia.predictors.base import Predictor
from justitia.predictors.data import Data, load
from justitia.predictors.splits import split
from justitia.workloads import KINDS, generate

if TYPE_CHECKING:
    from justitia.predictors.model import Model

_WORK = KVTokenTime()
ELSEWHERE = 1_000_003
"""Added to the seed of the agents to learn from, which are none of those that run."""


def learn(
    *,
    what: str,
    seed: int,
    preset: str,
    agents: int,
    density: float,
    taught: int,
    judged: int,
    data: str = "",
    workload: str = "paper",
    arrivals: str | None = None,
    content: str = "",
) -> Outcome:
    """Train ``"mlp"`` or ``"s3"``, judge it, and run Justitia with it.

    Parameters
    ----------
    taught, judged
        Agents of each class to learn from, and to be judged by, where they are
        generated; of a file or folder, `taught` at most and all others.
    data
        Files of agents; empty for generated ones.
    content
        Hash of all files, for the cell's identity.
    """
    from justitia.predictors.evaluation import evaluate  # noqa: PLC0415 - an extra

    if data:
        train, test = split(load([data]), most=taught, seed=seed)
    else:
        made = _generated(seed, taught + judged)
        train, test = split(made, most=taught, share=1.0, seed=seed)
    began = perf_counter()
    model = _TRAINERS[what](train, seed)
    took = perf_counter() - began
    found = evaluate(model, test)
    machine = load_preset(preset)
    scenario = build(
        machine,
        workload=workload,
        agents=agents,
        arrivals=arrivals,
        density=density,
        seed=seed,
    )
    assert isinstance(model, Predictor)
    record = SimEngine(machine).run(scenario.agents, create("justitia"), model)
    errors = [one.model.mean_relative_error for one in found.classes.values()]
    medians = [one.model.median_relative_error for one in found.classes.values()]
    result = told(record) | {
        "one_plan_error": _one_plan(model, test) if what == "s3" else None,
        "load": scenario.load,
        "judged_error": fmean(errors),
        "judged_median": fmean(medians),
        "taught": len(train.agents),
        "judged": len(test.agents),
    }
    timings = {
        "train_s": took,
        "p50_ms": found.latency.p50,
        "p99_ms": found.latency.p99,
    }
    return {"result": result, "timings": timings}


def _one_plan(model: "Model", test: Data) -> float:
    """Return the mean error of an S³ that is not told the plan of an agent's class."""
    from justitia.predictors.s3 import S3  # noqa: PLC0415 - an extra

    assert isinstance(model, S3)
    guessed = model.costs(test.agents, _WORK, one_plan=True)
    by_kind: dict[str, list[float]] = {}
    for agent, cost in zip(test.agents, guessed, strict=True):
        real = float(agent.cost(_WORK))
        by_kind.setdefault(agent.kind, []).append(abs(cost - real) / real)
    return fmean(fmean(errors) for errors in by_kind.values())


def _generated(seed: int, each: int) -> Data:
    made = tuple(
        generate(kind, number, seed + ELSEWHERE)
        for kind in KINDS
        for number in range(each)
    )
    return Data(made, {agent.id: agent.id for agent in made})


def _mlp(data: Data, seed: int) -> "Model":
    from justitia.predictors.training import train  # noqa: PLC0415 - an extra

    return train(data.agents, groups=data.groups, most=len(data.agents), seed=seed)


def _s3(data: Data, seed: int) -> "Model":
    from justitia.predictors.s3 import S3  # noqa: PLC0415 - an extra

    return S3(seed=seed).fit(data.agents, groups=data.groups)


_TRAINERS: dict[str, Callable[[Data, int], "Model"]] = {"mlp": _mlp, "s3": _s3}
