"""Admission rules: whether the engine has room for the head of the line.

All rules admit what fits an empty engine when nothing runs, so that no reservation
larger than the cache can stop a run.
"""

from collections.abc import Callable, Collection

from justitia.engines.base import EngineError
from justitia.engines.sim.sequence import Sequence
from justitia.policy.exact import shown


class Admission:
    """One admission rule over a cache of blocks.

    Parameters
    ----------
    rule
        ``"none"``: the blocks of all that must be computed before its next token are
        free, as vLLM asks. ``"prompt"``: so much is set aside for all that run, too.
        ``"predicted"`` and ``"max"``: that, and the predicted or the longest decode.
        ``"lookahead"``: VTC's test, that the sequences would never need more than the
        cache at once if each decoded its declared length, one token a step from now.
    blocks
        Blocks in the cache.
    block_size
        KV tokens in a block.
    """

    def __init__(self, rule: str, blocks: int, block_size: int) -> None:
        if rule not in RULES:
            raise EngineError(
                f"admission must be one of {', '.join(RULES)}, not {shown(rule)}"
            )
        self.rule = rule
        self._blocks = blocks
        self._block_size = block_size

    @property
    def monotone(self) -> bool:
        """Whether a refusal stands for as long as the running only decode."""
        return self.rule != "lookahead"

    def room(self, head: Sequence, running: Collection[Sequence], free: int) -> bool:
        """Return whether `head` may start, with `free` blocks that nobody holds.

        Complexity: O(1) for ``none``, else O(r) with r running (``lookahead`` O(r log
        r)).
        """
        if self.size(head.known) > free:
            return False
        if not running or self.rule == "none":
            return True
        if self.rule == "lookahead":
            return self._lookahead([*running, head])
        reserve = _RESERVES[self.rule]
        held = sum(max(self.size(reserve(s)), s.blocks) for s in running)
        return held + self.size(reserve(head)) <= self._blocks

    def size(self, tokens: int) -> int:
        """Return the blocks that hold so many tokens."""
        return -(-tokens // self._block_size)

    def _lookahead(self, sequences: list[Sequence]) -> bool:
        # Each sequence may waste all but one token of its last block.
        waste = self._block_size - 1
        capacity = self._blocks * self._block_size
        by_end = sorted(sequences, key=lambda s: s.produced - s.longest)
        held = 0
        for count, sequence in enumerate(by_end, start=1):
            left = max(0, sequence.longest - sequence.produced)
            held += sequence.known + waste
            if held + count * left > capacity:
                return False
        return True


_RESERVES: dict[str, Callable[[Sequence], int]] = {
    "prompt": lambda s: s.known,
    "predicted": lambda s: s.prompt + max(s.predicted, s.produced),
    "max": lambda s: s.prompt + s.longest,
}
RULES = ("none", *_RESERVES, "lookahead")
