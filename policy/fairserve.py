"""Weighted service counter with throttling under overload: FairServe.

Source: Khan et al., "Ensuring Fair LLM Serving Amid Diverse Applications" (arXiv
2411.15997): overload and interaction-driven throttling, weighted service counter. Its
user, and one interaction of that user, is the agent here; its application is the
agent's kind, a step of the application a stage.
"""

from collections import OrderedDict, deque

from justitia.policy.agents import Agent, Step
from justitia.policy.counters import Client, CounterOrder
from justitia.policy.errors import PolicyError
from justitia.policy.exact import (
    Exact,
    Number,
    advanced,
    exactly,
    finite,
    not_negative,
    positive,
    shown,
    tokens,
)
from justitia.policy.ledger import Account, Entry

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MOST_CALLS = 10**6
"""The largest limit: so many times at most are kept for each kind and agent."""
MOST_KINDS = 1_000
"""Kinds, and stages of kinds, that are remembered at most: clients name them."""


class _User(Client):
    """An account with what throttling is about.

    Attributes
    ----------
    calls, of_kind
        When its last calls came, and those of its kind; shared with all of that kind.
    running
        How many of its calls run.
    touched
        Whether any that runs no more was served.
    held
        Whether it is throttled.
    """

    __slots__ = ("calls", "held", "of_kind", "running", "touched")

    def __init__(
        self, agent: Agent, seq: int, calls: deque[Exact], of_kind: deque[Exact]
    ) -> None:
        super().__init__(agent, seq)
        self.calls = calls
        self.of_kind = of_kind
        self.running = 0
        self.touched = self.held = False

    @property
    def begun(self) -> bool:
        """Whether it is in the middle of its interaction."""
        return self.touched or self.running > 0


