"""Skip-join multi-level feedback queues, inference by inference: FastServe's order.

Source: Wu et al., "Fast Distributed Inference Serving for Large Language Models"
(arXiv 2305.05920), and its code, ``fastserve/scheduler.py``.
"""

from justitia.policy.agents import Inference, Step
from justitia.policy.errors import PolicyError
from justitia.policy.exact import (
    MOST_TOKENS,
    Exact,
    Number,
    advanced,
    exactly,
    finite,
    not_negative,
    positive,
    quotient,
    shown,
    tokens,
)
from justitia.policy.ledger import Account, Entry
from justitia.policy.levels import InferenceOrder

PICOSECONDS = 10**12
"""Time is counted in whole picoseconds of all that was told: nothing drifts, and a sum
of ints takes a tenth of a sum of Fractions."""


class _Job(Entry):
    """An entry with its place in the queues; times in picoseconds.

    Attributes
    ----------
    level
        Its queue; 0 goes first.
    place
        Its place there, smaller first; no two alike.
    used
        How long it has run at this level.
    seen
        When it was last in a step, or else submitted.
    computing
        Whether it runs and has produced nothing since it started.
    """

    __slots__ = ("computing", "level", "place", "seen", "used")

    def __init__(self, inference: Inference, account: Account, seq: int) -> None:
        super().__init__(inference, account, seq)
        self.level = self.place = self.used = self.seen = 0
        self.computing = False


