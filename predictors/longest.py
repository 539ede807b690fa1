"""The most that an agent may cost: every inference produces all that it may."""

from justitia.policy import CostModel
from justitia.policy.exact import Number
from justitia.predictors.base import Prediction, Predictor
from justitia.workloads.agents import AgentSpec

UNLIMITED_TOKENS = 2048
"""What an inference without a limit is taken to produce."""


class Longest(Predictor):
    """Predicts that every inference produces its ``max_tokens``.

    What a server can know without any model, and what one that sets aside the whole
    answer does with it. It takes the real prompts of all inferences, those of later
    stages too, so it knows more than it could, and is wrong all the same.
    """

    name = "max"

    def predict(self, agent: AgentSpec, model: CostModel) -> Prediction:
        """Return the costs at the limits. O(inferences)."""
        decode = tuple(
            UNLIMITED_TOKENS if one.max_tokens is None else one.max_tokens
            for one in agent.inferences
        )
        depths = agent.depths()
        costs: list[Number] = [0] * (max(depths, default=-1) + 1)
        for depth, one, tokens in zip(depths, agent.inferences, decode, strict=True):
            costs[depth] += model(one.prompt_tokens, tokens)
        return Prediction(sum(costs) or model(0, 0), tuple(costs), decode)
