"""The contract of an engine: agents and a policy in, records out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from justitia.engines.records import RunRecord
from justitia.policy import Policy, PolicyError
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec

if TYPE_CHECKING:
    from justitia.engines.scaling import Fitted
    from justitia.engines.sim.preset import Preset


class EngineError(PolicyError):
    """An engine that is not to be had, or a run that cannot go on."""


class Engine(ABC):
    """Runs agents to their end under a policy.

    Attributes
    ----------
    alone
        Whether all runs of a comparison go through one object in one process, one after
        the other: a real engine is slow to start, and two would share the machine.
    preset
        What a scenario's load is measured in.
    """

    name: str = ""
    alone: bool = False
    preset: "Preset"

    @abstractmethod
    def run(
        self,
        agents: Sequence[AgentSpec],
        policy: Policy,
        predictor: Predictor,
        *,
        tags: str = "agent",
        progress: Callable[[int], None] | None = None,
    ) -> RunRecord:
        """Run all agents to their end.

        Parameters
        ----------
        agents
            With unique ids; those without an arrival arrive at 0.
        policy
            Fresh: it knows no agent yet. It is told predictions only.
        predictor
            Gives the predictions.
        tags
            What the fair reference finishes: ``"agent"`` or ``"stage"`` by stage.
        progress
            Called with the number of inferences that ended since its last call, for
            whatever cause; the numbers add up to all of them.

        Raises
        ------
        EngineError
            If the run makes no progress; the message holds the state.
        """

    @abstractmethod
    def about(self) -> dict[str, object]:
        """Return what results say of it: name, preset, capacity_tokens and more."""

    def fit(self, agents: Sequence[AgentSpec]) -> "Fitted | None":
        """Return the agents at a scale that fits; None where any fits as it is."""
        return None

    def close(self) -> None:  # noqa: B027 - most hold nothing
        """Let go of what the engine holds; a later run takes it again."""


def conserved(record: RunRecord, agents: Sequence[AgentSpec]) -> RunRecord:
    """Return `record` once every inference of the workload is accounted for.

    Raises
    ------
    EngineError
        If injected is not finished + cancelled + refused, or an agent ended otherwise
        than its inferences say.
    """
    outcomes: dict[str, list[str]] = {spec.id: [] for spec in agents}
    for inference in record.inferences:
        outcomes[inference.agent].append(inference.outcome)
    for spec, agent in zip(agents, record.agents, strict=True):
        ended = outcomes[spec.id]
        told = ", ".join(f"{ended.count(o)} {o}" for o in sorted(set(ended)))
        if len(ended) != len(spec.inferences):
            raise EngineError(
                f"{len(spec.inferences)} inferences of agent {shown(spec.id)} went in, "
                f"but {told or 'none'} came out"
            )
        allowed = {agent.outcome}
        if agent.outcome == "cancelled":
            allowed.add("finished")  # some of it, before
        if not set(ended) <= allowed:
            raise EngineError(
                f"agent {shown(spec.id)} {agent.outcome}, but with {told}"
            )
    return record
