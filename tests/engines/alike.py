"""What every real engine is held against `sim` with."""

from dataclasses import replace

from justitia.engines import RunRecord
from justitia.policy import CostModel, Policy, create
from justitia.policy.exact import Number
from justitia.predictors import Prediction, Predictor
from justitia.workloads import AgentSpec

POLICIES: dict[str, dict[str, object]] = {
    "fcfs": {},
    "agent-fcfs": {},
    "sjf": {},
    "srjf": {},
    "vtc": {},
    "justitia": {},
    "justitia stage": {"tags": "stage"},
    "justitia growth": {"growth": 2},
}
"""Options by name; what follows the first word only tells them apart."""


def make(policy: str) -> Policy:
    return create(policy.split(maxsplit=1)[0], **POLICIES[policy])


class TooShort(Predictor):
    """Predicts a part of what an inference produces, by its position."""

    name = "too short"

    def predict(self, agent: AgentSpec, model: CostModel) -> Prediction:
        decode = tuple(
            max(1, one.decode_tokens * (place % 3 + 1) // 4)
            for place, one in enumerate(agent.inferences)
        )
        costs: dict[int, Number] = {}
        stages = agent.depths()
        for one, tokens, stage in zip(agent.inferences, decode, stages, strict=True):
            costs[stage] = costs.get(stage, 0) + model(one.prompt_tokens, tokens)
        return Prediction(sum(costs.values()), tuple(costs.values()), decode)


def comparable(record: RunRecord) -> RunRecord:
    """Return a record without what is told in other words, or by another clock."""
    agents = tuple(
        replace(agent, reference_finish=None, reason="") for agent in record.agents
    )
    return replace(record, agents=agents, utilisation=None)
