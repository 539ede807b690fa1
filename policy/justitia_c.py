"""Selective pampering by compute tokens: the paper's ablation Justitia/C."""

from justitia.policy.costs import CostModel
from justitia.policy.exact import Number
from justitia.policy.justitia import SelectivePampering


class ComputePampering(SelectivePampering):
    """`SelectivePampering` with the cost p + 2d, blind to how long memory is held."""

    name = "justitia-c"

    def __init__(
        self,
        *,
        tags: str = "agent",
        cost: str | CostModel = "compute",
        growth: Number | None = None,
        clock: str = "delivered",
        capacity: Number | None = None,
        step_seconds: Number = 1,
    ) -> None:
        super().__init__(
            tags=tags,
            cost=cost,
            growth=growth,
            clock=clock,
            capacity=capacity,
            step_seconds=step_seconds,
        )
