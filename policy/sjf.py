"""Shortest job first, inference by inference: vLLM-SJF in the paper."""

from justitia.policy.errors import PolicyError
from justitia.policy.exact import shown
from justitia.policy.ledger import Entry
from justitia.policy.levels import InferenceOrder


class SJF(InferenceOrder):
    """Inferences by predicted length.

    Parameters
    ----------
    by
        ``"decode"``, the predicted decode tokens, as the S³ predictor gives them; or
        ``"cost"``, the predicted KV token-time.
    """

    name = "sjf"

    def __init__(self, *, by: str = "decode") -> None:
        if by not in ("decode", "cost"):
            raise PolicyError(f'by must be "decode" or "cost", not {shown(by)}')
        super().__init__()
        self._by_cost = by == "cost"

    def key(self, entry: Entry) -> tuple[object, ...]:
        """Return the predicted length or cost."""
        inference = entry.inference
        if self._by_cost:
            cost = self.cost_model(inference.prompt_tokens, inference.decode_tokens)
            return (cost,)
        return (inference.decode_tokens,)
