"""First come, first served, inference by inference: what vLLM and SGLang do."""

from justitia.policy.ledger import Entry
from justitia.policy.levels import InferenceOrder


class FCFS(InferenceOrder):
    """Inferences in order of submission; the newest gives way first."""

    name = "fcfs"

    def key(self, entry: Entry) -> tuple[object, ...]:
        """Return nothing: submission decides."""
        return ()
