"""An inference in a real engine."""

from dataclasses import dataclass

from justitia.engines.roster import Task
from justitia.engines.scaling import most_tokens
from justitia.policy import KVTokenTime

_WORK = KVTokenTime()


@dataclass(slots=True)
class Running:
    """An inference that was sent and has not ended; see `justitia.engines.results.Ran`.

    Attributes
    ----------
    inside
        Whether it is in the batch; else it is in line.
    """

    task: Task
    start_step: int | None = None
    start: int | None = None
    preempted: int = 0
    produced: int = 0
    inside: bool = False

    @property
    def id(self) -> str:
        """Its id in the run."""
        return self.task.told.id

    @property
    def cost(self) -> int:
        """The work of all of it."""
        return _WORK(self.task.spec.prompt_tokens, self.task.spec.decode_tokens)

    @property
    def delivered(self) -> int:
        """The work that it was delivered; 0 before the first token."""
        done = min(self.produced, self.task.spec.decode_tokens)
        if done:
            return _WORK(self.task.spec.prompt_tokens, done)
        return self.cost if self.produced else 0  # its only token is one too many

    @property
    def owed(self) -> int:
        """The work that it has still to get."""
        return self.cost - self.delivered

    @property
    def missing(self) -> int:
        """The tokens that it has still to produce."""
        return max(0, self.task.spec.decode_tokens - self.produced)

    @property
    def may_go_on_too_long(self) -> bool:
        """Whether it has its tokens, and the engine would go on."""
        longest = max(1, most_tokens(self.task.spec))
        return max(1, self.task.spec.decode_tokens) <= self.produced < longest

    def produce(self, tokens: int) -> int:
        """Take note of tokens, and return the work that they are.

        Tokens that come of a step already under way when it had all of its own are
        none.
        """
        before = self.delivered
        self.produced += tokens
        return self.delivered - before
