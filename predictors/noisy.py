"""The oracle with an error of known size, to see what errors do.

Source: section 5 of the Justitia paper, robustness to prediction errors.
"""

from math import exp, log

from justitia.policy import CostModel
from justitia.policy.exact import LARGEST, MOST_TOKENS, SMALLEST, Number, finite, shown
from justitia.predictors.base import Prediction, Predictor
from justitia.predictors.oracle import Oracle
from justitia.workloads.agents import AgentSpec, WorkloadError
from justitia.workloads.draws import stream


class Noisy(Predictor):
    """The real values times one factor an agent, log-uniform in [1/spread, spread].

    Parameters
    ----------
    spread
        The paper's λ, at least 1; 1 is the oracle.
    seed
        The factor depends on this and on the agent's id alone, so it is the same in
        whatever order agents are asked for, and under every policy.

    Raises
    ------
    PolicyError
        If `spread` is not a finite number of at least 1.
    """

    def __init__(self, spread: Number, seed: int = 0) -> None:
        if finite(spread, "the spread λ of noisy") < 1:
            raise WorkloadError(
                f"the spread λ of noisy must be at least 1, not {shown(spread)}"
            )
        self.spread = spread
        self.seed = seed
        self.name = f"noisy:{float(spread):g}"
        self._oracle = Oracle()

    def factor(self, agent_id: str) -> float:
        """Return what an agent's real values are multiplied by."""
        place = 2 * stream(self.seed, f"noisy/{agent_id}").random() - 1
        return exp(place * log(self.spread))

    def predict(self, agent: AgentSpec, model: CostModel) -> Prediction:
        """Return the real values times the agent's factor. O(inferences)."""
        truth = self._oracle.predict(agent, model)
        if self.spread == 1:
            return truth
        factor = self.factor(agent.id)
        return Prediction(
            cost=_scaled(truth.cost, factor),
            stage_costs=tuple(_scaled(cost, factor) for cost in truth.stage_costs),
            decode_tokens=tuple(
                min(max(round(d * factor), min(d, 1)), MOST_TOKENS)
                for d in truth.decode_tokens
            ),
        )


def _scaled(cost: Number, factor: float) -> Number:
    """Return cost * factor, kept within what a policy takes for a cost."""
    return min(max(float(cost) * factor, SMALLEST), LARGEST)
