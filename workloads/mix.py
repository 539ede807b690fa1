"""Workloads drawn from agents that were read from files."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from justitia.policy.exact import shown
from justitia.workloads.agents import AgentSpec, WorkloadError
from justitia.workloads.draws import drawn, picked, shuffled, stream
from justitia.workloads.generate import check_count, generate
from justitia.workloads.kinds import KINDS, SIZES
from justitia.workloads.shares import split

_ELEPHANT = "MapReduce"


def sample(agents: Sequence[AgentSpec], n: int, seed: int) -> list[AgentSpec]:
    """Return `n` of the agents, as they stand; all of them when there are no more.

    Raises
    ------
    WorkloadError
        If `n` is not a count.
    """
    check_count(n, "agents to draw")
    if n >= len(agents):
        return list(agents)
    chosen = picked(stream(seed, "sample"), range(len(agents)), n)
    return [agents[place] for place in sorted(chosen)]


def real_mix(agents: Sequence[AgentSpec], n: int, seed: int) -> list[AgentSpec]:
    """Return `n` agents in the paper's mix: 72 % small, 26 % medium, 2 % large.

    The size of an agent is that of its class in `justitia.workloads.kinds`; the classes
    of one size that are there have equal shares. Of each class agents are drawn without
    replacement while there are enough; one that is drawn again gets an id of its own,
    ``"SC-date-297#2"``. When no MapReduce agents are there, generated ones are half of
    the large (all of them when there are no other large ones).

    Parameters
    ----------
    agents
        What to draw from; classes that are not in the paper's mix are left out.
    n
        How many.
    seed
        Of the draw and of the order.

    Raises
    ------
    WorkloadError
        If `n` is not a count, or there are no small or no medium agents to draw from.
    """
    check_count(n, "agents of the mix")
    rng = stream(seed, "real mix")
    by_kind: dict[str, list[AgentSpec]] = {name: [] for name in KINDS}
    for agent in agents:
        if agent.kind in by_kind:
            by_kind[agent.kind].append(agent)
    made = not by_kind[_ELEPHANT]
    mix: list[AgentSpec] = []
    for size, count in split(n, SIZES, rng).items():
        there = {
            name: 1
            for name, found in by_kind.items()
            if KINDS[name].size == size and (found or name == _ELEPHANT)
        }
        if not there:
            names = ", ".join(k.name for k in KINDS.values() if k.size == size)
            found_kinds = ", ".join(sorted({agent.kind for agent in agents}))
            raise WorkloadError(
                f"a mix needs {size} agents ({names}), but there are only: "
                f"{shown(found_kinds)}"
            )
        if made and size == KINDS[_ELEPHANT].size:
            there[_ELEPHANT] = max(1, len(there) - 1)
        for name, many in split(count, there, rng).items():
            if made and name == _ELEPHANT:
                mix += [generate(name, number, seed) for number in range(many)]
            else:
                mix += drawn(stream(seed, f"real mix/{name}"), by_kind[name], many)
    return shuffled(rng, _renamed(mix))


def _renamed(agents: Iterable[AgentSpec]) -> list[AgentSpec]:
    """Return the agents, with new ids for those whose id is taken by one before."""
    agents = list(agents)
    taken = {agent.id for agent in agents}
    seen: dict[str, int] = {}
    renamed = []
    for agent in agents:
        number = seen.get(agent.id, 0) + 1
        if number == 1:
            seen[agent.id] = 1
            renamed.append(agent)
            continue
        while (name := f"{agent.id}#{number}") in taken:
            number += 1
        seen[agent.id] = number
        taken.add(name)
        renamed.append(replace(agent, id=name))
    return renamed
