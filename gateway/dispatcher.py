"""The line of a gateway: who is sent next, and to which engine.

It knows no HTTP and no clock of its own: calls come in, get their turn, produce and
end, and engines go down and come back. What a policy must be told of all that it is
told through `Agents`, as inside an engine. A call is what a client sends: one
inference, or several that start together (choices, prompts).

One call's life: `submit`; `Call.on_turn` says that it has an engine; `produced` and
`settle` as the engine answers; `finish`, once or many times, in whatever phase it is.
`lost` is the engine's end instead of the call's.
"""

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from enum import Enum

from justitia.engines.serving.agents import Agents
from justitia.engines.serving.claims import Claim
from justitia.engines.serving.priorities import Priorities
from justitia.gateway.errors import CANCELLED, GatewayError
from justitia.gateway.fleet import Engine, Fleet
from justitia.policy import PolicyError
from justitia.policy.exact import Number, shown

MOST_ATTEMPTS = 2
"""A call is sent again once, and only if its client has had nothing of it."""

_log = logging.getLogger("justitia.gateway")


class Phase(Enum):
    """Where a call is."""

    NEW = "new"
    WAITING = "waiting"
    RUNNING = "running"
    OVER = "over"


@dataclass(slots=True, eq=False)
class Call:
    """A client's request in the dispatcher's books.

    Attributes
    ----------
    id
        Its tenant, a slash and what makes it unique.
    tenant
        Whose it is.
    claim
        What it says of itself; its agent is named with the tenant before it.
    prompts
        The tokens of the prompt of each of its inferences, as far as they are known.
    most
        The most tokens that each may produce.
    model
        What it is for, None where it does not say.
    marks
        Of its prompt; see `justitia.gateway.lengths`.
    on_turn
        Called when it has an engine to be sent to.
    on_cancel
        Called when its agent was ended; `error` says so.
    engine, error
        Where it runs, and why it never will.
    predicted
        Tokens that each inference is predicted to produce.
    reserved
        KV tokens that are set aside for it in its engine.
    counted
        Tokens that each inference has produced so far.
    attempts
        How often it was sent.
    priority
        For an engine that keeps the order itself.
    """

    id: str
    tenant: str
    claim: Claim
    prompts: tuple[int, ...]
    most: int
    model: str | None = None
    marks: tuple[bytes, ...] = ()
    on_turn: Callable[[], None] = lambda: None
    on_cancel: Callable[[], None] = lambda: None
    phase: Phase = Phase.NEW
    engine: Engine | None = None
    error: GatewayError | None = None
    predicted: int = 0
    reserved: int = 0
    counted: list[int] = field(default_factory=list)
    attempts: int = 0
    priority: int | None = None
    tag: Number | None = None

    @property
    def names(self) -> list[str]:
        """The ids of its inferences."""
        return [f"{self.id}.{index}" for index in range(len(self.prompts))]

    @property
    def need(self) -> int:
        """KV tokens that it is thought to hold at its end."""
        return sum(self.prompts) + len(self.prompts) * self.predicted


@dataclass(slots=True)
class Caps:
    """What one tenant may have at once: agents with requests, and requests in line."""

    agents: int = 10**9
    waiting: int = 10**9