class MLFQ(InferenceOrder):
    """The highest queue that is not empty first; who runs for long sinks.

    Queue i has a quantum of `quantum` x `ratio`^i seconds. A new inference skips the
    queues whose quantum is shorter than its prompt takes to compute, and joins the end
    of the next. One that has run for longer than the quantum of its queue goes to the
    front of the queue below, with nothing used of that one's quantum. Every
    `starvation_steps` steps, whoever was in no step for `starvation_seconds` goes to
    the front of the highest queue; what it used of its quantum it keeps, so that it
    sinks again after one step. Whoever runs makes way for what waits in a higher queue,
    but a prompt is one piece of work: who computes it goes before all until it has its
    first token. (Or two of them could take each other's place for ever, where what was
    computed is lost.)

    Time is what `advance` tells: all that were in the steps since its last call are
    charged with it. An engine whose time is made of iterations has quanta of
    iterations.

    Differs from FastServe's code, where that is an accident of it or about memory:

    - That takes all that ran out of the queues and puts them back at the front one by
      one, which reverses their order among themselves in every iteration. Here one that
      stays in its queue keeps its place. Nobody of the same queue passes it either way:
      only a higher queue takes a place from what runs.
    - There, one that never ran counts as starving from the first check on, since its
      last step is set to the year 1970. Here it does `starvation_seconds` after it was
      submitted.
    - The time of a prompt is a line, not a profile: `prefill_seconds` and
      `prefill_token_seconds` for each of its tokens.
    - What KV is swapped out, and when ahead of time, is the engine's. New prompts are
      not held back for want of host memory.

    Parameters
    ----------
    quantum
        Seconds of the highest queue.
    ratio
        How many times longer each queue's quantum is than that of the one above; an
        int, at least 2.
    levels
        How many queues; who is in the last stays there. None: as many as it takes.
    prefill_seconds, prefill_token_seconds
        The estimated time of a prompt, for itself and for each token of it. The default
        is that of LLaMA-7B on an A100; ``justitia run`` takes the preset's.
    starvation_seconds, starvation_steps
        After how long somebody starves, and how often that is looked for.
    """

    name = "mlfq"
    static_order = False
    additive = False

    def __init__(
        self,
        *,
        quantum: Number = 0.01,
        ratio: int = 2,
        levels: int | None = None,
        prefill_seconds: Number = 0.0118,
        prefill_token_seconds: Number = 0.000055,
        starvation_seconds: Number = 3,
        starvation_steps: int = 1_000,
    ) -> None:
        super().__init__()
        self._first = exactly(positive(quantum, "quantum"))
        self._ratio = _at_least(2, ratio, "ratio")
        self._last = None if levels is None else _at_least(1, levels, "levels") - 1
        self._prefill = exactly(not_negative(prefill_seconds, "prefill_seconds"))
        self._prefill_token = exactly(
            not_negative(prefill_token_seconds, "prefill_token_seconds")
        )
        self._patience = _picoseconds(
            exactly(positive(starvation_seconds, "starvation_seconds"))
        )
        self._period = _at_least(1, starvation_steps, "starvation_steps")
        self._quanta: list[int] = []  # by queue, as they are asked for
        self._prompts: list[int] = []  # the longest that a quantum is for, the same
        self._told: Exact = 0  # seconds
        self._now = 0  # the same in picoseconds
        self._steps = 0
        self._back = self._front = 0  # places given at the end and at the front
        self._stepped: dict[_Job, None] = {}  # in a step since the last `advance`

    def entry(self, inference: Inference, account: Account, seq: int) -> Entry:
        """Open an entry that has a place in the queues."""
        return _Job(inference, account, seq)

    def key(self, entry: Entry) -> tuple[object, ...]:
        """Return whether it does not compute its prompt, its queue, its place there."""
        job = _job(entry)
        return (not job.computing, job.level, job.place)

    def submitted(self, entry: Entry) -> None:
        """Let an inference join the first queue whose quantum its prompt fits in."""
        job = _job(entry)
        job.seen = self._now
        prompt = entry.inference.prompt_tokens
        while job.level != self._last and prompt > self._most(job.level):
            job.level += 1
        self._back += 1
        job.place = self._back

    def started(self, entry: Entry) -> None:
        """Let it compute its prompt, or what it lost of it."""
        _job(entry).computing = True

    def requeued(self, entry: Entry) -> None:
        """Let it go back to its place in its queue."""
        _job(entry).computing = False

    def served(self, step: Step) -> None:
        """Note who was in the step; now and then look for who starves."""
        running, anybody = self._running, False
        for names, produces in ((step.prefill, False), (step.decode, True)):
            for name in names:
                entry = running.get(name)
                if entry is not None:
                    job = _job(entry)
                    job.computing &= not produces
                    self._stepped[job] = None
                    anybody = True
        if anybody:
            self._steps += 1
            if self._steps % self._period == 0:
                self._save_the_starving()

    def ended(self, entry: Entry, *, ran: bool) -> None:
        """Charge it no more."""
        self._stepped.pop(_job(entry), None)

    def advance(self, seconds: Number) -> None:
        """Charge those that were in the steps; see `Policy.advance`.

        Complexity: O(b log b) with b in the steps; O(log n) more for each that sinks.
        """
        passed = max(exactly(finite(seconds, "seconds")), 0)
        before = self._now
        self._told = advanced(self._told, passed, 1)
        self._now = _picoseconds(self._told)
        sinking = []
        for job in self._stepped:
            job.seen = self._now
            job.used += self._now - before
            if job.level != self._last and job.used > self._quantum(job.level):
                sinking.append(job)
        self._stepped.clear()
        for job in sorted(sinking, key=self.rank):
            job.used = 0
            self._to_front(job, job.level + 1)

    def preempts(self, waiting: Inference, running: Inference) -> bool:
        """Return whether what waits is in a higher queue than what runs and produces.

        Raises
        ------
        PolicyError
            If the first does not wait or the second does not run.
        """
        higher = _job(self._in(self._waiting, waiting.id, "waiting"))
        lower = _job(self._in(self._running, running.id, "running"))
        return higher.level < lower.level and not lower.computing

    def _save_the_starving(self) -> None:
        """Move those to the front of the highest queue that were in no step for long.

        Complexity: O(n log n) with n alive.
        """
        starving = [
            job
            for job in map(_job, (*self._waiting.values(), *self._running.values()))
            if job not in self._stepped and self._now - job.seen >= self._patience
        ]
        for job in sorted(starving, key=self.rank):
            self._to_front(job, 0)

    def _to_front(self, job: _Job, level: int) -> None:
        """Put a job before all others of a queue."""
        job.level = level
        self._front -= 1
        job.place = self._front
        if job.inference.id in self._waiting:
            self.enqueue(job)
            self._moves += 1

    def _most(self, level: int) -> int:
        """Return how many tokens a prompt may have that a queue's quantum is for."""
        while len(self._prompts) <= level:
            left = self._first * self._ratio ** len(self._prompts) - self._prefill
            if self._prefill_token:
                most = int(quotient(left, self._prefill_token) // 1)
            else:
                most = -1 if left < 0 else MOST_TOKENS
            self._prompts.append(most)
        return self._prompts[level]

    def _quantum(self, level: int) -> int:
        """Return the quantum of a queue, in picoseconds."""
        while len(self._quanta) <= level:
            quantum = self._first * self._ratio ** len(self._quanta)
            self._quanta.append(_picoseconds(quantum))
        return self._quanta[level]

    def _check(self) -> None:
        assert self._now == _picoseconds(self._told)
        assert self._front <= 0 <= self._back
        live = [*self._waiting.values(), *self._running.values()]
        for job in map(_job, live):
            assert job.level >= 0
            assert not job.computing or job.inference.id in self._running
            assert self._last is None or job.level <= self._last
            assert self._front <= job.place <= self._back
            assert job.used >= 0
            assert 0 <= job.seen <= self._now
        assert set(self._stepped) <= set(live)
        assert len({job.place for job in map(_job, live)}) == len(live)
        super()._check()


def _picoseconds(seconds: Exact) -> int:
    """Return the whole picoseconds in some seconds."""
    return int(seconds * PICOSECONDS // 1)


def _at_least(least: int, value: object, what: str) -> int:
    count = tokens(value, what)
    if count < least:
        raise PolicyError(f"{what} must be at least {least}, not {shown(value)}")
    return count


def _job(entry: Entry) -> _Job:
    assert isinstance(entry, _Job)
    return entry
