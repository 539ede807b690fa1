"""First come, first served among agents, the deepest stage first inside: Ayo's order.

Source: Tan et al., "Towards End-to-End Optimization of LLM-based Applications with
Ayo", ASPLOS 2025, and its code, the topology mode of the engines' batches.
"""

from justitia.policy.ledger import Account
from justitia.policy.levels import AgentOrder


class Ayo(AgentOrder):
    """Agents in order of arrival; in an agent what is closest to its end first.

    Where a stage waits for all of the one before, an agent has one stage in line at a
    time, and this is `AgentFCFS` to the last start. It differs for agents whose
    inferences wait for some of the others only.

    Differs from Ayo's code: that counts depth backwards, from the agent's last
    inference; a policy here is told `Inference.stage`, the depth from the first on. The
    two differ where branches of one agent have different lengths. Ayo's other modes,
    first come first served without stages and a batch that is filled up with the same
    operator of other agents, are `fcfs` and no matter of order.
    """

    name = "ayo"
    static_order = True
    by_stage = True

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        """Return the number of the agent's arrival, then the stage, deepest first."""
        return (account.seq, -stage)
