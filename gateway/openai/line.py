"""What a roster tells a policy, told to the gateway's dispatcher instead."""

from justitia.engines.serving.claims import Claim
from justitia.gateway.dispatcher import Dispatcher
from justitia.gateway.settings import OPEN_TENANT
from justitia.policy import Agent, CostModel, Inference
from justitia.policy.exact import Number


class Line:
    """A workload's agents, as their owner would announce them to a gateway.

    The policy hears of their inferences as calls, when they are submitted.
    """

    def __init__(self, dispatcher: Dispatcher) -> None:
        self._dispatcher = dispatcher

    @property
    def cost_model(self) -> CostModel:
        """The policy's."""
        return self._dispatcher.agents.policy.cost_model

    def arrive(self, agent: Agent) -> None:
        """Announce an agent; how many inferences it has is not told."""
        self._dispatcher.agents.announce(
            Claim(
                owned(agent.id),
                agent.cost,
                agent.stage_costs,
                agent.kind,
                agent.weight,
            )
        )

    def submit(self, inference: Inference) -> None:
        """Do nothing: the run submits a call."""

    def finish(self, inference_id: str) -> bool:
        """Do nothing: the run finishes the call."""
        return True

    def tag(self, agent_id: str) -> Number | None:
        """Return an agent's tag, None for a policy without."""
        return self._dispatcher.agents.tag(owned(agent_id))

    def leave(self, agent_id: str) -> bool:
        """Let an agent leave, and end the calls that it has."""
        return self._dispatcher.dismiss(OPEN_TENANT, agent_id) is not None


def owned(agent_id: str) -> str:
    """Return the name by which the dispatcher knows an agent."""
    return f"{OPEN_TENANT}/{agent_id}"
