"""Shortest remaining job first, agent by agent: SRJF in the paper.

A very good mean with exact predictions, and no promise to anybody: a large agent waits
for as long as smaller ones keep arriving.
"""

from justitia.policy.agents import Step
from justitia.policy.exact import Number
from justitia.policy.ledger import Account
from justitia.policy.levels import AgentOrder


class SRJF(AgentOrder):
    """Agents by predicted cost less service delivered, not below 0."""

    name = "srjf"

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        """Return the remaining predicted cost."""
        remaining: Number = max(0, account.cost - account.service)
        return (remaining,)

    def served(self, step: Step) -> None:
        """Move the agents that the step served and that wait for more."""
        for account in self.deliver(step):
            self.reorder(account)
