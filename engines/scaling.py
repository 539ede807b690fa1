"""A workload made to fit an engine that is smaller than those it was drawn for."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

from justitia.workloads import AgentSpec, InferenceSpec


@dataclass(frozen=True, slots=True)
class Fitted:
    """A workload that fits, and the factor that its lengths were multiplied by."""

    agents: tuple[AgentSpec, ...]
    scale: float


def scaled_to(agents: Sequence[AgentSpec], room: int) -> Fitted:
    """Return agents whose longest inference fits into `room` tokens.

    All prompts and outputs are multiplied by the same factor, never more than 1, and
    rounded down, to 1 token at least: a real engine takes no empty prompt, and produces
    at least one token. An inference of one token more than `room` can still come out
    where that is below 2.

    Complexity: O(inferences).

    Examples
    --------
    >>> spec = AgentSpec("a", (InferenceSpec(900, 100), InferenceSpec(10, 0)))
    >>> fitted = scaled_to([spec], 500)
    >>> long, short = fitted.agents[0].inferences
    >>> fitted.scale, long.prompt_tokens, long.decode_tokens, short.decode_tokens
    (0.5, 450, 50, 1)
    """
    longest = max(
        (
            max(1, one.prompt_tokens) + max(1, most_tokens(one))
            for spec in agents
            for one in spec.inferences
        ),
        default=1,
    )
    factor = min(Fraction(1), Fraction(room, longest))
    fitted = tuple(
        replace(spec, inferences=tuple(_scaled(one, factor) for one in spec.inferences))
        for spec in agents
    )
    return Fitted(fitted, float(factor))


def most_tokens(inference: InferenceSpec) -> int:
    """Return the most tokens that an inference may produce."""
    if inference.max_tokens is None:
        return inference.decode_tokens
    return inference.max_tokens


def _scaled(one: InferenceSpec, factor: Fraction) -> InferenceSpec:
    decode = max(1, int(one.decode_tokens * factor))
    most = one.max_tokens
    return replace(
        one,
        prompt_tokens=max(1, int(one.prompt_tokens * factor)),
        decode_tokens=decode,
        max_tokens=None if most is None else max(decode, int(most * factor)),
    )
