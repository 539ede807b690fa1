"""What a predictor is trained and judged on: finished agents, from files."""

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from hashlib import sha256

from justitia.policy.exact import shown
from justitia.workloads import AgentSpec, WorkloadError, read, read_groups


@dataclass(frozen=True, slots=True)
class Data:
    """Agents that ran, and which of them belong together.

    Parameters
    ----------
    agents
        With different ids.
    groups
        The group of each agent, by id: those of one group are made from the same
        question or document, and never lie on both sides of a split.
    """

    agents: tuple[AgentSpec, ...]
    groups: Mapping[str, str]

    def only(self, agents: Iterable[AgentSpec]) -> "Data":
        """Return some of the agents, with their groups."""
        chosen = tuple(agents)
        return Data(chosen, {agent.id: self.groups[agent.id] for agent in chosen})

    def kinds(self) -> list[str]:
        """Return the classes that there are, sorted."""
        return sorted({agent.kind for agent in self.agents})


def fingerprint(group: str) -> str:
    """Return what a model remembers of a group that it was trained on.

    16 hexadecimal digits, which do not give the name of the group away.
    """
    return sha256(group.encode()).hexdigest()[:16]


def load(paths: Iterable[str | os.PathLike[str]]) -> Data:
    """Read agents from files and folders, in any format that `justitia run` takes.

    See `justitia.workloads.read`; `justitia.workloads.files.finished` describes the log
    of finished inferences, `justitia.workloads.files.published` the recorded agents.

    Raises
    ------
    WorkloadError
        Naming the file, the line, the field and the value; or the two paths that both
        have an agent.
    """
    found: dict[str, AgentSpec] = {}
    origin: dict[str, object] = {}
    groups: dict[str, str] = {}
    for path in paths:
        for agent in read(path):
            if agent.id in found:
                raise WorkloadError(
                    f"{path}: id: {shown(agent.id)} is the id of an agent of "
                    f"{origin[agent.id]} already"
                )
            found[agent.id] = agent
            origin[agent.id] = path
        groups.update(read_groups(path))
    return Data(tuple(found.values()), groups)
