"""The predictor that knows: every experiment's upper bound."""

from justitia.policy import CostModel
from justitia.predictors.base import Prediction, Predictor
from justitia.workloads.agents import AgentSpec


class Oracle(Predictor):
    """Predicts what will really happen.

    An agent without inferences is given the cost of an empty inference, since a cost
    of 0 is none.
    """

    name = "oracle"

    def predict(self, agent: AgentSpec, model: CostModel) -> Prediction:
        """Return the real costs and lengths. O(inferences)."""
        return Prediction(
            cost=agent.cost(model) or model(0, 0),
            stage_costs=agent.stage_costs(model),
            decode_tokens=tuple(one.decode_tokens for one in agent.inferences),
        )
