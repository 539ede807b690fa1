"""What a policy is told about: agents, inferences, and the engine's steps.

The words are the ones of ``docs/architecture.md``. All three are values: frozen,
slotted, compared by content.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from justitia.policy.errors import PolicyError
from justitia.policy.exact import MOST_TOKENS, Number, positive, shown, tokens


@dataclass(frozen=True, slots=True)
class Agent:
    """One job of a user: a set of inferences, done when all of them are done.

    Parameters
    ----------
    id
        Not empty; unique among the agents that a policy knows at one time.
    cost
        The predicted work of all its inferences, in the unit of the policy's cost model
        (token-steps for `KVTokenTime`). Finite and positive.
    weight
        Its share of the machine relative to the others'. Finite and positive.
    kind
        Its type or class, the key of predictors and metrics. A policy may ignore it.
    stage_costs
        The predicted work of each stage, in order; empty where that is not known.
    inferences
        How many it will have in all, or None where that is not known.

    Raises
    ------
    PolicyError
        Naming the field, the value, and what is allowed.
    """

    id: str
    cost: Number
    weight: Number = 1
    kind: str = ""
    stage_costs: tuple[Number, ...] = ()
    inferences: int | None = None

    def __post_init__(self) -> None:
        check_id(self.id, "agent id")
        name = f"of agent {shown(self.id)}"
        put = object.__setattr__
        put(self, "cost", positive(self.cost, f"cost {name}"))
        put(self, "weight", positive(self.weight, f"weight {name}"))
        if not isinstance(self.kind, str):
            raise PolicyError(f"kind {name} must be a str, not {shown(self.kind)}")
        if isinstance(self.stage_costs, str | Mapping) or not hasattr(
            self.stage_costs, "__iter__"
        ):
            raise PolicyError(
                f"stage_costs {name} must be a sequence of numbers, "
                f"not {shown(self.stage_costs)}"
            )
        stages = tuple(positive(c, f"a stage cost {name}") for c in self.stage_costs)
        put(self, "stage_costs", stages)
        if self.inferences is not None:
            put(self, "inferences", tokens(self.inferences, f"inferences {name}"))


@dataclass(frozen=True, slots=True)
class Inference:
    """One LLM call of an agent.

    Parameters
    ----------
    id
        Not empty; unique among the inferences that a policy knows at one time.
    agent
        The id of its agent.
    prompt_tokens
        Tokens of its prompt, p.
    decode_tokens
        Tokens that it is predicted to produce, d. 0 means: computes its prompt only.
    stage
        Inferences of one stage become ready together; stage k+1 waits for stage k.
    """

    id: str
    agent: str
    prompt_tokens: int
    decode_tokens: int
    stage: int = 0

    def __post_init__(self) -> None:
        check_id(self.id, "inference id")
        check_id(self.agent, "agent id")
        for name in ("prompt_tokens", "decode_tokens", "stage"):
            value = getattr(self, name)
            if type(value) is not int or not 0 <= value <= MOST_TOKENS:
                count = tokens(value, f"{name} of inference {shown(self.id)}")
                object.__setattr__(self, name, count)


@dataclass(frozen=True, slots=True)
class Step:
    """One iteration of the engine, or several equal ones told at once.

    One object a step and not one an inference: it is made a hundred times a second
    with hundreds of inferences in it.

    Parameters
    ----------
    prefill
        Prompt tokens computed (or computed again after a preemption), by inference id.
    decode
        Tokens produced, by inference id. An inference whose last prompt token was just
        computed is here too, with its first token. An inference that is to produce
        nothing at all (``decode_tokens`` 0) is here with 0 when its prompt is done.
    """

    prefill: Mapping[str, int] = field(default_factory=dict)
    decode: Mapping[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in ("prefill", "decode"):
            counts: object = getattr(self, name)
            if not isinstance(counts, Mapping):
                raise PolicyError(
                    f"{name} of a step must be a mapping from inference id to tokens, "
                    f"not {shown(counts)}"
                )


def check_id(value: object, what: str) -> None:
    """Raise `PolicyError` unless `value` is a string that is not empty."""
    if not isinstance(value, str):
        raise PolicyError(f"{what} must be a str, not {shown(value)}")
    if not value:
        raise PolicyError(f"{what} must not be empty")
