"""A policy that is looked at while it works: what a live scheduler is measured by.

`Watched` is a policy around a policy. It passes every verb on and takes note of what an
operator wants to see. Its memory is bounded by what lives: a few words for an agent and
a request, and histograms of fixed size.

How late and how early inferences start
---------------------------------------
Let S be the service delivered in all before the step in which an inference starts for
the first time, and G the service at which the fair reference (the policy's own
`VirtualClock`) finishes that inference's agent. Where S is larger, S - G is its
**lag**; else G - S is its **slack**, which is known only when the reference gets there.
Both are in the unit of the policy's cost model, token-steps for ``kv``, and each first
start is counted in one of the two. ``proofs/README.md`` bounds S - G by what was in
flight when something of a larger tag last started, less the inference's own cost.

The reference is the policy's, with predicted costs. With ``tags="stage"`` it finishes
the stage that got its tag last. Of an agent that it is told to forget before it has
finished it, the slack so far is counted. An agent that grows after the reference
finished it has starts of both kinds.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Hashable, Iterator
from typing import Any

from justitia.policy import Agent, Inference, Policy, Step, VirtualClock
from justitia.policy.clock import _Member
from justitia.policy.exact import Exact, Number, exactly

MOST_KINDS = 32
"""Kinds of agents that have a histogram of their own; the others share `OTHER`."""
OTHER = "other"
UNNAMED = "unnamed"
"""Of named agents that nobody gave a kind."""
REQUEST = "request"
"""Of requests without an agent."""
MOST_STARTS = 1_000
"""First starts of an agent that are remembered until the reference finishes it."""
LARGEST_WORK = 10**18
"""More than that is as much: sums of it are finite."""

SECONDS = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 25, 50, 100, 250, 500, 1_000, 2_500, 10_000)
WORK = tuple(float(4**power) for power in range(3, 18))  # 64 to 17e9


class Histogram:
    """Counts by upper bound, the sum and the largest; O(log bounds) an observation."""

    __slots__ = ("bounds", "counts", "largest", "total")

    def __init__(self, bounds: tuple[float, ...]) -> None:
        self.bounds = bounds
        self.counts = [0] * (len(bounds) + 1)
        self.largest = self.total = 0.0

    def observe(self, value: float) -> None:
        """Count a value in the first bucket whose bound it does not pass."""
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value
        self.largest = max(self.largest, value)

    def told(self) -> dict[str, Any]:
        """Return it as data: bounds, counts between them, the sum of the values."""
        return {"bounds": self.bounds, "counts": self.counts, "sum": self.total}


class MeteredClock(VirtualClock):
    """A clock that measures how early and how late its agents' inferences start.

    Attributes
    ----------
    delivered
        S, the work of all `serve`.
    arrived
        The agent that arrived last.
    slack, lag
        Of first starts; see the module.
    unmeasured
        First starts of which it forgot, since an agent had too many.

    Notes
    -----
    Complexity: O(1) beyond the clock's own; a departure O(first starts of the agent).
    Memory: a number for each first start of an agent that is not finished.
    """

    __slots__ = (
        "_goals", "_starts", "arrived", "delivered", "lag", "slack", "unmeasured"
    )  # fmt: skip

    def __init__(self) -> None:
        super().__init__()
        self.delivered: Exact = 0
        self.arrived: Hashable = None
        self.slack = Histogram(WORK)
        self.lag = Histogram(WORK)
        self.unmeasured = 0
        self._goals: dict[Hashable, Exact] = {}  # G of those that departed
        self._starts: dict[Hashable, list[float]] = {}  # S of those of the others

    def started(self, agent: Hashable) -> None:
        """Take note of a first start of an agent's inference, before its step."""
        goal = self._goals.get(agent)
        if goal is not None:
            if self.delivered > goal:
                self.lag.observe(_work(self.delivered - goal))
            else:
                self.slack.observe(0.0)
        elif agent in self:
            starts = self._starts.setdefault(agent, [])
            if len(starts) < MOST_STARTS:
                starts.append(_work(self.delivered))
            else:
                self.unmeasured += 1

    def unfinished(self, agent: Hashable) -> bool:
        """Return whether an agent is there and is not finished."""
        return agent in self and agent not in self._goals

    def since(self, agent: Hashable) -> Exact:
        """Return the work delivered since an agent was finished; 0 before that."""
        goal = self._goals.get(agent)
        return 0 if goal is None else self.delivered - goal

    def arrive(self, agent: Hashable, cost: Number, weight: Number = 1) -> Exact:
        """Add an agent; see `VirtualClock.arrive`."""
        tag = super().arrive(agent, cost, weight)
        self.arrived = agent
        return tag

    def serve(self, work: Number) -> list[tuple[Hashable, Exact]]:
        """Share work; see `VirtualClock.serve`."""
        departed = super().serve(work)
        for agent, shared in departed:
            self._reach(agent, self.delivered + shared)
        self.delivered += exactly(work)
        return departed

    def leave(self, agent: Hashable) -> bool:
        """Forget an agent; see `VirtualClock.leave`."""
        there = super().leave(agent)
        if there:
            self._reach(agent, self.delivered)
            del self._goals[agent]
        return there

    def _place(self, member: _Member) -> None:
        super()._place(member)
        if member.entry is None:
            self._reach(member.key, self.delivered)
        else:
            self._goals.pop(member.key, None)

    def _reach(self, agent: Hashable, goal: Exact) -> None:
        """Take note of the G of an agent, unless it has one."""
        self._goals.setdefault(agent, goal)
        for start in self._starts.pop(agent, ()):
            self.slack.observe(max(0.0, _work(goal) - start))

    def _check(self) -> None:
        super()._check()
        active = {k for k, member in self._members.items() if member.entry is not None}
        assert set(self._goals) == self._members.keys() - active
        assert set(self._starts) <= active
        assert all(0 < len(s) <= MOST_STARTS for s in self._starts.values())


