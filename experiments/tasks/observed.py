"""Policies that pass everything on to another, and watch it."""

from collections.abc import Iterator
from time import thread_time_ns

from justitia.policy import Agent, Inference, KVTokenTime, Policy, Step
from justitia.policy.exact import Number

_WORK = KVTokenTime()


class Observed(Policy):
    """Does what another policy, its ``inner``, does."""

    def __init__(self, policy: Policy) -> None:
        self.inner = policy
        self.name = policy.name
        self.cost_model = policy.cost_model
        self.static_order = policy.static_order
        self.additive = policy.additive

    def arrive(self, agent: Agent) -> None:
        """Pass it on."""
        self.inner.arrive(agent)

    def submit(self, inference: Inference) -> None:
        """Pass it on."""
        self.inner.submit(inference)

    def start(self, inference_id: str) -> Inference:
        """Pass it on."""
        return self.inner.start(inference_id)

    def serve(self, step: Step) -> None:
        """Pass it on."""
        self.inner.serve(step)

    def requeue(self, inference_id: str) -> None:
        """Pass it on."""
        self.inner.requeue(inference_id)

    def finish(self, inference_id: str) -> bool:
        """Pass it on."""
        return self.inner.finish(inference_id)

    def leave(self, agent_id: str) -> bool:
        """Pass it on."""
        return self.inner.leave(agent_id)

    def revise(self, agent_id: str, cost: Number) -> None:
        """Pass it on."""
        self.inner.revise(agent_id, cost)

    def peek(self) -> Inference | None:
        """Pass it on."""
        return self.inner.peek()

    def order(self) -> Iterator[Inference]:
        """Pass it on."""
        return self.inner.order()

    def victims(self) -> Iterator[Inference]:
        """Pass it on."""
        return self.inner.victims()

    def refuse(self, inference_id: str) -> None:
        """Pass it on."""
        self.inner.refuse(inference_id)

    def advance(self, seconds: Number) -> None:
        """Pass it on."""
        self.inner.advance(seconds)

    def preempts(self, waiting: Inference, running: Inference) -> bool:
        """Pass it on."""
        return self.inner.preempts(waiting, running)

    def tag(self, agent_id: str) -> Number | None:
        """Pass it on."""
        return self.inner.tag(agent_id)

    def _check(self) -> None:
        self.inner._check()


class Recorder(Observed):
    """Keeps how much was delivered when, in all and to one agent, in token-steps.

    Needs exact predictions: what an inference has still to get is its cost less what it
    was delivered.

    Parameters
    ----------
    watched
        The agent's id.

    Attributes
    ----------
    curve
        (seconds, delivered in all, delivered to the watched agent), after every step.
    most_owed
        The most that the running inferences had still to get after any step.
    """

    def __init__(self, policy: Policy, watched: str) -> None:
        super().__init__(policy)
        self._watched = watched
        self._now: Number = 0
        self._served = 0
        self._mine = 0
        self._running: dict[str, tuple[Inference, int]] = {}
        self._owed = 0
        self.curve: list[tuple[float, int, int]] = [(0.0, 0, 0)]
        self.most_owed = 0

    def start(self, inference_id: str) -> Inference:
        """Take note of what it has to get."""
        inference = super().start(inference_id)
        self._running[inference_id] = (inference, 0)
        self._owed += _WORK(inference.prompt_tokens, inference.decode_tokens)
        return inference

    def serve(self, step: Step) -> None:
        """Take note of what is delivered."""
        super().serve(step)
        for name, tokens in step.decode.items():
            inference, produced = self._running[name]
            known = inference.prompt_tokens
            before = _WORK(known, produced) if produced else 0
            after = _WORK(known, produced + tokens)
            self._running[name] = (inference, produced + tokens)
            self._served += after - before
            self._owed -= after - before
            if inference.agent == self._watched:
                self._mine += after - before
        self.most_owed = max(self.most_owed, self._owed)

    def advance(self, seconds: Number) -> None:
        """Take note of the time."""
        super().advance(seconds)
        self._now += seconds
        self.curve.append((float(self._now), self._served, self._mine))

    def finish(self, inference_id: str) -> bool:
        """Forget what has ended."""
        self._running.pop(inference_id, None)
        return super().finish(inference_id)


class Stopwatch(Observed):
    """Counts the time that a policy takes, what counting takes among it.

    It is the thread's, so that what else a machine does matters less.

    Attributes
    ----------
    nanoseconds
        In all verbs but the walks of the line.
    starts
        Decisions: inferences that were started.
    """

    def __init__(self, policy: Policy) -> None:
        super().__init__(policy)
        self.nanoseconds = 0
        self.starts = 0

    def arrive(self, agent: Agent) -> None:
        """Pass it on, timed."""
        begin = thread_time_ns()
        self.inner.arrive(agent)
        self.nanoseconds += thread_time_ns() - begin

    def submit(self, inference: Inference) -> None:
        """Pass it on, timed."""
        begin = thread_time_ns()
        self.inner.submit(inference)
        self.nanoseconds += thread_time_ns() - begin

    def start(self, inference_id: str) -> Inference:
        """Pass it on, timed."""
        begin = thread_time_ns()
        started = self.inner.start(inference_id)
        self.nanoseconds += thread_time_ns() - begin
        self.starts += 1
        return started

    def serve(self, step: Step) -> None:
        """Pass it on, timed."""
        begin = thread_time_ns()
        self.inner.serve(step)
        self.nanoseconds += thread_time_ns() - begin

    def finish(self, inference_id: str) -> bool:
        """Pass it on, timed."""
        begin = thread_time_ns()
        known = self.inner.finish(inference_id)
        self.nanoseconds += thread_time_ns() - begin
        return known

    def leave(self, agent_id: str) -> bool:
        """Pass it on, timed."""
        begin = thread_time_ns()
        known = self.inner.leave(agent_id)
        self.nanoseconds += thread_time_ns() - begin
        return known

    def peek(self) -> Inference | None:
        """Pass it on, timed."""
        begin = thread_time_ns()
        head = self.inner.peek()
        self.nanoseconds += thread_time_ns() - begin
        return head

    def refuse(self, inference_id: str) -> None:
        """Pass it on, timed."""
        begin = thread_time_ns()
        self.inner.refuse(inference_id)
        self.nanoseconds += thread_time_ns() - begin

    def advance(self, seconds: Number) -> None:
        """Pass it on, timed."""
        begin = thread_time_ns()
        self.inner.advance(seconds)
        self.nanoseconds += thread_time_ns() - begin
