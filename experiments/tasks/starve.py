"""Mice at a steady rate, and one elephant that arrives among them."""

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import replace
from random import Random
from typing import Any

from justitia.engines.scenario import load_in
from justitia.engines.sim import SimEngine, load_preset
from justitia.experiments.cells import Outcome
from justitia.experiments.tasks.observed import Recorder
from justitia.experiments.tasks.simulate import told
from justitia.policy import create
from justitia.predictors import Oracle
from justitia.workloads import AgentSpec, InferenceSpec, generate
from justitia.workloads.draws import stream

CALLS, PROMPT, DECODE, SPREAD = 10, 500, 149, 0.2
"""Of a mouse: inferences side by side, their prompts, what they produce, and by which
part of it that varies. With one a second and nothing else the engine is just busy: were
mice as different as real agents are, it would be idle now and overloaded then, and an
elephant's end would be a matter of when."""
ELEPHANT = "MapReduce"
ARRIVES = 30.0
"""Seconds after the first mouse."""
POINTS = 400
"""Of the curve that is kept, at most."""


def starve(
    *,
    policy: str,
    seed: int,
    preset: str,
    mice: int,
    rate: float = 1.0,
    options: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run one policy, with memory reserved so that nothing is preempted.

    Parameters
    ----------
    mice
        How many, evenly spaced.
    rate
        Mice a second.
    """
    machine = load_preset(preset)
    rng = stream(seed, "mice")
    herd = [_mouse(number, number / rate, rng) for number in range(mice)]
    elephant = replace(generate(ELEPHANT, 0, seed), arrival=ARRIVES)
    agents: Sequence[AgentSpec] = sorted(
        [*herd, elephant], key=lambda agent: agent.arrival or 0.0
    )
    given = dict(options or {})
    recorder = Recorder(create(policy, **given), elephant.id)
    record = SimEngine(machine, admission="max").run(
        agents, recorder, Oracle(), tags=str(given.get("tags", "agent"))
    )
    mine = next(agent for agent in record.agents if agent.id == elephant.id)
    others = [agent for agent in record.agents if agent.id != elephant.id]
    assert mine.finish is not None
    longest = max(
        one.finish - one.start
        for one in record.inferences
        if one.finish is not None and one.start is not None
    )
    reached = mine.reference_finish
    bound = None if reached is None else _bound(recorder, reached) + longest
    result = told(record) | {
        "load": load_in(machine, herd, mice / rate),
        "elephant": mine.jct,
        "last_mouse_arrives": max(agent.arrival for agent in others) - ARRIVES,
        "reference": None if reached is None else reached - ARRIVES,
        "bound": None if bound is None else bound - ARRIVES,
        "mice_mean": sum(a.jct for a in others if a.jct is not None) / len(others),
        "elephant_inferences": len(elephant.inferences),
        "progress": _progress(recorder, mine.finish, float(mine.cost)),
    }
    return {"result": result, "timings": {}}


def _mouse(number: int, arrival: float, rng: Random) -> AgentSpec:
    calls = tuple(
        InferenceSpec(PROMPT, round(DECODE * (1 + SPREAD * (2 * rng.random() - 1))))
        for _ in range(CALLS)
    )
    return AgentSpec(f"mouse-{number:05d}", calls, kind="mouse", arrival=arrival)


def _bound(recorder: Recorder, reached: float) -> float:
    """Return when everything of the elephant has started at the latest, by Theorem B.

    The reference finishes it at `reached`, when G has been delivered; its last start is
    before G + I has been, I being at most what was ever owed. The run's own curve says
    when that was; its end where it never came to it.
    """
    times = [time for time, _, _ in recorder.curve]
    place = bisect_left(times, reached)
    goal = recorder.curve[min(place, len(times) - 1)][1] + recorder.most_owed
    served = [total for _, total, _ in recorder.curve]
    return times[min(bisect_left(served, goal), len(times) - 1)]


def _progress(recorder: Recorder, finish: float, cost: float) -> list[list[float]]:
    """Return the share of the elephant that was delivered, over seconds it is there."""
    curve = [
        [time - ARRIVES, mine / cost]
        for time, _, mine in recorder.curve
        if ARRIVES <= time <= finish
    ]
    every = max(1, len(curve) // POINTS)
    return [*curve[::every], curve[-1]]
