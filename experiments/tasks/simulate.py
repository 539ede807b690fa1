"""One policy on one scenario of the simulated engine."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from justitia.engines.records import AgentRecord, RunRecord
from justitia.engines.scenario import build
from justitia.engines.sim import Preset, SimEngine, load_preset
from justitia.engines.sim.told import told_by
from justitia.experiments.cells import Outcome
from justitia.policy import KVTokenTime, create
from justitia.predictors import create as create_predictor

_WORK = KVTokenTime()


def simulate(
    *,
    policy: str,
    seed: int,
    preset: str,
    agents: int,
    density: float | None = None,
    load: float | None = None,
    options: Mapping[str, Any] | None = None,
    predictor: str = "oracle",
    admission: str = "none",
    preemption: str = "recompute",
    prompts: str = "priced",
    swaps: str = "priced",
    workload: str = "paper",
    arrivals: str | None = None,
    content: str = "",
) -> Outcome:
    """Run one policy.

    Parameters
    ----------
    prompts, swaps
        ``"priced"``, or ``"free"``: computing a prompt, or moving KV between GPU and
        host memory, takes no time.
    content
        Hash of the files that `workload` and `arrivals` name, for the cell's identity.
    """
    machine = _machine(preset, prompts, swaps)
    scenario = build(
        machine,
        workload=workload,
        agents=agents,
        arrivals=arrivals,
        density=density,
        load=load,
        seed=seed,
    )
    given = told_by(machine, policy, options or {})
    record = SimEngine(machine, admission=admission, preemption=preemption).run(
        scenario.agents,
        create(policy, **given),
        create_predictor(predictor, seed),
        tags=str(given.get("tags", "agent")),
    )
    result = told(record) | {
        "load": scenario.load,
        "agents": len(scenario.agents),
        "inferences": scenario.inferences,
    }
    return {"result": result, "timings": {}}


def told(record: RunRecord) -> dict[str, Any]:
    """Return what experiments ask of a run, agents in the workload's order."""
    lag = record.lag
    return {
        "jct": [agent.jct for agent in record.agents],
        "kind": [agent.kind for agent in record.agents],
        "cost": [float(agent.cost) for agent in record.agents],
        "error": _error(record.agents),
        "steps": record.steps,
        "utilisation": record.utilisation,
        "preemptions": record.preemptions,
        "limits": record.limits,
        "lag": None
        if lag is None
        else {
            "worst": float(lag.worst),
            "allowed": float(lag.allowed),
            "excess": float(lag.excess),
            "ratio": lag.ratio,
        },
    }


def _machine(preset: str, prompts: str, swaps: str) -> Preset:
    machine = load_preset(preset)
    for what, price, field in (
        ("prompts", prompts, "step_prefill_token_ps"),
        ("swaps", swaps, "swap_token_ps"),
    ):
        if price == "free":
            name = f"{machine.name}, {what} free"
            free: dict[str, Any] = {field: 0}
            machine = replace(machine, name=name, **free)
    return machine


def _error(agents: tuple[AgentRecord, ...]) -> float | None:
    """Return the mean relative error of the predicted costs, in KV token-time."""
    errors = [
        abs(float(agent.predicted_cost) / float(agent.cost) - 1)
        for agent in agents
        if agent.predicted_cost is not None and agent.outcome == "finished"
    ]
    return sum(errors) / len(errors) if errors else None