def _work(work: Exact) -> float:
    return float(min(work, LARGEST_WORK))


class _Life:
    """What is kept of an agent: since when, and which of its requests live."""

    __slots__ = ("arrived", "ended", "key", "kind", "live", "started")

    def __init__(self, kind: str, arrived: float) -> None:
        self.kind = kind
        self.arrived = arrived
        self.ended: float | None = None  # when the last of its requests so far did
        self.started = False
        self.live: set[str] = set()
        self.key: Hashable = None


class Watched(Policy):
    """A policy around a policy, which does what that one does and keeps count.

    Parameters
    ----------
    policy
        Fresh. One with a `VirtualClock` gets a `MeteredClock` for it.
    now
        The time in seconds, never going back.

    Attributes
    ----------
    preemptions
        How often an inference that ran was put back in line.
    completions
        Seconds from an agent's arrival to the end of its last request, by kind. An
        agent that was dismissed with requests still living is not counted, nor one that
        never ran.
    clock
        The policy's clock, None where it has none.
    """

    def __init__(self, policy: Policy, *, now: Callable[[], float]) -> None:
        self.inner = policy
        self.name = policy.name
        self.cost_model = policy.cost_model
        self.static_order = policy.static_order
        self.additive = policy.additive
        self.clock: MeteredClock | None = None
        if type(getattr(policy, "clock", None)) is VirtualClock:
            self.clock = MeteredClock()
            policy.clock = self.clock  # type: ignore[attr-defined]
        self.preemptions = 0
        self.completions: dict[str, Histogram] = {}
        self._now = now
        self._lives: dict[str, _Life] = {}
        self._requests: dict[str, _Life] = {}
        self._fresh: set[str] = set()  # never in a step so far
        self._starting: dict[str, None] = {}  # since the last step
        self._running: set[str] = set()

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - of any policy
        """Return what the policy has beyond the verbs."""
        if name == "inner":  # asked for before there is one: by copy, say
            raise AttributeError(name)
        return getattr(self.inner, name)

    @property
    def waiting(self) -> int:
        """How many requests are in line."""
        return len(self._requests) - len(self._running)

    @property
    def running(self) -> int:
        """How many requests have been started."""
        return len(self._running)

    @property
    def oldest_age(self) -> float:
        """Seconds since the arrival of the oldest agent that is known; 0 without one.

        Complexity: O(1) amortised, and at most a look through a table of all agents.
        """
        oldest = next(iter(self._lives.values()), None)
        return 0.0 if oldest is None else max(0.0, self._now() - oldest.arrived)

    def active(self, agent_id: str) -> bool | None:
        """Return whether the reference has not finished an agent; None without one.

        With a tag a stage, whether it has not finished the stage that has the last tag.
        """
        if self.clock is None:
            return None
        life = self._lives.get(agent_id)
        return life is not None and self.clock.unfinished(life.key)

    @property
    def started(self) -> Collection[str]:
        """The ids of the requests that run, as they are at any time."""
        return self._running

    def age(self, agent_id: str) -> float | None:
        """Return the seconds since an agent arrived, None if it is not known."""
        life = self._lives.get(agent_id)
        return None if life is None else max(0.0, self._now() - life.arrived)

    def completion(self, agent_id: str) -> tuple[str, float] | None:
        """Return an agent's kind, and the seconds from its arrival to its last end.

        None where that is no completion: it never ran, or requests of it live.
        """
        life = self._lives.get(agent_id)
        if life is None or not life.started or life.ended is None or life.live:
            return None
        return life.kind, max(0.0, life.ended - life.arrived)

    def lag(self, agent_id: str) -> Number | None:
        """Return the work delivered since the reference finished an agent.

        0 while it has not; None without a reference. With a tag a stage it is the
        stage that has the last tag that counts.
        """
        life = self._lives.get(agent_id)
        if self.clock is None or life is None:
            return None
        return self.clock.since(life.key)

    # What happened ------------------------------------------------------------------

    def arrive(self, agent: Agent) -> None:
        """Take note of a new agent."""
        self._arrived(None)
        self.inner.arrive(agent)
        own = agent.id.startswith(f"{REQUEST}/") and not agent.kind
        life = _Life(agent.kind or (REQUEST if own else UNNAMED), self._now())
        self._lives[agent.id] = life
        self._arrived(life)

    def submit(self, inference: Inference) -> None:
        """Put an inference in line."""
        self._arrived(None)
        self.inner.submit(inference)
        life = self._lives[inference.agent]
        life.live.add(inference.id)
        self._requests[inference.id] = life
        self._fresh.add(inference.id)
        self._arrived(life)

    def start(self, inference_id: str) -> Inference:
        """Take an inference out of the line."""
        started = self.inner.start(inference_id)
        self._starting[inference_id] = None
        self._running.add(inference_id)
        return started

    def serve(self, step: Step) -> None:
        """Take note of a step."""
        if self._starting:
            self._measure()
        self.inner.serve(step)

    def requeue(self, inference_id: str) -> None:
        """Put an inference back in line."""
        self.inner.requeue(inference_id)
        self._running.discard(inference_id)
        if inference_id in self._starting:
            del self._starting[inference_id]  # it never ran
        else:
            self.preemptions += 1

    def finish(self, inference_id: str) -> bool:
        """Forget an inference."""
        ended = self.inner.finish(inference_id)
        life = self._requests.get(inference_id)
        if ended and life is not None:
            self._forget(inference_id, life)
            life.ended = self._now()
        return ended

    def leave(self, agent_id: str) -> bool:
        """Forget an agent."""
        left = self.inner.leave(agent_id)
        done = self.completion(agent_id)
        if done is not None:
            kind, seconds = done
            self._completed(kind).observe(seconds)
        life = self._lives.pop(agent_id, None)
        if life is not None:
            for inference_id in tuple(life.live):
                self._forget(inference_id, life)
        return left

    def revise(self, agent_id: str, cost: Number) -> None:
        """Replace an agent's predicted cost."""
        self.inner.revise(agent_id, cost)

    def refuse(self, inference_id: str) -> None:
        """Take note that there is no room for the head."""
        self.inner.refuse(inference_id)

    def advance(self, seconds: Number) -> None:
        """Take note that time passed."""
        self.inner.advance(seconds)

    # What to do ---------------------------------------------------------------------

    def peek(self) -> Inference | None:
        """Return the head of the line."""
        return self.inner.peek()

    def order(self) -> Iterator[Inference]:
        """Yield the line."""
        return self.inner.order()

    def victims(self) -> Iterator[Inference]:
        """Yield the running, the first to give way first."""
        return self.inner.victims()

    def preempts(self, waiting: Inference, running: Inference) -> bool:
        """Return whether something running should give way to something waiting."""
        return self.inner.preempts(waiting, running)

    def tag(self, agent_id: str) -> Number | None:
        """Return an agent's tag."""
        return self.inner.tag(agent_id)

    # What only this class does ------------------------------------------------------

    def _arrived(self, life: _Life | None) -> None:
        """Learn by which key the clock knows an agent that has just got its tag."""
        if self.clock is None:
            return
        if life is not None and self.clock.arrived is not None:
            life.key = self.clock.arrived
        self.clock.arrived = None

    def _measure(self) -> None:
        """Take note of first starts, before the step that they are in is served."""
        for inference_id in self._starting:
            if inference_id in self._fresh:
                self._fresh.discard(inference_id)
                life = self._requests[inference_id]
                life.started = True
                if self.clock is not None:
                    self.clock.started(life.key)
        self._starting.clear()

    def _forget(self, inference_id: str, life: _Life) -> None:
        self._fresh.discard(inference_id)
        self._starting.pop(inference_id, None)
        life.live.discard(inference_id)
        del self._requests[inference_id]
        self._running.discard(inference_id)

    def _completed(self, kind: str) -> Histogram:
        if kind not in self.completions and len(self.completions) >= MOST_KINDS:
            kind = OTHER
        return self.completions.setdefault(kind, Histogram(SECONDS))

    def _check(self) -> None:
        self.inner._check()
        lives = self._lives.values()
        assert sum(len(life.live) for life in lives) == len(self._requests)
        assert self._fresh <= set(self._requests)
        assert self._running <= set(self._requests)
        assert set(self._starting) <= self._running
        assert len(self.completions) <= MOST_KINDS + 1
