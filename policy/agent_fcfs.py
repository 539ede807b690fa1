"""First come, first served, agent by agent: Parrot's order.

Source: Lin et al., OSDI 2024 (application-level queue).
"""

from justitia.policy.ledger import Account
from justitia.policy.levels import AgentOrder


class AgentFCFS(AgentOrder):
    """All inferences of an agent before those of any that arrived later."""

    name = "agent-fcfs"
    static_order = True

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        """Return nothing: arrival decides."""
        return ()
