"""What a roster tells a policy, told to a live engine's agents instead."""

from justitia.engines.serving.backend import Backend
from justitia.engines.serving.claims import Claim
from justitia.policy import Agent, CostModel, Inference
from justitia.policy.exact import Number


class Announced:
    """A workload's agents, as somebody would announce them to a server.

    The policy hears of their inferences from the engine, when the engine does.
    """

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    @property
    def cost_model(self) -> CostModel:
        """The policy's."""
        return self._backend.agents.policy.cost_model

    def arrive(self, agent: Agent) -> None:
        """Announce an agent with its predicted cost.

        How many inferences it has is not told: it ends when the roster says so.
        """
        self._backend.agents.announce(
            Claim(agent.id, agent.cost, agent.stage_costs, agent.kind, agent.weight)
        )

    def submit(self, inference: Inference) -> None:
        """Do nothing: the run sends it to the engine, and that tells the policy."""

    def finish(self, inference_id: str) -> bool:
        """Do nothing: the engine has told the policy."""
        return True

    def tag(self, agent_id: str) -> Number | None:
        """Return an agent's tag, None for a policy without."""
        return self._backend.agents.tag(agent_id)

    def leave(self, agent_id: str) -> bool:
        """Let an agent leave, and take what it has in the engine out of it."""
        gone = self._backend.agents.dismiss(agent_id)
        if gone:
            self._backend.abort([self._backend.name(one) for one in gone])
        return gone is not None
