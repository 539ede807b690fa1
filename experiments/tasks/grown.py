"""The process of `justitia.experiments.tasks.grow`: JSON in, JSON out."""

import json
import re
import resource
import sys
import tracemalloc
from pathlib import Path
from statistics import fmean
from time import process_time
from typing import Any

from justitia.engines.scenario import Scenario, build
from justitia.engines.sim import SimEngine, load_preset
from justitia.experiments.tasks.observed import Stopwatch
from justitia.policy import Agent, Inference, KVTokenTime, create
from justitia.predictors import Oracle

_WORK = KVTokenTime()


def measured(
    *, policy: str, seed: int, preset: str, agents: int, options: dict[str, Any]
) -> dict[str, Any]:
    """Run a policy; return what came of it, and the time and memory it took.

    Time is the processor's, so that what else a machine does matters less.
    """
    machine = load_preset(preset)
    began = process_time()
    scenario = build(machine, agents=agents, seed=seed)
    built = process_time()
    watch = Stopwatch(create(policy, **options))
    record = SimEngine(machine).run(
        scenario.agents, watch, Oracle(), tags=str(options.get("tags", "agent"))
    )
    ran = process_time()
    peak = _peak()
    jcts = [agent.jct for agent in record.agents if agent.jct is not None]
    lag = record.lag
    inferences = len(record.inferences)
    del record
    return {
        "result": {
            "agents": len(scenario.agents),
            "inferences": inferences,
            "mean_jct": fmean(jcts) if jcts else None,
            "ratio": None if lag is None else lag.ratio,
        },
        "timings": {
            "build_s": built - began,
            "run_s": ran - built,
            "policy_s": watch.nanoseconds / 1e9,
            "decision_us": watch.nanoseconds / 1000 / max(1, watch.starts),
            "peak_mib": peak,
            "policy_mib": _policy_memory(policy, options, scenario),
        },
    }


def _peak() -> float:
    """Return the most memory that this process has held, in MiB."""
    status = Path("/proc/self/status")
    if status.exists():  # getrusage counts what it was forked from, too
        found = re.search(r"VmHWM:\s+(\d+)", status.read_text())
        if found:
            return int(found[1]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def _policy_memory(policy: str, options: dict[str, Any], scenario: Scenario) -> float:
    """Return the MiB that a policy holds for all agents of a scenario in line at once.

    Of each agent one stage: the inferences themselves are the engine's and are made
    before memory is counted.
    """
    told = []
    for spec in scenario.agents:
        agent = Agent(spec.id, spec.cost(_WORK), inferences=len(spec.inferences))
        line = [
            Inference(f"{spec.id}/{one.id}", spec.id, one.prompt_tokens,
                      one.decode_tokens)
            for one in spec.inferences
        ]  # fmt: skip
        told.append((agent, line))
    tracemalloc.start()
    made = create(policy, **options)
    for agent, line in told:
        made.arrive(agent)
        for inference in line:
            made.submit(inference)
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return held / 2**20


if __name__ == "__main__":
    sys.stdout.write(json.dumps(measured(**json.loads(sys.stdin.read()))))
