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
    cost, owed
        Its real work in token-steps, and what of that it has still to get.
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
    cost: int = field(init=False)
    owed: int = field(init=False)

    def __post_init__(self) -> None:
        self.id = self.task.told.id
        self.cost = self.owed = _WORK(self.prompt, self.decode)

    @property
    def known(self) -> int:
        """Tokens that are known: what must be computed before the next is produced."""
        return self.prompt + self.produced

    @property
    def delivered(self) -> int:
        """The work that it was delivered: nothing before its first token."""
        return self.cost - self.owed

    def produce(self) -> int:
        """Produce the next token, or none where only the prompt was asked for.

        Return the work that this delivers.
        """
        if not self.decode:
            work = self.owed
        else:
            self.produced += 1
            work = self.prompt + self.produced
        self.owed -= work
        return work
