"""The running batch of the simulated engine: one step's schedule, as vLLM makes it."""

from dataclasses import dataclass, field

from justitia.engines.base import EngineError
from justitia.engines.limits import displaces, without_displacing
from justitia.engines.sim.admission import Admission
from justitia.engines.sim.preset import Preset
from justitia.engines.sim.sequence import Sequence
from justitia.policy import Inference, Policy
from justitia.policy.exact import shown


@dataclass(slots=True)
class Schedule:
    """What one step runs.

    Attributes
    ----------
    chunks
        Tokens to compute, by sequence, in the order in which they were scheduled.
    started
        The sequences taken from the line for it.
    swapped
        KV tokens moved between GPU and host memory.
    """

    chunks: dict[Sequence, int] = field(default_factory=dict)
    started: list[Sequence] = field(default_factory=list)
    swapped: int = 0


class Batch:
    """The running sequences and the cache that they share.

    A step first gives every running sequence its next chunk, in order of start; one
    whose block cannot be had makes the policy's victim give way. If that is itself,
    those behind it get nothing in this step, as in vLLM. If nobody had to give way, the
    head of the line is admitted for as long as there is room for all its known tokens:
    nothing behind a refused head is looked at.

    Before all that, a policy whose waiting may take the place of the running is asked
    for each in line in turn: what it puts behind that one gives way until there is
    room.

    Parameters
    ----------
    swap
        Whether one that gives way keeps its KV in host memory, and is not recomputed.
    """

    def __init__(
        self, preset: Preset, admission: Admission, policy: Policy, *, swap: bool
    ) -> None:
        self.running: list[Sequence] = []
        self.waiting: dict[str, Sequence] = {}
        self.free = preset.capacity_tokens // preset.block_size
        self.room = preset.capacity_tokens  # that one sequence may have
        self.kv_tokens = 0  # computed by the running
        self.preemptions = 0
        self._blocks = self.free
        self.preset = preset
        self._admission = admission
        self._policy = policy
        self._swap = swap
        self._live: dict[str, Sequence] = {}
        self._moved = 0  # KV tokens swapped out since the last step
        self._displaces = displaces(policy)

    @property
    def limits(self) -> str:
        """What the policy asks for and these rules do not have."""
        return "" if self._displaces else without_displacing(self._policy)

    def add(self, sequence: Sequence) -> None:
        """Take note of a sequence that the policy has put in line."""
        self.waiting[sequence.id] = sequence
        self._live[sequence.id] = sequence

    def remove(self, sequence: Sequence) -> None:
        """Forget a sequence that ended, waiting or running."""
        del self._live[sequence.id]
        if self.waiting.pop(sequence.id, None) is None:
            self._take_out(sequence)

    def schedule(self) -> Schedule:
        """Fix the next batch; the policy is told who starts and who gives way."""
        if self._displaces:
            self._displace()
        schedule = Schedule()
        before = self.preemptions
        budget = self._continue(schedule)
        if self.preemptions == before:
            self._admit(schedule, budget)
        if schedule.chunks:  # else no step is taken, and the next one moves it
            schedule.swapped += self._moved
            self._moved = 0
        return schedule

    def compute(self, schedule: Schedule) -> None:
        """Let the tokens of a schedule be computed."""
        for sequence, chunk in schedule.chunks.items():
            sequence.computed += chunk
            self.kv_tokens += chunk

    def steady(self) -> bool:
        """Return whether the next steps only decode, until one ends or memory does."""
        running, budget = self.running, self.preset.max_num_batched_tokens
        if self._displaces or self._moved or not running or len(running) > budget:
            return False
        full = len(running) >= min(self.preset.max_num_seqs, budget)
        if not full and self.waiting and not self._shut_out():
            return False
        return not any(sequence.prefilling for sequence in running)

    def _shut_out(self) -> bool:
        """Return whether those in line stay there for as long as the running decode."""
        if not self._policy.static_order:
            return False
        head = self._head()
        if head is None:
            return True
        if not self._admission.monotone:
            return False
        return not self._room(head, self.free)

    def decodable(self) -> int:
        """Return for how many steps all running can decode.

        To the first end, or until memory runs out; 0 where it has.

        Complexity: O(r log d) with r running and d tokens to go.
        """
        steps = min(s.decode - s.produced for s in self.running)
        if self._missing(steps) <= self.free:
            return steps
        low, high = 0, steps  # low fits, high does not
        while high - low > 1:
            middle = (low + high) // 2
            if self._missing(middle) <= self.free:
                low = middle
            else:
                high = middle
        return low

    def decode(self, steps: int) -> None:
        """Let every running sequence produce `steps` tokens; see `decodable`."""
        size = self._admission.size
        for sequence in self.running:
            sequence.owed -= steps * sequence.known + steps * (steps + 1) // 2
            sequence.produced += steps
            sequence.computed += steps
            blocks = size(sequence.computed)
            self.free -= blocks - sequence.blocks
            sequence.blocks = blocks
        self.kv_tokens += steps * len(self.running)

    def _missing(self, steps: int) -> int:
        """Return the blocks that all running need beyond theirs for so many steps."""
        size = self._admission.size
        return sum(size(s.computed + steps) - s.blocks for s in self.running)

    def _continue(self, schedule: Schedule) -> int:
        """Give the running their chunks; return the tokens left in the budget."""
        budget, size = self.preset.max_num_batched_tokens, self.preset.block_size
        running, chunks = self.running, schedule.chunks
        index = 0
        while budget and index < len(running):
            sequence = running[index]
            chunk = sequence.prompt + sequence.produced - sequence.computed
            if chunk > budget:  # noqa: PLR1730 - min() takes a tenth of a step
                chunk = budget
            if sequence.computed + chunk <= sequence.blocks * size:
                chunks[sequence] = chunk
                budget -= chunk
                index += 1
                continue
            need = self._admission.size(sequence.computed + chunk) - sequence.blocks
            while need > self.free:
                victim = self._victim()
                if victim is None:
                    raise EngineError(
                        f"policy {self._name} names no victim, but memory is short"
                    )
                if victim in chunks:
                    budget += chunks.pop(victim)
                    index -= 1
                self._preempt(victim)
                if victim is sequence:
                    return budget
            self._give(sequence, chunk, schedule)
            budget -= chunk
            index += 1
        return budget

    def _admit(self, schedule: Schedule, budget: int) -> None:
        """Start the head of the line while there is room for it."""
        policy = self._policy
        while budget and len(self.running) < self.preset.max_num_seqs:
            head = self._head()
            if head is None:
                return
            if not self._room(head, self.free):
                policy.refuse(head.id)
                return
            policy.start(head.id)
            del self.waiting[head.id]
            self.running.append(head)
            schedule.started.append(head)
            head.computed = head.swapped
            self.kv_tokens += head.computed
            schedule.swapped += head.swapped
            head.swapped = 0
            chunk = min(head.known - head.computed, budget)
            self._give(head, chunk, schedule)
            budget -= chunk

    def _give(self, sequence: Sequence, chunk: int, schedule: Schedule) -> None:
        blocks = self._admission.size(sequence.computed + chunk)
        self.free -= blocks - sequence.blocks
        sequence.blocks = blocks
        schedule.chunks[sequence] = chunk

    def _displace(self) -> None:
        """Take out what the policy puts behind those in line that would have no room.

        Ends, since nobody is put back to work meanwhile.
        """
        while (head := self._crowded_out()) is not None:
            victim = self._victim()
            if victim is None:
                return
            if not self._policy.preempts(head.task.told, victim.task.told):
                return
            self._preempt(victim)

    def _crowded_out(self) -> Sequence | None:
        """Return the first in line for whom the step would have no room, if any.

        Those before it have what they need, as the running have. Once a prompt takes
        what is left of the budget, those behind it wait for the next step.
        """
        size, there = self._admission.size, list(self.running)
        budget, free = self.preset.max_num_batched_tokens, self.free
        for sequence in there:
            chunk = sequence.known - sequence.computed
            budget -= chunk
            free -= size(sequence.computed + chunk) - sequence.blocks
        for told in () if self._head() is None else self._policy.order():
            if budget <= 0 and len(there) > len(self.running):
                return None
            head = self._in_line(told, "in")
            seated = len(there) < self.preset.max_num_seqs
            if not seated or budget <= 0 or not self._admission.room(head, there, free):
                return head
            chunk = min(head.known - head.swapped, budget)
            budget -= chunk
            free -= size(head.swapped + chunk)
            there.append(head)
        return None

    def _preempt(self, sequence: Sequence) -> None:
        self.preemptions += 1
        sequence.preempted += 1
        self._take_out(sequence)
        self.waiting[sequence.id] = sequence
        if self._swap:
            sequence.swapped = sequence.computed
            self._moved += sequence.computed
        else:
            sequence.prefilling = True
        sequence.computed = 0
        self._policy.requeue(sequence.id)

    def _take_out(self, sequence: Sequence) -> None:
        """Take a sequence out of the running, and its memory back."""
        self.running.remove(sequence)
        self.kv_tokens -= sequence.computed
        self.free += sequence.blocks
        sequence.blocks = 0

    def _head(self) -> Sequence | None:
        """Return the head of the line, if anybody may start."""
        head = self._policy.peek()
        return None if head is None else self._in_line(head, "at the head of")

    def _in_line(self, told: Inference, where: str) -> Sequence:
        """Return the sequence of an inference that the policy has in its line."""
        if told.id not in self.waiting:
            raise EngineError(
                f"policy {self._name} has {shown(told.id)} {where} its line, "
                "which is not waiting"
            )
        return self.waiting[told.id]

    def _victim(self) -> Sequence | None:
        """Return the running sequence that is to give way first."""
        victim = next(self._policy.victims(), None)
        if victim is None:
            return None
        if victim.id in self.waiting or victim.id not in self._live:
            raise EngineError(
                f"policy {self._name} names {shown(victim.id)} as a victim, "
                "which is not running"
            )
        return self._live[victim.id]

    @property
    def _name(self) -> str:
        return self._policy.name or type(self._policy).__name__

    def _room(self, head: Sequence, free: int) -> bool:
        return self._admission.room(head, self.running, free)

    def _check(self) -> None:
        """Assert that memory adds up and nobody is in two places."""
        held = sum(sequence.blocks for sequence in self.running)
        assert held + self.free == self._blocks
        assert self.free >= 0
        assert self.kv_tokens == sum(sequence.computed for sequence in self.running)
        assert len(self.running) <= self.preset.max_num_seqs
        running = {sequence.id for sequence in self.running}
        assert not running & self.waiting.keys()
        assert running | self.waiting.keys() == self._live.keys()
        for sequence in self.running:
            assert sequence.computed <= sequence.blocks * self.preset.block_size
            assert sequence.computed <= sequence.known
        for sequence in self.waiting.values():
            assert sequence.blocks == sequence.computed == 0