class FairServe(CounterOrder):
    """The agent with the least counter first, of equal ones one that has begun.

    A call that ends adds its work over the mean work of the calls of its kind and
    stage, itself among them: a usual call counts 1, whatever it is of, and an agent
    as many as it has calls. Work is `prompt_weight` for each token of the prompt and
    `decode_weight` for each one produced; an agent's weight divides what it adds. A
    call that was cancelled adds what it was served, one that never ran nothing.

    An agent is throttled while the engine is overloaded, *and* it or its kind has made
    more calls in the last `window` seconds than the limit, *and* none of its own has
    started: what has begun is never cut. Who is throttled stands behind all others.

    Differs from the paper, for want of what a policy is not told:

    - The engine counts as overloaded for `overload_seconds` after it had no room for
      the head of the line; the paper looks at its cache.
    - A throttled call waits at the end of the line, and is not turned away: an agent
      that was told to come again would not. With room for one of these and nobody else
      in line, the engine is not overloaded, so that it may start.
    - The tokens of the system prompt are part of the prompt.
    - What is expected of a stage of a kind is learned from the calls that ended, not
      given beforehand.

    Parameters
    ----------
    prompt_weight, decode_weight
        Of a token of the prompt and of a produced one; not both 0.
    user_limit, app_limit
        Calls of an agent, and of all agents of a kind, in a window; from 1 to
        1,000,000, or None for no limit. The paper leaves them to the operator.
    window
        Seconds.
    overload_seconds
        How long the engine is overloaded after a refusal.
    """

    name = "fairserve"

    def __init__(
        self,
        *,
        prompt_weight: Number = 1,
        decode_weight: Number = 2,
        user_limit: int | None = 60,
        app_limit: int | None = 600,
        window: Number = 60,
        overload_seconds: Number = 1,
    ) -> None:
        super().__init__()
        self._prompt_weight = exactly(not_negative(prompt_weight, "prompt_weight"))
        self._decode_weight = exactly(not_negative(decode_weight, "decode_weight"))
        if not self._prompt_weight and not self._decode_weight:
            raise PolicyError("prompt_weight and decode_weight must not both be 0")
        self._user_limit = _limit(user_limit, "user_limit")
        self._app_limit = _limit(app_limit, "app_limit")
        self._window = exactly(positive(window, "window"))
        self._overload = exactly(positive(overload_seconds, "overload_seconds"))
        self._now: Exact = 0
        self._full_until: Exact = 0
        self._look: Exact | None = None  # when who is throttled must be asked again
        self._kinds: OrderedDict[str, deque[Exact]] = OrderedDict()
        # By kind and stage, of the calls that ended: their work, and how many.
        self._usual: OrderedDict[tuple[str, int], tuple[Exact, int]] = OrderedDict()

    def account(self, agent: Agent, seq: int) -> Account:
        """Open an account with a counter."""
        of_kind = self._kinds.get(agent.kind)
        if of_kind is None:
            of_kind = _last(self._app_limit)
        _remember(self._kinds, agent.kind, of_kind)
        user = _User(agent, seq, _last(self._user_limit), of_kind)
        self._judge(user)
        return user

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        """Return whether it is throttled, the counter, and whether it has not begun.

        The counter as a double to compare fast and then as it is.
        """
        user = _user(account)
        return (user.held, float(user.counter), user.counter, not user.begun)

    def submitted(self, entry: Entry) -> None:
        """Lift the counter of who had nothing waiting; count the call."""
        super().submitted(entry)
        user = _user(entry.account)
        before = self.overloaded and self._exceeds(user.of_kind, self._app_limit)
        user.of_kind.append(self._now)
        user.calls.append(self._now)
        if self.overloaded:
            if before < self._exceeds(user.of_kind, self._app_limit):
                self._judge_all()
            else:
                self._judge(user)

    def started(self, entry: Entry) -> None:
        """Let its agent be in the middle of its interaction."""
        user = _user(entry.account)
        fresh = not user.begun
        user.running += 1
        if fresh:
            self._judge(user)

    def requeued(self, entry: Entry) -> None:
        """Let a start that was not served be none."""
        self._stopped(entry)

    def ended(self, entry: Entry, *, ran: bool) -> None:
        """Charge what it was served."""
        user, inference = _user(entry.account), entry.inference
        work = self._decode_weight * entry.produced
        if _served(entry):
            work += self._prompt_weight * inference.prompt_tokens
        if work:
            which = (user.agent.kind, inference.stage)
            total, count = self._usual.get(which, (0, 0))
            total, count = total + work, count + 1
            _remember(self._usual, which, (total, count))
            user.counter = advanced(user.counter, work * count, total * user.weight)
            self.reorder(user)
        if ran:
            self._stopped(entry)

    def served(self, step: Step) -> None:
        """Book the tokens."""
        for _ in self.produce(step):
            pass

    def refuse(self, inference_id: str) -> None:
        """Take note that the engine is full; see `Policy.refuse`."""
        super().refuse(inference_id)
        before = self.overloaded
        self._full_until = self._now + self._overload
        if not before:
            self._judge_all()

    def advance(self, seconds: Number) -> None:
        """Let the window move; see `Policy.advance`."""
        passed = max(exactly(finite(seconds, "seconds")), 0)
        self._now = advanced(self._now, passed, 1)
        if self._look is not None and self._now >= self._look:
            self._judge_all()

    @property
    def overloaded(self) -> bool:
        """Whether the engine had no room for the head of the line just now."""
        return self._now < self._full_until

    def _stopped(self, entry: Entry) -> None:
        """Take note that a call runs no more."""
        user = _user(entry.account)
        user.running -= 1
        user.touched |= _served(entry)
        if not user.begun:
            self._judge(user)

    def _judge(self, user: _User) -> None:
        """Throttle an agent, or do so no more, and put it where it belongs."""
        user.held = self._throttles(user)
        if user.held and self._look is not None:
            self._look = min(self._look, self._release(user))
        self.reorder(user)

    def _judge_all(self) -> None:
        """Judge all agents; note when that must be done again.

        Complexity: O(n log n) with n agents. Only while the engine is overloaded, and
        then when it becomes so, when `overload_seconds` are over, when calls of the
        throttled leave the window, and when a kind passes its limit.
        """
        self._look = self._full_until if self.overloaded else None
        for user in map(_user, self._accounts.values()):
            held = self._throttles(user)
            if held and self._look is not None:
                self._look = min(self._look, self._release(user))
            if held != user.held:
                user.held = held
                self.reorder(user)

    def _throttles(self, user: _User) -> bool:
        return (
            self.overloaded
            and not user.begun
            and (
                self._exceeds(user.calls, self._user_limit)
                or self._exceeds(user.of_kind, self._app_limit)
            )
        )

    def _release(self, user: _User) -> Exact:
        """Return when the first leaves the window of the calls that are too many."""
        limits = ((user.calls, self._user_limit), (user.of_kind, self._app_limit))
        many = [calls[0] for calls, limit in limits if self._exceeds(calls, limit)]
        return min(many) + self._window

    def _exceeds(self, calls: deque[Exact], limit: int | None) -> bool:
        """Return whether more calls than the limit are in the window.

        O(1) amortised: no more of them are kept than the limit and one.
        """
        if limit is None:
            return False
        while calls and calls[0] <= self._now - self._window:
            calls.popleft()
        return len(calls) > limit

    def _check(self) -> None:
        for user in map(_user, self._accounts.values()):
            running = [name for name in user.live if name in self._running]
            assert user.running == len(running)
            assert user.held == self._throttles(user)
            if user.held:
                assert self._look is not None
                assert self._now < self._look <= self._release(user)
            for calls in (user.calls, user.of_kind):
                assert list(calls) == sorted(calls)
                assert not calls or calls[-1] <= self._now
        assert self.overloaded == (self._look is not None)
        for held in (self._kinds, self._usual):
            assert len(held) <= MOST_KINDS
        for total, count in self._usual.values():
            assert total > 0
            assert count > 0
        super()._check()


def _last(limit: int | None) -> deque[Exact]:
    """Return room for as many times as it takes to see a limit exceeded."""
    return deque(maxlen=0 if limit is None else limit + 1)


def _remember(known: "OrderedDict[Any, Any]", key: object, value: object) -> None:
    """Keep what was used last, of not too many."""
    known[key] = value
    known.move_to_end(key)
    if len(known) > MOST_KINDS:
        known.popitem(last=False)


def _limit(value: object, what: str) -> int | None:
    if value is None:
        return None
    limit = tokens(value, what)
    if not 1 <= limit <= MOST_CALLS:
        raise PolicyError(
            f"{what} must be from 1 to {MOST_CALLS:,}, or None, not {shown(value)}"
        )
    return limit


def _served(entry: Entry) -> bool:
    return entry.prefilled or entry.produced > 0


def _user(account: Account) -> _User:
    assert isinstance(account, _User)
    return account
