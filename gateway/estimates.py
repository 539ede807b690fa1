"""When an agent will be done, as far as can be said while it waits.

The reference finish is a number of work: what the engines have to deliver until the
fair reference is through with the agent, if nobody arrives meanwhile. (Whoever arrives
later makes it later in time, and in work, and leaves the order of those before as it
is.) The promise adds what Theorem B allows (``proofs/README.md``): what was in flight
when something of a larger tag started last. No more is ever in flight than the engines
have room for, and an inference that holds m KV tokens and runs for d steps is m·d of
work at most; so with M the KV tokens of all engines and D the most steps of any call so
far it is M·D. The theorem is about exact costs and agents of one stage.

Seconds are that, over the pace at which work was delivered lately.
"""

from dataclasses import dataclass
from math import exp

from justitia.engines.serving.agents import named
from justitia.gateway.shares import Shares
from justitia.policy import Policy, VirtualClock
from justitia.policy.exact import Number

MEMORY_SECONDS = 60.0
"""What was delivered so long ago weighs a third in the pace."""


class Pace:
    """Work a second, while there is something to do."""

    def __init__(self) -> None:
        self._work = 0.0
        self._seconds = 0.0
        self._seen: Number = 0

    def sample(self, delivered: Number, seconds: float, *, busy: bool) -> None:
        """Take note of what was delivered in all, so many seconds after the last."""
        work, self._seen = float(delivered - self._seen), delivered
        if seconds <= 0 or not (busy or work):
            return
        keep = exp(-seconds / MEMORY_SECONDS)
        self._work = self._work * keep + work
        self._seconds = self._seconds * keep + seconds

    @property
    def work_a_second(self) -> float | None:
        """The pace; None before anything was delivered."""
        return self._work / self._seconds if self._work > 0 else None


@dataclass(frozen=True, slots=True)
class Estimate:
    """When an agent is done at the latest.

    Attributes
    ----------
    work
        To be delivered until then.
    seconds
        How long that takes at the pace of now; None where there is none yet.
    """

    work: float
    seconds: float | None

    def told(self) -> dict[str, float | None]:
        """Return it as JSON has it."""
        return {"work": self.work, "seconds": self.seconds}


def reference_finish(policy: Policy, name: str, pace: Pace) -> Estimate | None:
    """Return when the fair reference finishes a named agent; None without one."""
    return _estimate(_until(policy, named(name)), pace)


def promise(
    policy: Policy, name: str, pace: Pace, *, capacity: int | None, steps: int
) -> Estimate | None:
    """Return when an agent is finished at the latest; see the module.

    Parameters
    ----------
    capacity
        KV tokens of all engines, None where that is not known: there is no promise.
    steps
        The most tokens that any call may produce.
    """
    work = _until(policy, named(name))
    if work is None or capacity is None:
        return None
    return _estimate(work + capacity * steps, pace)


def _until(policy: Policy, agent_id: str) -> Number | None:
    policy = getattr(policy, "inner", policy)
    if isinstance(policy, Shares):
        return policy.until(agent_id)
    clock = getattr(policy, "clock", None)
    tag = policy.tag(agent_id)
    if tag is None or not isinstance(clock, VirtualClock):
        return None
    return clock.until(tag)


def _estimate(work: Number | None, pace: Pace) -> Estimate | None:
    if work is None:
        return None
    rate = pace.work_a_second
    return Estimate(float(work), None if rate is None else float(work) / rate)
