"""The contract of an engine: agents and a policy in, records out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from justitia.engines.records import RunRecord
from justitia.policy import Policy, PolicyError
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec


class EngineError(PolicyError):
    """An engine that is not to be had, or a run that cannot go on."""


class Engine(ABC):
    """Runs agents to their end under a policy."""

    name: str = ""

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
