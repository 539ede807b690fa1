"""An inference on the simulated engine, and the memory that it holds."""

from dataclasses import dataclass, field

from justitia.engines.roster import Task
from justitia.policy import KVTokenTime

_WORK = KVTokenTime()


@dataclass(slots=True, eq=False)
class Sequence:
    """One inference in line or running.

    Attributes
    ----------
    prompt, decode
        Its real lengths in tokens.
    predicted, longest
        Decode tokens that the policy was told, and that its client allows.
    produced
        Tokens it has produced.
    computed
        Tokens whose keys and values are in the cache.
    blocks
        Blocks of the cache that it holds.
    prefilling
        Whether it still computes its prompt (or again what it lost).
    swapped
        KV tokens of it that lie in host memory.
    preempted
        How often it was taken out.
    """

    task: Task
    prompt: int
    decode: int
    predicted: int
    longest: int
    produced: int = 0
    computed: int = 0
    blocks: int = 0
    prefilling: bool = True
    swapped: int = 0
    preempted: int = 0
    start_step: int | None = None
    start: int | None = None
    id: str = field(init=False)

    def __post_init__(self) -> None:
        self.id = self.task.told.id

    @property
    def known(self) -> int:
        """Tokens that are known: what must be computed before the next is produced."""
        return self.prompt + self.produced

    @property
    def cost(self) -> int:
        """Its real work in token-steps."""
        return _WORK(self.prompt, self.decode)

    @property
    def delivered(self) -> int:
        """The work that it was delivered: nothing before its first token."""
        if self.produced or not (self.decode or self.prefilling):
            return _WORK(self.prompt, self.produced)
        return 0