class Dispatcher:
    """Holds calls in a policy's order until an engine has room for them.

    The head of the line is admitted or nobody is that could take its place: an engine
    that has no room for it takes nobody behind it. Calls for other engines pass.

    Parameters
    ----------
    agents
        With a fresh policy.
    fleet
        The engines.
    caps
        By tenant.
    holds
        Whether the line is held here; otherwise calls are sent at once, with a priority
        that the engine keeps the order by.
    priorities
        Of each engine that has some, by its name.

    Attributes
    ----------
    sent_again
        How often a call was, since its engine was gone.
    over
        How many calls have ended.
    delivered
        The work that engines are known to have delivered.
    delivered_to
        The same by tenant.

    Notes
    -----
    Complexity: a verb O(inferences of the call) beyond the policy's; whoever gets room
    O(calls in line for engines that are full), 1 where all engines serve the same.
    """

    def __init__(
        self,
        agents: Agents,
        fleet: Fleet,
        *,
        caps: dict[str, Caps] | None = None,
        holds: bool = True,
        priorities: dict[str, Priorities] | None = None,
    ) -> None:
        self.agents = agents
        self.fleet = fleet
        self.sent_again = 0
        self.over = 0
        self.delivered: Number = 0
        self.delivered_to: dict[str, Number] = {}
        self._caps = caps or {}
        self.holds = holds
        self._priorities = priorities or {}
        self._calls: dict[str, Call] = {}
        self._owner: dict[str, Call] = {}  # by inference
        self._waiting: Counter[str] = Counter()  # by tenant
        self._active: dict[str, Counter[str]] = {}  # calls by tenant and agent
        self._together = 0  # blocks in which nobody has a turn

    def __len__(self) -> int:
        """Return how many calls are here."""
        return len(self._calls)

    @property
    def waiting(self) -> int:
        """How many calls are in line."""
        return self._waiting.total()

    def active_agents(self, tenant: str | None = None) -> int:
        """Return how many agents of a tenant have calls here; None: of all."""
        if tenant is None:
            return sum(map(len, self._active.values()))
        return len(self._active.get(tenant, ()))

    def calls(self, tenant: str) -> tuple[int, int]:
        """Return how many calls of a tenant are in line, and how many run."""
        waiting = self._waiting[tenant]
        known = self._active.get(tenant)
        return waiting, (0 if known is None else known.total()) - waiting

    @contextmanager
    def together(self) -> Iterator[None]:
        """Let all that is told in a block happen before anybody has a turn.

        So that what comes at one moment competes, in whatever order it is told.
        """
        self._together += 1
        try:
            yield
        finally:
            self._together -= 1
            self._pump()

    # Calls ------------------------------------------------------------------------

    def submit(self, call: Call) -> None:
        """Put a call in line; it may have its turn before this returns.

        Raises
        ------
        GatewayError
            404 for a model that no engine serves; 429 if its tenant has as many agents
            or calls as it may. Nothing has changed.
        """
        if call.id in self._calls or call.phase is not Phase.NEW or not call.prompts:
            raise PolicyError(f"call {shown(call.id)} is not new")
        self._admissible(call)
        call.phase = Phase.WAITING
        self._calls[call.id] = call
        self._waiting[call.tenant] += 1
        self._active.setdefault(call.tenant, Counter())[self._agent(call)] += 1
        call.counted = [0] * len(call.prompts)
        for name, prompt in zip(call.names, call.prompts, strict=True):
            self._owner[name] = call
            self.agents.submit(name, call.claim, prompt, call.most)
            call.predicted = max(call.predicted, self.agents.predicted(name))
        self._pump()

    def produced(self, call: Call, index: int, tokens: int = 1) -> None:
        """Take note of tokens of one inference of a running call."""
        if call.phase is not Phase.RUNNING or not 0 <= index < len(call.prompts):
            return
        if tokens <= 0:
            return
        model, prompt = self.agents.policy.cost_model, call.prompts[index]
        before = call.counted[index]
        call.counted[index] += tokens
        work = model.delivered(prompt, before + tokens, call.predicted)
        if before:
            work -= model.delivered(prompt, before, call.predicted)
        self._deliver(call.tenant, work)
        self.agents.serve({}, {f"{call.id}.{index}": tokens})
        grown = call.counted[index] - call.predicted
        if grown > 0 and call.engine is not None:  # it outgrew what was set aside
            more = min(grown, tokens)
            if call.engine.capacity is not None:
                call.engine.take(more, 0)
                call.reserved += more

    def settle(
        self, call: Call, prompts: Sequence[int] | None, tokens: int | None
    ) -> None:
        """Take note of what the engine counted, at the end of a running call.

        Parameters
        ----------
        prompts
            Tokens of the prompt of each inference, None where it did not say.
        tokens
            Tokens that all inferences have produced, None where it did not say.
        """
        if call.phase is not Phase.RUNNING:
            return
        missing = 0 if tokens is None else tokens - sum(call.counted)
        share, rest = divmod(max(0, missing), len(call.prompts))
        for index in range(len(call.prompts)):
            self.produced(call, index, share + (index < rest))
        if prompts is None:
            return
        for name, thought, real, count in zip(
            call.names, call.prompts, prompts, call.counted, strict=True
        ):
            model = self.agents.policy.cost_model
            more = model.delivered(real, count, call.predicted) - model.delivered(
                thought, count, call.predicted
            )
            self.agents.charge(name, int(more))
            self._deliver(call.tenant, max(0, int(more)))

    def finish(self, call: Call) -> bool:
        """Take a call out, in whatever phase it is; return whether it was there.

        All that it holds is free then, and whoever has room now has its turn.
        """
        if call.phase not in (Phase.WAITING, Phase.RUNNING):
            call.phase = Phase.OVER
            return False
        self._release(call)
        if call.phase is Phase.WAITING:
            self._leave_line(call)
        call.phase = Phase.OVER
        self.over += 1
        del self._calls[call.id]
        for name in call.names:
            del self._owner[name]
            self.agents.finish(name)
        active, agent = self._active[call.tenant], self._agent(call)
        active[agent] -= 1
        if not active[agent]:
            del active[agent]
            if not active:
                del self._active[call.tenant]
        self._pump()
        return True

    def lost(self, call: Call, *, streamed: bool) -> bool:
        """Take note that a running call's engine is gone; return if it waits again.

        It does at its old place, once, and only if its client has had nothing of it.
        """
        if call.phase is not Phase.RUNNING:
            return False
        assert call.engine is not None
        engine = call.engine
        if streamed or call.attempts >= MOST_ATTEMPTS:
            self.down(engine)
            return False
        self._release(call)
        call.phase = Phase.WAITING
        self._waiting[call.tenant] += 1
        for name in call.names:
            self.agents.requeue(name)
        self.sent_again += 1
        self.down(engine)
        self._pump()
        return True

    def dismiss(self, tenant: str, agent: str) -> int | None:
        """End an agent and its calls; return how many, None if it is not known."""
        gone = self.agents.dismiss(f"{tenant}/{agent}")
        if gone is None:
            return None
        calls = list(dict.fromkeys(self._owner[name] for name in gone))
        for call in calls:
            call.error = GatewayError(
                499, CANCELLED, f"agent {shown(agent)} was cancelled"
            )
            self.finish(call)
            call.on_cancel()
        return len(calls)

    # Engines ----------------------------------------------------------------------

    def down(self, engine: Engine) -> None:
        """Take an engine out: nothing is sent there until it is `up`."""
        if engine.up:
            engine.up = False
            engine.forget()
            _log.warning("engine %s is taken out", engine.name)

    def up(self, engine: Engine) -> None:
        """Take an engine in (again), or take note that it has more room."""
        if not engine.up:
            engine.up = True
            _log.info("engine %s is taken in", engine.name)
        self._pump()

    def expire(self) -> None:
        """Let agents end that have had no request for too long."""
        self.agents.expire()
        self._pump()

    # What only this class does ------------------------------------------------------

    def _admissible(self, call: Call) -> None:
        if not self.fleet.knows(call.model):
            raise GatewayError(
                404,
                "model_not_found",
                f"no engine serves model {shown(call.model)}",
                "model",
            )
        caps = self._caps.get(call.tenant)
        if caps is None:
            return
        if self._waiting[call.tenant] >= caps.waiting:
            raise GatewayError(
                429,
                "too_many_requests",
                f"at most {caps.waiting} requests may wait; try again later",
            )
        known = self._active.get(call.tenant, Counter())
        if self._agent(call) not in known and len(known) >= caps.agents:
            raise GatewayError(
                429,
                "too_many_agents",
                f"at most {caps.agents} agents may have requests at once; try again "
                "later",
            )

    @staticmethod
    def _agent(call: Call) -> str:
        return call.claim.agent or f"/{call.id}"

    def _pump(self) -> None:
        """Send whoever is next, for as long as there is room."""
        if self._together:
            return
        while (found := self._next()) is not None:
            self._start(*found)
        head = self.agents.head() if self._waiting else None
        if head is not None:
            self.agents.refuse(head)

    def _next(self) -> tuple[Call, Engine] | None:
        """Return the first call that has room in an engine that nobody before wants."""
        closed = {engine for engine in self.fleet if not engine.up}
        everything = len(self.fleet.engines)
        if len(closed) == everything or not self._waiting:
            return None
        passed: Call | None = None
        for name in self.agents.order():
            call = self._owner[name]
            if call is passed:
                continue
            passed = call
            serving = self.fleet.serving(call.model)
            room = [
                engine
                for engine in serving
                if engine not in closed
                and (not self.holds or engine.fits(call.need, len(call.prompts)))
            ]
            if room:
                return call, self.fleet.best(room, call.marks)
            closed.update(serving)
            if len(closed) == everything:
                return None
        return None

    def _start(self, call: Call, engine: Engine) -> None:
        call.phase = Phase.RUNNING
        call.engine = engine
        call.attempts += 1
        call.reserved = engine.share(call.need)
        engine.take(call.reserved, len(call.prompts))
        engine.remember(call.marks)
        self._leave_line(call)
        for name in call.names:
            self.agents.start(name)
        priorities = self._priorities.get(engine.name)
        if priorities is not None:
            tag = self.agents.request_tag(call.names[0])
            if tag is not None:
                call.priority, call.tag = priorities.give(tag), tag
        call.on_turn()

    def _deliver(self, tenant: str, work: Number) -> None:
        self.delivered += work
        self.delivered_to[tenant] = self.delivered_to.get(tenant, 0) + work

    def _release(self, call: Call) -> None:
        """Free what a call holds in its engine, if it has one."""
        if call.engine is None:
            return
        call.engine.give_back(call.reserved, len(call.prompts))
        if call.tag is not None:
            self._priorities[call.engine.name].free(call.tag)
        call.engine, call.reserved, call.priority, call.tag = None, 0, None, None

    def _leave_line(self, call: Call) -> None:
        self._waiting[call.tenant] -= 1
        if not self._waiting[call.tenant]:
            del self._waiting[call.tenant]

    def _check(self) -> None:
        """Assert all invariants."""
        self.agents._check()
        calls = self._calls.values()
        names = {name for call in calls for name in call.names}
        assert names == set(self._owner) == set(self.agents.requests)
        waiting = Counter(c.tenant for c in calls if c.phase is Phase.WAITING)
        assert waiting == self._waiting
        active: dict[str, Counter[str]] = {}
        for call in calls:
            active.setdefault(call.tenant, Counter())[self._agent(call)] += 1
            assert call.phase in (Phase.WAITING, Phase.RUNNING)
            assert (call.phase is Phase.RUNNING) == (call.engine is not None)
            for name in call.names:
                assert self.agents.waiting(name) == (call.phase is Phase.WAITING)
        assert active == self._active
        for engine in self.fleet:
            there = [call for call in calls if call.engine is engine]
            assert engine.used == sum(call.reserved for call in there)
            assert engine.running == sum(len(call.prompts) for call in there)
            if len(there) > 1 and engine.slots is not None and self.holds:
                assert engine.running <= engine.slots
        if self.holds and not self._together:
            assert self._next() is None


def predicting(claim: Claim, tokens: int | None) -> Claim:
    """Return a claim that predicts so many tokens, unless it says how many itself."""
    if claim.tokens is not None or tokens is None:
        return claim
    return replace(claim, tokens=tokens)
