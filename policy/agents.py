"""What a policy is told about: agents, inferences, and the engine's steps.

The words are the ones of ``docs/architecture.md``. All three are values: frozen,
slotted, compared by content. They are written out, since `dataclasses` takes longer to
import than all of the policy.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from types import MappingProxyType

from justitia.policy.errors import PolicyError
from justitia.policy.exact import MOST_TOKENS, Number, positive, shown, tokens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Self

_put = object.__setattr__
_NOTHING: Mapping[str, int] = MappingProxyType({})


class _Value:
    """A frozen object whose slots are the parameters that it was made with."""

    __slots__: tuple[str, ...] = ()

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; {name!r} cannot be set")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} is frozen; {name!r} stays")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash(self._values())

    def __repr__(self) -> str:
        fields = ", ".join(f"{name}={getattr(self, name)!r}" for name in self.__slots__)
        return f"{type(self).__name__}({fields})"

    def __reduce__(self) -> tuple[type[Self], tuple[Any, ...]]:
        return type(self), self._values()

    def __replace__(self, /, **changes: Any) -> Self:  # noqa: ANN401 - any field
        """Return it with some fields changed: ``copy.replace`` of Python 3.13."""
        fields = {name: getattr(self, name) for name in self.__slots__}
        return type(self)(**{**fields, **changes})

    def _values(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__slots__)


class Agent(_Value):
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

    __slots__ = ("id", "cost", "weight", "kind", "stage_costs", "inferences")  # noqa: RUF023 - in order

    id: str
    cost: Number
    weight: Number
    kind: str
    stage_costs: tuple[Number, ...]
    inferences: int | None

    def __init__(  # noqa: PLR0917 - a value of six fields
        self,
        id: str,
        cost: Number,
        weight: Number = 1,
        kind: str = "",
        stage_costs: Iterable[Number] = (),
        inferences: int | None = None,
    ) -> None:
        check_id(id, "agent id")
        name = f"of agent {shown(id)}"
        if not isinstance(kind, str):
            raise PolicyError(f"kind {name} must be a str, not {shown(kind)}")
        if isinstance(stage_costs, str | Mapping) or not hasattr(
            stage_costs, "__iter__"
        ):
            raise PolicyError(
                f"stage_costs {name} must be a sequence of numbers, "
                f"not {shown(stage_costs)}"
            )
        _put(self, "id", id)
        _put(self, "cost", positive(cost, f"cost {name}"))
        _put(self, "weight", positive(weight, f"weight {name}"))
        _put(self, "kind", kind)
        stages = tuple(positive(c, f"a stage cost {name}") for c in stage_costs)
        _put(self, "stage_costs", stages)
        if inferences is not None:
            inferences = tokens(inferences, f"inferences {name}")
        _put(self, "inferences", inferences)


class Inference(_Value):
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

    __slots__ = ("id", "agent", "prompt_tokens", "decode_tokens", "stage")  # noqa: RUF023 - in order

    id: str
    agent: str
    prompt_tokens: int
    decode_tokens: int
    stage: int

    def __init__(
        self,
        id: str,
        agent: str,
        prompt_tokens: int,
        decode_tokens: int,
        stage: int = 0,
    ) -> None:
        check_id(id, "inference id")
        check_id(agent, "agent id")
        _put(self, "id", id)
        _put(self, "agent", agent)
        for name, count in (
            ("prompt_tokens", prompt_tokens),
            ("decode_tokens", decode_tokens),
            ("stage", stage),
        ):
            if type(count) is not int or not 0 <= count <= MOST_TOKENS:
                count = tokens(count, f"{name} of inference {shown(id)}")  # noqa: PLW2901
            _put(self, name, count)


class Step(_Value):
    """One iteration of the engine, or several equal ones told at once.

    One object a step and not one an inference: it is made a hundred times a second
    with hundreds of inferences in it. The mappings are kept as they are, not copied,
    and their counts are plain ints.

    Parameters
    ----------
    prefill
        Prompt tokens computed (or computed again after a preemption), by inference id.
    decode
        Tokens produced, by inference id. An inference whose last prompt token was just
        computed is here too, with its first token. An inference that is to produce
        nothing at all (``decode_tokens`` 0) is here with 0 when its prompt is done.
    """

    __slots__ = ("prefill", "decode")  # noqa: RUF023 - in order

    prefill: Mapping[str, int]
    decode: Mapping[str, int]

    def __init__(
        self,
        prefill: Mapping[str, int] = _NOTHING,
        decode: Mapping[str, int] = _NOTHING,
    ) -> None:
        for name, counts in (("prefill", prefill), ("decode", decode)):
            if not isinstance(counts, Mapping):
                raise PolicyError(
                    f"{name} of a step must be a mapping from inference id to tokens, "
                    f"not {shown(counts)}"
                )
            # A mapping proxy cannot be copied or pickled.
            _put(self, name, {} if counts is _NOTHING else counts)


def check_id(value: object, what: str) -> None:
    """Raise `PolicyError` unless `value` is a string that is not empty."""
    if not isinstance(value, str):
        raise PolicyError(f"{what} must be a str, not {shown(value)}")
    if not value:
        raise PolicyError(f"{what} must not be empty")
