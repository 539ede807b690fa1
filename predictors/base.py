"""What a predictor is asked and what it answers."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from justitia.policy import CostModel
from justitia.policy.exact import Number, positive, tokens
from justitia.workloads.agents import AgentSpec


@dataclass(frozen=True, slots=True)
class Prediction:
    """What is thought of an agent before it runs.

    Parameters
    ----------
    cost
        Work of all its inferences, in the unit of the cost model that was asked for.
        Finite and positive.
    stage_costs
        Work by stage, as `AgentSpec.depths` counts stages. Each finite and positive.
    decode_tokens
        Tokens that each inference will produce, by position.
    high
        What the real cost is not above in nine of ten agents, for what is set aside;
        not below `cost`. None where the predictor does not say.
    source
        Which model answered (see `justitia.predictors.learned.SOURCES`); empty for
        predictors that have one.

    Raises
    ------
    PolicyError
        If a cost is not finite and positive, or a count of tokens is none.
    """

    cost: Number
    stage_costs: tuple[Number, ...]
    decode_tokens: tuple[int, ...]
    high: Number | None = None
    source: str = ""

    def __post_init__(self) -> None:
        put = object.__setattr__
        put(self, "cost", positive(self.cost, "predicted cost"))
        costs = tuple(positive(c, "predicted stage cost") for c in self.stage_costs)
        put(self, "stage_costs", costs)
        counts = tuple(tokens(d, "predicted decode_tokens") for d in self.decode_tokens)
        put(self, "decode_tokens", counts)
        if self.high is not None:
            high = positive(self.high, "predicted high cost")
            put(self, "high", max(high, self.cost))


@dataclass(frozen=True, slots=True)
class Estimate:
    """What an agent is thought to cost in all.

    Attributes
    ----------
    cost
        KV token-steps.
    high
        Nine of ten agents cost no more.
    source
        Which model answered; see `justitia.predictors.learned.SOURCES`.
    """

    cost: float
    high: float
    source: str

    @property
    def fallback(self) -> bool:
        """Whether anything but the model of the agent's class answered."""
        return self.source != "class"


class Predictor(ABC):
    """Gives the cost of an agent before it runs.

    An honest one looks only at what is known when the agent arrives: its kind and its
    text, and the prompts of the inferences that are ready then. The same agent gets the
    same prediction whenever it is asked for, unless something was learned in between.
    """

    name: str = ""
    """What `justitia.predictors.create` makes it from."""

    @abstractmethod
    def predict(self, agent: AgentSpec, model: CostModel) -> Prediction:
        """Return what `agent` is thought to cost under `model`."""

    def learn(self, agent: AgentSpec, model: CostModel) -> None:  # noqa: B027
        """Take note of an agent that has finished, whose lengths are known by now."""

    def notes(self) -> tuple[str, ...]:
        """Return what a user should know of its answers so far, a sentence each."""
        return ()
