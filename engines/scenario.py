"""A scenario: which agents arrive when, on an engine of which size.

All policies that are compared run the same scenario. Everything random in it comes from
its seed.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from os.path import exists
from pathlib import Path

from justitia.engines.results import PICOSECONDS
from justitia.engines.scaling import Fitted
from justitia.engines.sim.preset import Preset
from justitia.policy import KVTokenTime
from justitia.policy.exact import positive, shown
from justitia.workloads import (
    AgentSpec,
    WorkloadError,
    burst,
    from_trace,
    paper_mix,
    poisson,
    read,
    read_stamps,
    real_mix,
    sample,
)

PAPER_WORKLOAD = "paper"
OWN_ARRIVALS = "workload"
ARRIVALS = ("poisson", "burst", OWN_ARRIVALS)
BASE_LOAD = 0.7
"""The load ρ at density 1."""

_WORK = KVTokenTime()

Fit = Callable[[Sequence[AgentSpec]], Fitted | None]


@dataclass(frozen=True, slots=True)
class Scenario:
    """Agents with arrivals, and how they came about.

    Parameters
    ----------
    agents
        In order of arrival.
    source
        ``"paper"``, or the file or folder that they were read from.
    arrivals
        ``"poisson"``, ``"burst"``, ``"workload"`` (the workload's own), or the file.
    density, load
        How dense the arrivals are; None where that has no meaning. See `window`.
    seed
        Of all that was drawn.
    scaled
        The factor of all lengths, None where they are as they were drawn.
    """

    agents: tuple[AgentSpec, ...]
    source: str
    arrivals: str
    density: float | None
    load: float | None
    seed: int
    scaled: float | None = None

    @property
    def inferences(self) -> int:
        """How many inferences the agents have in all."""
        return sum(len(agent.inferences) for agent in self.agents)


def build(
    preset: Preset,
    *,
    workload: str = PAPER_WORKLOAD,
    agents: int = 300,
    arrivals: str | None = None,
    density: float | None = None,
    load: float | None = None,
    seed: int = 7,
    fit: Fit | None = None,
) -> Scenario:
    """Draw or read the agents, and let them arrive.

    Parameters
    ----------
    preset
        The engine whose capacity and step time the load is measured in.
    workload
        ``"paper"`` generates the paper's mix; a folder of agents' files is drawn from
        in that mix; a file is taken as it is, at most `agents` of it.
    arrivals
        ``"poisson"``, ``"burst"`` (all at once), ``"workload"`` (the workload's own
        times), or a trace file. None: the workload's own if all its agents have one,
        else ``"poisson"``.
    density, load
        Either the density (2 if neither is given), or the load ρ itself. The workload's
        own times are stretched to it, and stay as they are if neither is given; for a
        burst they mean nothing.
    fit
        Makes the agents fit an engine, before they arrive; see
        `justitia.engines.Engine.fit`.

    Raises
    ------
    WorkloadError
        If a file cannot be used, the workload has no times of its own that were asked
        for, or both `density` and `load` are given.
    """
    if density is not None and load is not None:
        raise WorkloadError("give a density or a load, not both")
    specs: Sequence[AgentSpec] = _agents(workload, agents, seed)
    fitted = None if fit is None else fit(specs)
    if fitted is not None:
        specs = fitted.agents
    own = [spec.arrival for spec in specs if spec.arrival is not None]
    timed = 0 < len(own) == len(specs)
    if arrivals is None:
        arrivals = OWN_ARRIVALS if timed else "poisson"
    if arrivals == OWN_ARRIVALS and not timed:
        raise WorkloadError(f"{workload}: has no arrivals of its own")
    if arrivals == "burst":
        times, density, load = burst(len(specs)), None, None
    elif arrivals == OWN_ARRIVALS and density is None and load is None:
        times, load = own, load_in(preset, specs, max(own) - min(own))
    else:
        if load is None:
            density = float(positive(2 if density is None else density, "density"))
            load = BASE_LOAD * density
        else:
            load = float(positive(load, "load"))
            density = load / BASE_LOAD
        seconds = window(preset, specs, load)
        if arrivals == "poisson":
            times = poisson(len(specs), seconds, seed)
        elif arrivals == OWN_ARRIVALS:
            times = stretched(own, seconds)
        else:
            check_arrivals(arrivals)
            times = from_trace(read_stamps(arrivals), len(specs), seconds, seed)
    placed = [
        replace(spec, arrival=time) for spec, time in zip(specs, times, strict=True)
    ]
    placed.sort(key=lambda spec: spec.arrival or 0.0)
    return Scenario(
        tuple(placed),
        workload,
        arrivals,
        density,
        load,
        seed,
        None if fitted is None else fitted.scale,
    )


def check_workload(workload: str) -> None:
    """Raise `WorkloadError` unless `build` could look for agents there."""
    if workload != PAPER_WORKLOAD and not exists(workload):
        raise WorkloadError(
            f"must be {PAPER_WORKLOAD}, or a file of agents or a folder of such files "
            f"that is there, not {shown(workload)}"
        )


def check_arrivals(arrivals: str) -> None:
    """Raise `WorkloadError` unless `build` could look for arrivals there."""
    if arrivals not in ARRIVALS and not exists(arrivals):
        raise WorkloadError(
            f"must be one of {', '.join(ARRIVALS)}, or the file of a trace that is "
            f"there, not {shown(arrivals)}"
        )


def stretched(times: Sequence[float], seconds: float) -> list[float]:
    """Return times from 0 to `seconds` that lie as `times` do; equal ones all at 0.

    >>> stretched([10, 15, 30], 8.0)
    [0.0, 2.0, 8.0]
    """
    first, span = min(times), max(times) - min(times)
    return [(time - first) / span * seconds if span else 0.0 for time in times]


def window(preset: Preset, agents: Sequence[AgentSpec], load: float) -> float:
    """Return the seconds in which `agents` must arrive for the load to be `load`.

    The load is ρ = ΣC / (M · steps in the window): the agents' KV token-time over what
    a cache that is always full would deliver. A step is one in which the cache is full
    of decoding sequences of the workload's mean size. Prompts take time on top, so an
    engine is saturated well below ρ = 1.
    """
    return _full_seconds(preset, agents) / load


def load_in(
    preset: Preset, agents: Sequence[AgentSpec], seconds: float
) -> float | None:
    """Return the load ρ of `agents` that arrive within `seconds`; see `window`.

    None where they arrive at once.
    """
    return _full_seconds(preset, agents) / seconds if seconds else None


def step_seconds(preset: Preset, footprint: float = 512) -> float:
    """Return the seconds of a step that decodes with a full cache.

    Parameters
    ----------
    footprint
        KV tokens of one sequence, on average.
    """
    capacity = preset.capacity_tokens
    sequences = min(preset.max_num_seqs, max(1, int(capacity / footprint)))
    return preset.duration_ps(0, sequences, capacity) / PICOSECONDS


def _full_seconds(preset: Preset, agents: Sequence[AgentSpec]) -> float:
    """Return the seconds in which a cache that is always full delivers all work."""
    work = sum(int(agent.cost(_WORK)) for agent in agents)
    steps = sum(i.decode_tokens or 1 for a in agents for i in a.inferences)
    if not work:
        return 0.0
    return work / preset.capacity_tokens * step_seconds(preset, work / steps)


def _agents(workload: str, agents: int, seed: int) -> list[AgentSpec]:
    if workload == PAPER_WORKLOAD:
        return paper_mix(agents, seed)
    check_workload(workload)
    path = Path(workload)
    specs = read(path)
    if path.is_dir():
        return real_mix(specs, agents, seed)
    return sample(specs, agents, seed)
