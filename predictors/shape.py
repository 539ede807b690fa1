"""What the agents of a class are made of, stage by stage."""

from collections.abc import Iterable, Sequence

from justitia.policy import CostModel
from justitia.policy.exact import LARGEST, MOST_TOKENS, SMALLEST, Number

DEEPEST = 64
"""Stages that are told apart; what is deeper counts as the last of them."""


class Shape:
    """How a class's cost and tokens are spread over an agent's stages.

    Keeps for each depth the number of calls, their cost, and the tokens that they
    produced. O(`DEEPEST`) memory whatever it is taught.
    """

    def __init__(self) -> None:
        self._calls: list[int] = []
        self._cost: list[float] = []
        self._decode: list[int] = []

    def learn(self, calls: Iterable[tuple[int, int, int]], model: CostModel) -> None:
        """Take note of calls: their depths, prompt tokens and decode tokens."""
        for depth, prompt, decode in calls:
            place = min(depth, DEEPEST - 1)
            while len(self._calls) <= place:
                self._calls.append(0)
                self._cost.append(0.0)
                self._decode.append(0)
            self._calls[place] += 1
            self._cost[place] += float(model(prompt, decode))
            self._decode[place] += decode

    def stage_costs(self, cost: Number, depths: Sequence[int]) -> tuple[Number, ...]:
        """Divide an agent's cost among its stages, by what their calls cost on average.

        O(inferences + stages).
        """
        if not depths:
            return ()
        parts = [0.0] * (max(depths) + 1)
        known = [self._mean(self._cost, depth) for depth in range(len(parts))]
        for depth in depths:
            parts[depth] += known[depth]
        whole = sum(parts)
        return tuple(
            min(max(float(cost) * part / whole, SMALLEST), LARGEST) for part in parts
        )

    def decode_tokens(self, depth: int, factor: float = 1.0) -> int:
        """Return what a call at this depth produces on average, times a factor."""
        mean = self._mean(self._decode, depth) * factor
        return max(1, round(min(mean, float(MOST_TOKENS // 2))))

    def _mean(self, sums: Sequence[float], depth: int) -> float:
        """Return the mean at a depth; of the last that is known, where it is not."""
        place = min(depth, len(self._calls) - 1)
        while place > 0 and not self._calls[place]:
            place -= 1
        if place < 0 or not self._calls[place]:
            return 1.0
        return max(sums[place] / self._calls[place], SMALLEST)

    def _check(self) -> None:
        """Assert all invariants."""
        assert len(self._calls) == len(self._cost) == len(self._decode) <= DEEPEST
        for calls, cost, decode in zip(
            self._calls, self._cost, self._decode, strict=True
        ):
            assert calls >= 0
            assert (cost > 0) == (calls > 0)
            assert decode >= 0
            assert calls or not decode
