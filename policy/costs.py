"""Cost models: the work of an inference, and how much of it a step delivers.

Cost and service are one function. ``cost(p, n)`` is the work of an inference with p
prompt tokens once it has produced n; its total is ``cost(p, d)``, and a step that takes
it from n to n' delivers ``cost(p, n') - cost(p, n)``, counting 0 before the first
token. So a step that only computes prompt tokens, or holds them, or computes them again
delivers nothing, and what was delivered sums up to the cost exactly.

Source: section 4 of the Justitia paper (KV token-time); ``proofs/README.md`` says why
memory that is merely held must not count.
"""

from abc import ABC, abstractmethod

from justitia.policy.exact import Number


class CostModel(ABC):
    """Work of an inference. Stateless; all methods are O(1) and take counts of tokens.

    A model must not decrease in ``produced`` and must be positive, also for an
    inference that produces nothing: work that costs nothing would always go first.
    """

    @abstractmethod
    def __call__(self, prompt_tokens: int, decode_tokens: int) -> Number:
        """Return the work after `decode_tokens` tokens were produced."""

    def delivered(
        self, prompt_tokens: int, produced: int, decode_tokens: int
    ) -> Number:
        """Return the work after `produced` tokens of `decode_tokens` predicted ones.

        The prediction matters only where the work depends on what was set aside.
        """
        return self(prompt_tokens, produced)

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other)

    def __hash__(self) -> int:
        return hash(type(self))


class KVTokenTime(CostModel):
    """KV tokens held, summed over the tokens produced: p·n + n(n+1)/2 token-steps.

    In the step that produces its i-th token an inference holds p + i KV tokens. One
    that produces nothing holds its prompt for one step.

    >>> KVTokenTime()(10, 1), KVTokenTime()(0, 4), KVTokenTime()(8000, 0)
    (11, 10, 8000)
    """

    def __call__(self, prompt_tokens: int, decode_tokens: int) -> int:
        """Return the work in token-steps."""
        return self.delivered(prompt_tokens, decode_tokens, decode_tokens)

    def delivered(self, prompt_tokens: int, produced: int, decode_tokens: int) -> int:
        """Return the work in token-steps after `produced` tokens."""
        if produced:
            return prompt_tokens * produced + produced * (produced + 1) // 2
        return prompt_tokens or 1


class PaperKVTokenTime(CostModel):
    """The paper's approximation of `KVTokenTime`, p·n + n²/2 token-steps.

    The sum is exact up to n/2; it is here to compare with, halves as floats.

    >>> PaperKVTokenTime()(10, 1)
    10.5
    """

    def __call__(self, prompt_tokens: int, decode_tokens: int) -> Number:
        """Return the work in token-steps."""
        n = decode_tokens
        if not n:
            return prompt_tokens or 0.5
        return prompt_tokens * n + n * n / 2


class ComputeTokens(CostModel):
    """Tokens computed, with a produced one worth two of the prompt: p + 2n.

    The cost of Justitia/C, the paper's ablation, and VTC's price of service.

    >>> ComputeTokens()(10, 3)
    16
    """

    def __call__(self, prompt_tokens: int, decode_tokens: int) -> int:
        """Return the work in prompt-token equivalents."""
        return prompt_tokens + 2 * decode_tokens or 1


class ReservedTokenTime(CostModel):
    """KV tokens set aside for the whole run: (p + d)·n token-steps.

    What an inference costs on an engine that reserves its peak before it starts. One
    that outruns its prediction is taken to hold what it has produced.

    >>> ReservedTokenTime()(10, 5), ReservedTokenTime().delivered(10, 2, 5)
    (75, 30)
    """

    def __call__(self, prompt_tokens: int, decode_tokens: int) -> int:
        """Return the work in token-steps, all `decode_tokens` produced."""
        return self.delivered(prompt_tokens, decode_tokens, decode_tokens)

    def delivered(self, prompt_tokens: int, produced: int, decode_tokens: int) -> int:
        """Return the work in token-steps after `produced` of `decode_tokens`."""
        if not produced:
            return prompt_tokens or 1
        return (prompt_tokens + max(produced, decode_tokens)) * produced


COST_MODELS: dict[str, type[CostModel]] = {
    "kv": KVTokenTime,
    "kv-paper": PaperKVTokenTime,
    "compute": ComputeTokens,
    "reserved": ReservedTokenTime,
}
"""The models by the name that a configuration file gives them."""
