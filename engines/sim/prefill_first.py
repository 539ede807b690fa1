"""The rules by which SGLang fills a step, as a batch of `sim`: pages of one token.

A step computes prompts, or it decodes: prompts first.

- A prompt that was cut goes on; then the head of the line is admitted for as long as
  there are a seat, a token of the step's budget, and room. Room for a request is more
  than its known tokens, those that it may still produce, and one. What is left for it
  is the cache, less what is held, less what those that decode may still produce, and
  less what those admitted before it in this step have and may produce, and one each.
- What those that decode may still produce counts in full with reservation, and else
  with a ratio that SGLang lowers in every decode step, and raises once memory was
  short.
- Once the head of the line had no room, it is not looked at again until a request
  leaves the batch, or another is the head.
- In a decode step all that decode get a token. If that is more than is free, those that
  the policy names give way, one at least, and the others go on in the order in which
  they would have: so they end, where several end in one step.
"""

from dataclasses import dataclass

from justitia.engines.base import EngineError
from justitia.engines.sim.admission import Admission
from justitia.engines.sim.batch import Batch, Schedule
from justitia.engines.sim.preset import Preset
from justitia.engines.sim.sequence import Sequence
from justitia.policy import Policy

SPARE = 2
"""Tokens of SGLang's cache that no request can ever have: see above, twice one."""
RESERVED = "max"
"""The admission under which nobody gives way."""
ADMISSIONS = ("none", RESERVED)


@dataclass
class Ratio:
    """What part of what the running may produce is taken for certain.

    Parameters
    ----------
    first, least
        Where it starts, and what it falls to.
    fall
        By how much, in each decode step.
    ahead
        Decode steps that are counted on once memory was short.
    """

    first: float
    least: float
    fall: float
    ahead: int

    def __post_init__(self) -> None:
        self.now = self.first

    def decode(self) -> None:
        """Take note of a decode step for which there was memory."""
        self.now = max(self.now - self.fall, self.least)

    def short(self, left: list[Sequence]) -> None:
        """Take note that memory was short, and who is left."""
        produced = sum(one.produced for one in left)
        longest = sum(one.longest for one in left)
        self.now = min(1.0, (produced + self.ahead * len(left)) / (longest + 1))


def usual() -> Ratio:
    """Return what SGLang starts with unless its variables say otherwise."""
    return Ratio(first=0.7, least=0.7 * 0.14, fall=0.7 * (1 - 0.14) / 600, ahead=20)


class PrefillFirst(Batch):
    """See above; `ratio` None is reservation.

    Raises
    ------
    EngineError
        For pages of more than one token, or a cache that leaves no request room.
    """

    def __init__(self, preset: Preset, policy: Policy, ratio: Ratio | None) -> None:
        if preset.block_size != 1 or preset.capacity_tokens <= SPARE:
            raise EngineError(
                f"preset {preset.name}: SGLang's rules are simulated with a block_size "
                f"of 1 and more than {SPARE} tokens of capacity, not "
                f"{preset.block_size} and {preset.capacity_tokens}"
            )
        rule = Admission("none", preset.capacity_tokens, 1)
        super().__init__(preset, rule, policy, swap=False)
        self.room -= SPARE
        self._displaces = False  # a batch that runs is never made to make way
        self.ratio = ratio
        self.cut: Sequence | None = None  # its prompt goes on in the next step
        self.full = False
        self.refused = ""  # who last had no room

    def remove(self, sequence: Sequence) -> None:
        """Forget a sequence that ended; there may be room again."""
        if sequence in self.running:
            self.full = False
        super().remove(sequence)

    def steady(self) -> bool:
        """Return False: every step is looked at."""
        return False

    def schedule(self) -> Schedule:
        """Fix the next batch, of prompts or of decoding sequences."""
        schedule = Schedule()
        self._prefill(schedule)
        if not schedule.chunks and self.running:
            self._decode(schedule)
        return schedule

    def _prefill(self, schedule: Schedule) -> None:
        """Go on with the prompt that was cut, and start who has room."""
        decoding = [one for one in self.running if one is not self.cut]
        head = self._head()
        if head is None or head.id != self.refused:
            self.full = False
        if self.cut is not None or not decoding:
            self.full = False
        elif self.full or not self.waiting:
            return
        # In the order and the types that SGLang adds in, so that floats come out alike.
        taken: float = sum([self._to_come(one) for one in decoding])
        free, budget = self.free, self.preset.max_num_batched_tokens
        if self.cut is not None:
            one, left = self.cut, int(free - taken)
            chunk = min(
                one.known - one.computed, min(budget, left) if left > 0 else budget
            )
            whole = one.computed + chunk == one.known
            self._give(one, chunk, schedule)
            taken += chunk + 1 + (one.longest if whole else 0)
            budget -= chunk
            self.cut = None if whole else one
        while self.waiting and (budget > 0 or free - taken <= 0):
            if len(self.running) >= self.preset.max_num_seqs:
                self.full = bool(decoding)
                return
            head = self._head()
            if head is None:
                return
            if head.known + head.longest - head.produced + 1 >= free - taken:
                self.full = bool(decoding)
                self.refused = head.id
                self._policy.refuse(head.id)
                return
            chunk = min(head.known, budget)
            self._start(head, chunk, schedule)
            if chunk < head.known:
                self.cut = head
            taken += chunk + 1 + (0 if chunk < head.known else head.longest)
            budget -= chunk
            if free - taken <= 0:
                self.full = bool(decoding)
                return

    def _start(self, head: Sequence, chunk: int, schedule: Schedule) -> None:
        self._policy.start(head.id)
        del self.waiting[head.id]
        self.running.append(head)
        schedule.started.append(head)
        self._give(head, chunk, schedule)

    def _to_come(self, one: Sequence) -> float:
        ratio = 1.0 if self.ratio is None else self.ratio.now
        return (one.longest - one.produced) * ratio

    def _decode(self, schedule: Schedule) -> None:
        """Give each a token; where there is no room for that, make some give way."""
        if len(self.running) <= self.free:
            if self.ratio is not None:
                self.ratio.decode()
        else:
            assert self.ratio is not None, "somebody gave way for all the reservation"
            self.running = [self._live[one.id] for one in self._policy.victims()][::-1]
            while True:
                self._preempt(self.running[-1])
                if len(self.running) <= self.free:
                    break
            self.full = False
            self.ratio.short(self.running)
        for one in self.running:
            self._give(one, 1, schedule)
