"""The mean of what agents of the class have cost so far."""

from dataclasses import dataclass, field

from justitia.policy import CostModel
from justitia.policy.exact import LARGEST, SMALLEST, Number
from justitia.predictors.base import Prediction, Predictor
from justitia.predictors.shape import Shape
from justitia.workloads.agents import AgentSpec

MOST_KINDS = 1000
"""Classes that are told apart; agents of further ones count as of no class."""
UNKNOWN_TOKENS = 256
"""What an inference is thought to produce before any agent has finished."""


@dataclass(slots=True)
class _Known:
    agents: int = 0
    cost: float = 0.0
    shape: Shape = field(default_factory=Shape)


class Mean(Predictor):
    """Predicts the mean cost of the finished agents of a class.

    A class of which none has finished gets the mean of all agents; before the first of
    all, an agent costs what its inferences do that are ready when it arrives, at
    `UNKNOWN_TOKENS` tokens each. Taught under one cost model, asked under the same: a
    change of model starts anew.

    Complexity: O(inferences of the agent) to ask and to teach; memory O(classes), at
    most `MOST_KINDS` of them.
    """

    name = "mean"

    def __init__(self) -> None:
        self._model: CostModel | None = None
        self._all = _Known()
        self._kinds: dict[str, _Known] = {}

    def predict(self, agent: AgentSpec, model: CostModel) -> Prediction:
        """Return the mean of the agents that have finished."""
        depths = agent.depths()
        known = self._kinds.get(agent.kind, self._all) if model == self._model else None
        if known is None or not known.agents:
            return _first(agent, depths, model)
        cost = min(max(known.cost / known.agents, SMALLEST), LARGEST)
        return Prediction(
            cost,
            known.shape.stage_costs(cost, depths),
            tuple(known.shape.decode_tokens(depth) for depth in depths),
        )

    def learn(self, agent: AgentSpec, model: CostModel) -> None:
        """Add an agent that has finished to the mean of its class."""
        if not agent.inferences:
            return
        if model != self._model:
            self._model = model
            self._all = _Known()
            self._kinds = {}
        cost = float(agent.cost(model))
        calls = [
            (depth, one.prompt_tokens, one.decode_tokens)
            for depth, one in zip(agent.depths(), agent.inferences, strict=True)
        ]
        known = [self._all]
        if agent.kind in self._kinds or len(self._kinds) < MOST_KINDS:
            known.append(self._kinds.setdefault(agent.kind, _Known()))
        for one in known:
            one.agents += 1
            one.cost += cost
            one.shape.learn(calls, model)

    def _check(self) -> None:
        """Assert all invariants."""
        assert len(self._kinds) <= MOST_KINDS
        assert sum(one.agents for one in self._kinds.values()) <= self._all.agents
        for known in (self._all, *self._kinds.values()):
            known.shape._check()
            assert (known.cost > 0) == (known.agents > 0)


def _first(agent: AgentSpec, depths: tuple[int, ...], model: CostModel) -> Prediction:
    """Return what is thought of an agent before anything is known."""
    ready = [
        one.prompt_tokens
        for depth, one in zip(depths, agent.inferences, strict=True)
        if depth == 0
    ]
    prompt = sum(ready) // len(ready) if ready else 0
    stages: list[Number] = [0] * (max(depths, default=-1) + 1)
    for depth in depths:
        stages[depth] += model(prompt, UNKNOWN_TOKENS)
    return Prediction(
        sum(stages) or model(0, 0), tuple(stages), (UNKNOWN_TOKENS,) * len(depths)
    )
