"""Two-level fair shares: tenants share the engines, and agents their tenant's part.

One fair reference for all agents would give a tenant as many shares as it has agents,
and agents cost nothing to invent. Here the reference has two levels:

- *Among tenants* a `VirtualClock` has one member a tenant, of the tenant's weight, that
  costs what all of its agents do. So a tenant with a thousand agents gets what one with
  a single agent does.
- *Inside a tenant* a policy of its own orders the tenant's agents, and is told of the
  service of that tenant alone: it lives on a machine as large as the tenant's share.

Who is next? Let L be a tenant's tag among tenants, w its weight, and B the work that it
was promised and has not been delivered. What was delivered to it so far the fair
reference has given it at P = L - B / w. Its policy names its head; with A the work that
has to be delivered until the head's agent is done (what of the tenant runs now, and
what is left of that agent), the reference finishes that at P + A / w. The smallest of
those goes first.

Delivering work of the head moves P up by as much as it takes from A, so the tag of a
head stays as it is while it is served, and no arrival at another tenant changes it; one
at its own does only where its policy puts the newcomer first. What a tenant is given
before somebody else's agent of tag F starts all ends, as P then says, at F or before:
no more than the reference gives the tenant until it finishes that agent, but for what
was in flight. P is what was delivered for real, so new agents cannot win it back: that
is what tags by arrival in a hierarchy of clocks would allow, where a newcomer pushes
the tags of those that have been served already behind others' again.

With one tenant the order is that of its policy, and with one agent a tenant that of
one-level Justitia with the tenants' weights.

Source: the outer level is Parekh and Gallager's GPS, the whole Bennett and Zhang's
hierarchical fair queueing (1996), with tags of what was delivered instead of arrived.
"""

from collections.abc import Callable, Iterator, Mapping
from heapq import heappop, heappush

from justitia.policy import Agent, Inference, Policy, PolicyError, Step, VirtualClock
from justitia.policy.exact import (
    LARGEST,
    SMALLEST,
    Exact,
    Number,
    exactly,
    finite,
    positive,
    quotient,
    shown,
)

_Place = tuple[float, Exact, int]


class _Inference:
    """An inference in the books; `work` is what it was delivered."""

    __slots__ = ("agent", "produced", "running", "told", "work")

    def __init__(self, told: Inference, agent: "_Agent") -> None:
        self.told = told
        self.agent = agent
        self.produced = 0
        self.work: Exact = 0
        self.running = False


class _Agent:
    """An agent in the books.

    Attributes
    ----------
    promised
        What of its tenant's cost among tenants is for it.
    service
        The work that it was delivered.
    missing
        The work that its running inferences have still to get.
    """

    __slots__ = ("live", "missing", "promised", "seq", "service", "tenant")

    def __init__(self, tenant: "_Tenant", promised: Exact, seq: int) -> None:
        self.tenant = tenant
        self.promised = promised
        self.service: Exact = 0
        self.missing: Exact = 0
        self.seq = seq
        self.live: dict[str, _Inference] = {}

    @property
    def left(self) -> Exact:
        """The work that it is still to get, as promised."""
        return self.promised - self.service


class _Tenant:
    """A tenant in the books.

    Attributes
    ----------
    promised, delivered
        The work of its agents since the clock knows it, and what of it was delivered.
    missing
        The work that its running inferences have still to get.
    waiting
        How many inferences of it are in line.
    """

    __slots__ = (
        "agents", "delivered", "missing", "name", "policy", "promised", "waiting",
        "weight",
    )  # fmt: skip

    def __init__(self, name: str, weight: Number, policy: Policy) -> None:
        self.name = name
        self.weight = exactly(weight)
        self.policy = policy
        self.promised: Exact = 0
        self.delivered: Exact = 0
        self.missing: Exact = 0
        self.agents = 0
        self.waiting = 0


