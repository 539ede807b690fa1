"""Runs the loads on a real engine and takes down its steps."""

from collections.abc import Callable, Sequence
from functools import partial
from random import Random
from typing import Any

from justitia.engines.calibration import loads
from justitia.engines.calibration.fitting import fit_steps
from justitia.engines.calibration.recording import Recorded
from justitia.engines.calibration.samples import Sample
from justitia.engines.calibration.writing import preset_of
from justitia.engines.serving.engine import LiveEngine
from justitia.engines.sim.preset import Preset
from justitia.policy import create
from justitia.predictors import Oracle
from justitia.workloads import AgentSpec

POLICY = "justitia"


def workloads(
    engine: LiveEngine[Any], seed: int, guess: Preset | None = None
) -> list[Sequence[AgentSpec]]:
    """Return all loads of a round, in an order that is drawn; opens the engine.

    `guess` says how fast it is, if that is known.
    """
    room = engine.room()
    made = [loads.of_one_shape(*s) for _, s in loads.shapes(engine.limits(), room)]
    found: list[Sequence[AgentSpec]] = [*made, loads.of_agents(room, seed, guess)]
    Random(seed).shuffle(found)
    return found


def measure(
    engine: LiveEngine[Any],
    *,
    rounds: int,
    seed: int = 0,
    progress: Callable[[int, int], None] | None = None,
    kind: Callable[..., Recorded] = Recorded,
) -> list[Sample]:
    """Run all loads `rounds` times, and return what the steps took.

    A round before them warms the engine up (kernels compiled, graphs captured for
    batches of these sizes) and counts for nothing. In each round the loads come in
    another order, so that what else the machine does in between falls on all alike.

    Parameters
    ----------
    seed
        Of the orders, and of the agents among the loads: a round has others than the
        next.
    progress
        Called with how many loads have run, and of how many.
    kind
        What makes the runs.

    Raises
    ------
    EngineError
        If the engine is not there, or a run fails.
    """
    first: list[Sample] = []
    samples: list[Sample] = []
    guess, done = None, 0
    for number in range(rounds + 1):
        plan = workloads(engine, seed + number, guess)
        keep = partial(kind, samples=samples if number else first)
        for agents in plan:
            engine.run(agents, create(POLICY), Oracle(), kind=keep)
            done += 1
            if progress is not None:
                progress(done, (rounds + 1) * len(plan))
        if not number:
            guess = guessed(engine, first)
    return samples


def guessed(engine: LiveEngine[Any], samples: Sequence[Sample]) -> Preset:
    """Return what samples make of an engine, under a name that nobody sees."""
    told = {"name": "guess", "description": "this machine", "source": "measured"}
    return preset_of(fit_steps(samples), engine.limits(), **told)
