"""How well `sim`, calibrated on an engine, tells what that engine will do.

    python -m benchmarks.calibration --engine vllm

calibrates `sim` on the real engine as ``justitia calibrate`` does, runs a workload that
was not used for it on both, and prints the mean JCT that was measured beside the one
that was simulated. Exit code 1 if any is off by more than 15 %.

A turn is a run under each policy, with a third of the calibrating before each. Each
turn has a fit of its own, and the median over the turns of simulated over measured
counts: so a machine that gets slower or faster meanwhile does so for both. With
``--clock cpu`` times are those of the thread that computes, which other programs on the
machine change less; for the tiny model, on a CPU.
"""

import argparse
from collections.abc import Callable, Sequence
from functools import partial
from statistics import median
from time import thread_time_ns
from typing import Any

from justitia.engines.calibration.fitting import fit_steps
from justitia.engines.calibration.measuring import guessed, measure, workloads
from justitia.engines.calibration.recording import Recorded
from justitia.engines.calibration.samples import Sample
from justitia.engines.registry import create_engine
from justitia.engines.scenario import build
from justitia.engines.serving.engine import LiveEngine
from justitia.engines.sim import Preset, SimEngine
from justitia.engines.summary import summarise
from justitia.policy import create
from justitia.predictors import Oracle
from justitia.workloads import AgentSpec

MOST_OFF = 0.15
"""Of a simulated mean JCT over the measured one, less 1."""
POLICIES = ("fcfs", "vtc", "justitia")
SEED = 7
"""Of the workload; those of calibrating are others."""
FIRST_SEED = 1_000


class OnThisThread(Recorded):
    """A run that counts the time of this thread on a processor."""

    _clock = staticmethod(thread_time_ns)


CLOCKS: dict[str, type[Recorded]] = {"wall": Recorded, "cpu": OnThisThread}


def mean_jct(
    run: Callable[..., Any], agents: Sequence[AgentSpec], policy: str = "justitia"
) -> float:
    """Return the mean JCT of a run, in seconds."""
    record = run(agents, create(policy), Oracle())
    mean = summarise(record, None).mean_jct
    assert mean is not None
    return mean


def compare(
    engine: LiveEngine[Any],
    *,
    turns: int,
    agents: int,
    arrivals: str,
    kind: type[Recorded],
) -> bool:
    """Calibrate and measure by turns, print both sides, return whether they agree."""
    guess = guessed(engine, measure(engine, rounds=1, kind=kind))
    # Arrivals are placed by a first guess, so that the engine is as busy as it says.
    there = build(guess, agents=agents, arrivals=arrivals, seed=SEED, fit=engine.fit)
    print(
        f"{engine.name} {engine.version()}, {len(there.agents)} agents with "
        f"{there.inferences} inferences, arrivals {arrivals}, seed {SEED}\n"
        "turn  ms a step  us a token  us a sequence  ns a KV token  error     R2  "
        + "  ".join(f"{policy:>20}" for policy in POLICIES),
        flush=True,
    )
    ratios: dict[str, list[float]] = {policy: [] for policy in POLICIES}
    for turn in range(turns):
        samples, measured = a_turn(engine, there.agents, turn, guess, kind)
        fit, preset = fit_steps(samples), guessed(engine, samples)
        cells = []
        for policy in POLICIES:
            simulated = mean_jct(SimEngine(preset).run, there.agents, policy)
            ratios[policy].append(simulated / measured[policy])
            cells.append(f"{measured[policy]:.3f} s, {simulated:.3f} s".rjust(20))
        print(
            f"{turn + 1:>4}{fit.fixed * 1e3:>11.3f}{fit.prefill_token * 1e6:>12.2f}"
            f"{fit.sequence * 1e6:>15.1f}{fit.kv_token * 1e9:>15.0f}"
            f"{fit.error:>7.1%}{fit.r2:>7.3f}  " + "  ".join(cells),
            flush=True,
        )
    off = {policy: median(each) - 1 for policy, each in ratios.items()}
    print("measured, simulated mean JCT. Simulated over measured, less 1, the median:")
    print(", ".join(f"{policy} {each:+.1%}" for policy, each in off.items()))
    worst = max(map(abs, off.values()))
    print(f"worst {worst:.1%}, allowed {MOST_OFF:.0%}")
    return worst <= MOST_OFF


def a_turn(
    engine: LiveEngine[Any],
    agents: Sequence[AgentSpec],
    turn: int,
    guess: Preset,
    kind: type[Recorded],
) -> tuple[list[Sample], dict[str, float]]:
    """Return samples, and the mean JCT measured meanwhile under each policy.

    Every turn begins with another policy.
    """
    samples: list[Sample] = []
    loads = workloads(engine, FIRST_SEED + turn, guess)
    measured = {}
    for place in range(len(POLICIES)):
        for load in loads[place :: len(POLICIES)]:
            mean_jct(partial(engine.run, kind=partial(kind, samples=samples)), load)
        policy = POLICIES[(place + turn) % len(POLICIES)]
        run = partial(engine.run, kind=partial(kind, samples=[]))
        measured[policy] = mean_jct(run, agents, policy)
    return samples, measured


def main() -> int:
    """Compare on the engines that were asked for."""
    parser = argparse.ArgumentParser(description="Measured beside simulated mean JCT.")
    parser.add_argument("--engine", choices=("vllm", "sglang"), required=True)
    parser.add_argument("--model", help="default: a tiny one, made on the spot")
    parser.add_argument("--turns", type=int, default=9)
    parser.add_argument("--agents", type=int, default=40)
    parser.add_argument(
        "--arrivals",
        choices=("poisson", "burst"),
        default="poisson",
        help="at a density of 2 (default), or all at once, where a JCT is as much off "
        "as the steps are: with poisson twice that, on a machine whose speed changes",
    )
    parser.add_argument("--clock", choices=CLOCKS, default="wall")
    given = parser.parse_args()
    engine = create_engine(given.engine, model=given.model)
    assert isinstance(engine, LiveEngine)
    try:
        agree = compare(
            engine,
            turns=given.turns,
            agents=given.agents,
            arrivals=given.arrivals,
            kind=CLOCKS[given.clock],
        )
    finally:
        engine.close()
    return 0 if agree else 1


if __name__ == "__main__":
    raise SystemExit(main())