class Shares(Policy):
    """A policy for each tenant, and fair shares among tenants; see the module.

    `tag` is that of the tenant's own policy, on its own clock.

    Parameters
    ----------
    make
        Makes a fresh policy for a tenant.
    weights
        By tenant; those who are not there have 1.
    tenant_of
        The tenant of an agent, by the agent's id.

    Attributes
    ----------
    among
        The clock of tenants, by name.

    Notes
    -----
    Complexity, with t tenants in line: a verb O(log t) beyond that of the tenant's
    policy, `peek` O(t). Memory: a policy for each tenant that was ever there.
    """

    name = "shares"
    static_order = False

    def __init__(
        self,
        make: Callable[[], Policy],
        weights: Mapping[str, Number] | None = None,
        tenant_of: Callable[[str], str] | None = None,
    ) -> None:
        self._make = make
        self._weights = dict(weights or {})
        self._tenant_of = tenant_of or tenant_of_agent
        first = make()
        self.name = first.name
        self.cost_model = first.cost_model
        self.additive = first.additive
        self.among = VirtualClock()
        self._tenants: dict[str, _Tenant] = {}
        self._agents: dict[str, _Agent] = {}
        self._inferences: dict[str, _Inference] = {}
        self._seq = 0

    # What happened ----------------------------------------------------------------

    def arrive(self, agent: Agent) -> None:
        """Take note of a new agent: its tenant is promised its cost."""
        if agent.id in self._agents:
            raise PolicyError(f"agent {shown(agent.id)} is here already")
        tenant = self._tenant(self._tenant_of(agent.id))
        cost = exactly(positive(agent.cost, f"cost of agent {shown(agent.id)}"))
        _check_promise(tenant, tenant.promised + cost)
        tenant.policy.arrive(agent)
        self._seq += 1
        self._agents[agent.id] = _Agent(tenant, cost, self._seq)
        tenant.agents += 1
        self._promise(tenant, tenant.promised + cost)

    def submit(self, inference: Inference) -> None:
        """Put an inference in its tenant's line."""
        if inference.id in self._inferences:
            raise PolicyError(f"inference {shown(inference.id)} is here already")
        agent = self._agent(inference.agent)
        agent.tenant.policy.submit(inference)
        entry = _Inference(inference, agent)
        self._inferences[inference.id] = entry
        agent.live[inference.id] = entry
        agent.tenant.waiting += 1

    def start(self, inference_id: str) -> Inference:
        """Take an inference out of the line."""
        entry = self._inference(inference_id)
        told = entry.agent.tenant.policy.start(inference_id)
        entry.running = True
        entry.agent.tenant.waiting -= 1
        self._miss(entry, self._missing(entry))
        return told

    def requeue(self, inference_id: str) -> None:
        """Put an inference back in line."""
        entry = self._inference(inference_id)
        entry.agent.tenant.policy.requeue(inference_id)
        self._miss(entry, -self._missing(entry))
        entry.running = False
        entry.agent.tenant.waiting += 1

    def serve(self, step: Step) -> None:
        """Share what a step delivers among tenants, and tell each of its own part."""
        parts: dict[str, tuple[dict[str, int], dict[str, int]]] = {}
        for index, counts in enumerate((step.prefill, step.decode)):
            for inference_id, count in counts.items():
                entry = self._inferences.get(inference_id)
                if entry is not None:
                    name = entry.agent.tenant.name
                    parts.setdefault(name, ({}, {}))[index][inference_id] = count
        for name, (prefill, decode) in parts.items():
            self._tenants[name].policy.serve(Step(prefill, decode))
        got: dict[str, Exact] = {}
        total: Exact = 0
        for inference_id, count in step.decode.items():
            entry = self._inferences.get(inference_id)
            if entry is None or not entry.running:
                continue
            gain = self._deliver(entry, count)
            total += gain
            name = entry.agent.tenant.name
            got[name] = got.get(name, 0) + gain
        self._share(total)
        for name in got:
            self._outgrow(self._tenants[name])
        for name in got:
            self._forget(self._tenants[name])

    def finish(self, inference_id: str) -> bool:
        """Forget an inference."""
        entry = self._inferences.get(inference_id)
        if entry is None:
            self._any().finish(inference_id)  # it says what an id may not be
            return False
        entry.agent.tenant.policy.finish(inference_id)
        self._drop(entry)
        return True

    def leave(self, agent_id: str) -> bool:
        """Forget an agent: its tenant is promised what it was delivered, no more."""
        agent = self._agents.get(agent_id)
        if agent is None:
            self._any().leave(agent_id)
            return False
        tenant = agent.tenant
        tenant.policy.leave(agent_id)
        for entry in tuple(agent.live.values()):
            self._drop(entry)
        del self._agents[agent_id]
        tenant.agents -= 1
        self._promise(tenant, tenant.promised - max(agent.left, 0))
        if not self._agents:  # nobody is left whom a debt could hurt
            for one in self._tenants.values():
                self.among.leave(one.name)
                one.promised = one.delivered = 0
        else:
            self._forget(tenant)
        return True

    def revise(self, agent_id: str, cost: Number) -> None:
        """Replace an agent's predicted cost, and promise its tenant as much."""
        agent = self._agent(agent_id)
        given = exactly(positive(cost, f"cost of agent {shown(agent_id)}"))
        promised = max(given, agent.service)
        total = agent.tenant.promised + promised - agent.promised
        _check_promise(agent.tenant, total)
        agent.tenant.policy.revise(agent_id, cost)
        self._promise(agent.tenant, total)
        agent.promised = promised

    def refuse(self, inference_id: str) -> None:
        """Take note that there is no room for the head."""
        entry = self._inference(inference_id)
        entry.agent.tenant.policy.refuse(inference_id)

    def advance(self, seconds: Number) -> None:
        """Tell all tenants' policies that time passed."""
        finite(seconds, "seconds")
        for tenant in self._tenants.values():
            tenant.policy.advance(seconds)

    # What to do ---------------------------------------------------------------------

    def peek(self) -> Inference | None:
        """Return the head of the tenant whose head the reference finishes first."""
        best: tuple[_Place, Inference] | None = None
        for tenant in self._tenants.values():
            if tenant.waiting:
                head = tenant.policy.peek()
                if head is not None:
                    place = self._place(head, tenant.missing, 0)
                    if best is None or place < best[0]:
                        best = (place, head)
        return None if best is None else best[1]

    def order(self) -> Iterator[Inference]:
        """Yield the line: what repeated `pop` would give, if nothing is delivered."""
        heap: list[tuple[_Place, Inference, Iterator[Inference]]] = []
        missing = {name: one.missing for name, one in self._tenants.items()}
        started: dict[str, Exact] = {}  # by agent, of those passed here

        def put(line: Iterator[Inference]) -> None:
            head = next(line, None)
            if head is not None:
                name = self._agents[head.agent].tenant.name
                more = started.get(head.agent, 0)
                place = self._place(head, missing[name], more)
                heappush(heap, (place, head, line))

        for tenant in self._tenants.values():
            if tenant.waiting:
                put(tenant.policy.order())
        while heap:
            _, head, line = heappop(heap)
            yield head
            entry = self._inferences[head.id]
            work = self._missing(entry)
            missing[entry.agent.tenant.name] += work
            started[head.agent] = started.get(head.agent, 0) + work
            put(line)

    def victims(self) -> Iterator[Inference]:
        """Yield the running: of the tenant that is furthest ahead first."""
        ahead = sorted(
            (one for one in self._tenants.values() if one.missing or one.agents),
            key=lambda one: (self._position(one), one.name),
            reverse=True,
        )
        for tenant in ahead:
            yield from tenant.policy.victims()

    def tag(self, agent_id: str) -> Number | None:
        """Return an agent's tag on its tenant's own clock."""
        return self._agent(agent_id).tenant.policy.tag(agent_id)

    # What only this class does ------------------------------------------------------

    def until(self, agent_id: str) -> Exact | None:
        """Return the work after which the reference finishes an agent; see the module.

        If nobody arrives meanwhile; None where its tenant's policy has no tags.

        Complexity: O(agents of the tenant + tenants).
        """
        agent = self._agent(agent_id)
        tenant = agent.tenant
        own = tenant.policy.tag(agent_id)
        if own is None:
            return None
        before: Exact = 0
        for name, other in self._agents.items():
            if other.tenant is tenant:
                tag = tenant.policy.tag(name)
                if tag is not None and (tag, other.seq) <= (own, agent.seq):
                    before += other.left
        place = self._position(tenant) + exactly(quotient(before, tenant.weight))
        return self.among.until(place)

    def order_of(self, tenant: str) -> Iterator[Inference]:
        """Yield a tenant's own line, by its own policy; see `order`."""
        known = self._tenants.get(tenant)
        return iter(()) if known is None else known.policy.order()

    def standing(self, agent_id: str) -> tuple[float, int, float] | None:
        """Return an agent's tag, arrival and what it is still to get, in doubles.

        None for one that is not here, or where its tenant's policy has no tags.
        """
        agent = self._agents.get(agent_id)
        tag = None if agent is None else agent.tenant.policy.tag(agent_id)
        if agent is None or tag is None:
            return None
        return float(tag), agent.seq, float(agent.left)

    def position(self, tenant: str) -> tuple[float, float]:
        """Return where the reference has given a tenant what it got, and its weight.

        In doubles; what the tenant gets next moves it on by work over weight.
        """
        known = self._tenant(tenant)
        return float(self._position(known)), float(known.weight)

    def delivered(self, tenant: str) -> Exact:
        """Return the work that a tenant was delivered since the clock knows it."""
        known = self._tenants.get(tenant)
        return 0 if known is None else known.delivered

    def _tenant(self, name: str) -> _Tenant:
        tenant = self._tenants.get(name)
        if tenant is None:
            tenant = _Tenant(name, self._weights.get(name, 1), self._make())
            self._tenants[name] = tenant
        return tenant

    def _any(self) -> Policy:
        return (
            next(iter(self._tenants.values())).policy
            if self._tenants
            else (self._make())
        )

    def _agent(self, agent_id: str) -> _Agent:
        agent = self._agents.get(agent_id)
        if agent is None:
            raise PolicyError(f"agent {shown(agent_id)} has not arrived or has left")
        return agent

    def _inference(self, inference_id: str) -> _Inference:
        entry = self._inferences.get(inference_id)
        if entry is None:
            raise PolicyError(f"inference {shown(inference_id)} is not known")
        return entry

    def _missing(self, entry: _Inference) -> Exact:
        """Return the work that an inference has still to get, as predicted."""
        told = entry.told
        cost = exactly(self.cost_model(told.prompt_tokens, told.decode_tokens))
        return max(cost - entry.work, 0)

    def _miss(self, entry: _Inference, work: Exact) -> None:
        entry.agent.missing += work
        entry.agent.tenant.missing += work

    def _deliver(self, entry: _Inference, count: int) -> Exact:
        """Book tokens, and return the work that they are."""
        told = entry.told
        before = self._missing(entry)
        entry.produced += count
        if not entry.produced and told.decode_tokens:
            return 0  # nothing came of it yet
        work = exactly(
            self.cost_model.delivered(
                told.prompt_tokens, entry.produced, told.decode_tokens
            )
        )
        gain, entry.work = work - entry.work, work
        self._miss(entry, self._missing(entry) - before)
        entry.agent.service += gain
        entry.agent.tenant.delivered += gain
        excess = entry.agent.service - entry.agent.promised
        if excess > 0:  # it pays for what it really gets
            entry.agent.promised += excess
            entry.agent.tenant.promised += excess
        return gain

    def _outgrow(self, tenant: _Tenant) -> None:
        self._promise(tenant, tenant.promised)

    def _promise(self, tenant: _Tenant, promised: Exact) -> None:
        """Make it what the clock among tenants knows."""
        tenant.promised = promised
        if promised < SMALLEST:
            self.among.leave(tenant.name)
        elif tenant.name in self.among:
            self.among.revise(tenant.name, promised)
        else:
            self.among.arrive(tenant.name, promised, tenant.weight)

    def _share(self, work: Exact) -> None:
        for name, _ in self.among.serve(work):
            self._forget(self._tenants[str(name)])

    def _forget(self, tenant: _Tenant) -> None:
        """Forget a tenant without agents with which the reference is through."""
        if tenant.agents or tenant.name not in self.among:
            return
        if self.among.tag(tenant.name) <= self.among.value:
            self.among.leave(tenant.name)
            tenant.promised = tenant.delivered = 0

    def _position(self, tenant: _Tenant) -> Exact:
        """Return P: when the reference has given it what it was delivered."""
        if tenant.name not in self.among:
            return self.among.value
        owed = tenant.promised - tenant.delivered
        return self.among.tag(tenant.name) - exactly(quotient(owed, tenant.weight))

    def _place(self, head: Inference, missing: Exact, started: Exact) -> _Place:
        """Return the tag of a head: when the reference is through with its agent.

        Parameters
        ----------
        missing
            What of the tenant is taken to run has still to get.
        started
            What of that is of the head's agent and does not run.
        """
        agent = self._agents[head.agent]
        own = agent.missing + started  # of it runs, or is taken to
        least = own + self._missing(self._inferences[head.id])
        ahead = missing - own + max(agent.left, least)
        tag = self._position(agent.tenant) + exactly(
            quotient(ahead, agent.tenant.weight)
        )
        return (float(tag), tag, agent.seq)

    def _drop(self, entry: _Inference) -> None:
        agent = entry.agent
        if entry.running:
            self._miss(entry, -self._missing(entry))
        else:
            agent.tenant.waiting -= 1
        del agent.live[entry.told.id], self._inferences[entry.told.id]

    def _check(self) -> None:
        """Assert that the books agree with one another."""
        self.among._check()
        for name, tenant in self._tenants.items():
            tenant.policy._check()
            agents = [one for one in self._agents.values() if one.tenant is tenant]
            live = [entry for one in agents for entry in one.live.values()]
            assert tenant.name == name
            assert tenant.agents == len(agents)
            assert tenant.waiting == sum(not entry.running for entry in live)
            running = [entry for entry in live if entry.running]
            assert tenant.missing == sum(map(self._missing, running))
            assert 0 <= tenant.delivered <= tenant.promised
            assert sum(one.left for one in agents) == (
                tenant.promised - tenant.delivered
            )
            if name in self.among:
                assert self.among._members[name].cost == tenant.promised
            else:
                assert tenant.promised < SMALLEST
        for agent in self._agents.values():
            assert agent.left >= 0
            running = [entry for entry in agent.live.values() if entry.running]
            assert agent.missing == sum(map(self._missing, running))
        assert len(self._inferences) == sum(
            len(one.live) for one in self._agents.values()
        )


def _check_promise(tenant: _Tenant, promised: Exact) -> None:
    """Raise before anything is changed, where a clock could not hold the sum."""
    if promised > LARGEST:
        raise PolicyError(
            f"the costs of the agents of {shown(tenant.name)} must add up to at most "
            f"{LARGEST:g}, not {shown(float(promised))}"
        )


def tenant_of_agent(agent_id: str) -> str:
    """Return the tenant in the id that `justitia.engines.serving.Agents` gives.

    >>> tenant_of_agent("agent/acme/report-17"), tenant_of_agent("request/acme/7")
    ('acme', 'acme')
    """
    return [*agent_id.split("/", 2), ""][1]
