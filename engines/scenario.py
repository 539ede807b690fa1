"""A scenario: which agents arrive when, on an engine of which size.

All policies that are compared run the same scenario. Everything random in it comes from
its seed.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from justitia.engines.sim.preset import PICOSECONDS, Preset
from justitia.policy import KVTokenTime
from justitia.policy.exact import positive
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
BASE_LOAD = 0.7
"""The load ρ at density 1."""

_WORK = KVTokenTime()


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
    """

    agents: tuple[AgentSpec, ...]
    source: str
    arrivals: str
    density: float | None
    load: float | None
    seed: int

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
        ``"poisson"``, ``"burst"``, or a trace file. None: the workload's own times if
        all its agents have one, else ``"poisson"``.
    density, load
        Either the density (2 if neither is given), or the load ρ itself.

    Raises
    ------
    WorkloadError
        If a file cannot be used, or both `density` and `load` are given.
    """
    if density is not None and load is not None:
        raise WorkloadError("give a density or a load, not both")
    specs = _agents(workload, agents, seed)
    own = bool(specs) and all(spec.arrival is not None for spec in specs)
    if arrivals is None:
        asked = density is not None or load is not None
        arrivals = "workload" if own and not asked else "poisson"
    if arrivals == "workload":
        times = [spec.arrival or 0.0 for spec in specs]
        density, load = None, load_in(preset, specs, max(times))
    elif arrivals == "burst":
        times, density, load = burst(len(specs)), None, None
    else:
        if load is None:
            density = positive_float(2 if density is None else density, "density")
            load = BASE_LOAD * density
        else:
            load = positive_float(load, "load")
            density = load / BASE_LOAD
        length = window(preset, specs, load)
        if arrivals == "poisson":
            times = poisson(len(specs), length, seed)
        else:
            times = from_trace(read_stamps(arrivals), len(specs), length, seed)
    placed = [
        replace(spec, arrival=time) for spec, time in zip(specs, times, strict=True)
    ]
    placed.sort(key=lambda spec: spec.arrival or 0.0)
    return Scenario(tuple(placed), workload, arrivals, density, load, seed)


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
    """Return the load ρ of `agents` that arrive within `seconds`; see `window`."""
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


def positive_float(value: float, what: str) -> float:
    """Return `value` if it is finite and positive, as a float."""
    return float(positive(value, what))


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
    path = Path(workload)
    specs = read(path)
    if path.is_dir():
        return real_mix(specs, agents, seed)
    return sample(specs, agents, seed)
