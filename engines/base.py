"""The contract of an engine: agents and a policy in, records out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence

from justitia.engines.records import RunRecord
from justitia.policy import Policy, PolicyError
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
            Called with the number of inferences that ended since its last call.

        Raises
        ------
        EngineError
            If the run makes no progress; the message holds the state.
        """


def conserved(record: RunRecord, injected: int) -> RunRecord:
    """Return `record` once every inference of the workload is accounted for.

    Raises
    ------
    EngineError
        If injected is not finished + cancelled + refused.
    """
    counts = {"finished": 0, "cancelled": 0, "refused": 0}
    for inference in record.inferences:
        counts[inference.outcome] += 1
    if sum(counts.values()) != injected:
        told = ", ".join(f"{n} {outcome}" for outcome, n in counts.items())
        raise EngineError(f"{injected} inferences went in, but {told} came out")
    return record
