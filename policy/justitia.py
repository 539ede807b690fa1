"""Selective pampering: agents one after another, in the order of a fair finish.

The Justitia paper's policy. Each agent gets the whole machine when its turn comes, and
turns come in the order in which an ideal fair server (GPS) would finish the agents. So
most agents finish much sooner than under equal shares, and none much later.

``proofs/README.md`` says how much later at most, and under which settings.
"""

from collections.abc import Collection

from justitia.policy.agents import Agent, Step
from justitia.policy.clock import VirtualClock
from justitia.policy.costs import COST_MODELS, CostModel
from justitia.policy.errors import PolicyError
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
from justitia.policy.ledger import Account, Entry
from justitia.policy.levels import AgentOrder


class _Pampered(Account):
    """An account with its place in the virtual clock.

    Attributes
    ----------
    promised
        The total cost that the clock knows, 0 before it knows any.
    tags
        The tag of each stage that has one (of stage 0 alone with a tag an agent).
    latest
        The stage whose tag was set last, which need not be the one of the largest
        number. Its tag is the clock's.
    before, served_before
        `promised` and `service` as they were when that stage became ready.
    planned, further
        What the stage costs, with a tag a stage: its cost in `Agent.stage_costs`, as it
        stands there, and the costs of inferences beyond those.
    """

    __slots__ = (
        "before", "further", "latest", "planned", "promised", "served_before", "tags"
    )  # fmt: skip

    def __init__(self, agent: Agent, seq: int) -> None:
        super().__init__(agent, seq)
        self.promised: Exact = 0
        self.tags: dict[int, Number] = {}
        self.latest = 0
        self.before: Exact = 0
        self.served_before: Number = 0
        self.planned: Exact = 0
        self.further: Exact = 0

    def open(self, stage: int) -> None:
        """Let a stage be the latest; nothing is promised to it yet."""
        self.latest = stage
        self.before = self.promised
        self.served_before = self.service
        self.planned = self.further = 0

    def scaled(self, cost: Exact) -> Exact:
        """Return `cost` in proportion to what the agent's cost was revised to."""
        if self.cost == self.agent.cost:
            return cost
        total = exactly(self.cost)
        return exactly(quotient(cost * total, exactly(self.agent.cost)))


class SelectivePampering(AgentOrder):
    """Agents in the order of their virtual finish tags, smaller first.

    An agent that ends, or is cancelled, is *settled*: it stays in the fair reference
    for what it was really delivered (never more than predicted), and is forgotten when
    the reference is through with it. With a tag a stage only its last stage is: to take
    from that what an earlier one was predicted too much would break the bound. Whether
    it runs for real is nothing to the clock.
    What the reference gave an agent beyond that is lost to the others; the debts of the
    settled are forgotten when no agent is left.

    `revise` replaces what `growth` made of the cost. With a tag a stage both are about
    the stage that got its tag last, `revise` in its part of the total; stages before
    that stay where they are.

    Parameters
    ----------
    tags
        ``"agent"``, as in the paper: one tag for all of an agent's cost, when it
        arrives. ``"stage"``: each stage gets its own when it becomes ready,
        max(V, last tag) + its cost / weight. The delay bound holds for agents of one
        stage, and stage by stage with ``"stage"``; one tag for a staged agent has none.
        A stage's cost is `Agent.stage_costs`; without them the first stage is taken to
        cost what the whole agent does. A stage that has no entry there costs, on top,
        what the inferences submitted for it are predicted to. The inferences of a stage
        must be submitted together for the bound to hold.
    cost
        The cost model, or its name: ``"kv"``, ``"kv-paper"``, ``"compute"``,
        ``"reserved"``.
    growth
        When an agent (with a tag a stage: its latest stage) has been delivered more
        than its predicted cost, revise that to `growth` times what it was delivered (at
        least 1; 2 doubles). None leaves the tag as it is: an agent predicted too small
        then keeps its place to its end. The delay bound is about tags that stay.
    clock
        ``"delivered"``: the reference shares what the engine delivers. ``"nominal"``,
        the paper's dV/dt = M / N: it shares `capacity` token-steps every
        `step_seconds`, as `advance` tells the time. An engine always delivers less, and
        the lag against such a reference grows without limit.
    capacity
        M in KV tokens, for the nominal clock.
    step_seconds
        The seconds of one step, for the nominal clock.
    """

    name = "justitia"

    def __init__(
        self,
        *,
        tags: str = "agent",
        cost: str | CostModel = "kv",
        growth: Number | None = None,
        clock: str = "delivered",
        capacity: Number | None = None,
        step_seconds: Number = 1,
    ) -> None:
        super().__init__()
        _one_of(tags, ("agent", "stage"), "tags")
        _one_of(clock, ("delivered", "nominal"), "clock")
        if not isinstance(cost, CostModel):
            _one_of(cost, COST_MODELS, "cost")
            cost = COST_MODELS[cost]()
        if growth is not None:
            growth = positive(growth, "growth")
            if growth < 1:
                raise PolicyError(f"growth must be at least 1, not {shown(growth)}")
        if (clock == "nominal") != (capacity is not None):
            raise PolicyError(
                'clock="nominal" needs a capacity, and no other clock takes one; '
                f"got clock={shown(clock)}, capacity={shown(capacity)}"
            )
        self.by_stage = tags == "stage"
        self.cost_model = cost
        self.static_order = self.additive = growth is None
        self._growth = growth
        seconds = positive(step_seconds, "step_seconds")
        self._rate: Number | None = None  # of the nominal clock, work a second
        if capacity is not None:
            self._rate = quotient(positive(capacity, "capacity"), seconds)
        self.clock = VirtualClock()
        """Keyed by an account's number, since an id may come again while its first
        bearer is still being served by the reference."""
        self._settled: set[int] = set()

    def account(self, agent: Agent, seq: int) -> Account:
        """Open an account, with its tag unless tags come stage by stage."""
        account = _Pampered(agent, seq)
        if not self.by_stage:
            self._promise(account, exactly(agent.cost))
        return account

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        """Return the tag, as a double to compare fast and then as it is."""
        tag = _pampered(account).tags[stage]
        return (float(tag), tag)

    def submitted(self, entry: Entry) -> None:
        """Give the first inference of a stage the stage's tag."""
        if not self.by_stage:
            return
        account, stage = _pampered(entry.account), entry.inference.stage
        inference = entry.inference
        costs = account.agent.stage_costs or (account.agent.cost,)
        if stage >= len(costs):
            cost = exactly(
                self.cost_model(inference.prompt_tokens, inference.decode_tokens)
            )
            self._promise(
                account,
                account.promised + cost,
                opened=None if stage == account.latest else stage,
            )
            account.further += cost
        elif stage not in account.tags:
            cost = exactly(costs[stage])
            self._promise(
                account, account.promised + account.scaled(cost), opened=stage
            )
            account.planned = cost

    def served(self, step: Step) -> None:
        """Share what the step delivered, then let the outgrown grow."""
        got = self.deliver(step)
        if self._rate is None:
            self._share(sum(got.values()))
        if self._growth is not None:
            for account in map(_pampered, got):
                service = account.service - account.served_before
                if service > account.promised - account.before:
                    grown = exactly(min(service * self._growth, LARGEST))
                    self._promise(account, account.before + grown)

    def advance(self, seconds: Number) -> None:
        """Drive the nominal clock; see `Policy.advance`."""
        seconds = finite(seconds, "seconds")
        if self._rate is not None:
            self._share(min(self._rate * max(seconds, 0), LARGEST))

    def revised(self, account: Account) -> None:
        """Tell the clock the new cost, or the part of it that the latest stage is."""
        pampered = _pampered(account)
        if self.by_stage and pampered.tags:
            part = pampered.scaled(pampered.planned) + pampered.further
            self._promise(pampered, pampered.before + part)
        elif not self.by_stage:
            self._promise(pampered, exactly(account.cost))

    def left(self, account: Account) -> None:
        """Settle the agent at what it was delivered; see the class."""
        seq = account.seq
        if seq in self.clock:
            pampered = _pampered(account)
            last = account.service - pampered.served_before
            last = min(exactly(last), pampered.promised - pampered.before)
            cost = pampered.before + last
            if cost >= SMALLEST and self.clock.revise(seq, cost) > self.clock.value:
                self._settled.add(seq)
            else:
                self.clock.leave(seq)
        if not self._accounts:
            for seq in self._settled:
                self.clock.leave(seq)
            self._settled.clear()

    def tag(self, agent_id: str) -> Number | None:
        """Return an agent's latest tag, None while it has none.

        Raises
        ------
        PolicyError
            If the agent is unknown.
        """
        account = self._known(agent_id)
        return self.clock.tag(account.seq) if account.seq in self.clock else None

    def _share(self, work: Number) -> None:
        for seq, _ in self.clock.serve(work):
            if seq in self._settled:
                self._settled.remove(seq)
                self.clock.leave(seq)

    def _promise(
        self, account: _Pampered, cost: Exact, opened: int | None = None
    ) -> None:
        """Make `cost` what the clock knows, and its tag the tag of the latest stage.

        That is from now on the stage `opened`, if it is not None.
        """
        if account.seq in self.clock:
            tag = self.clock.revise(account.seq, cost)
        else:
            tag = self.clock.arrive(account.seq, cost, account.agent.weight)
        if opened is not None:
            account.open(opened)
        account.promised = cost
        account.tags[account.latest] = tag
        self.reorder(account, account.latest)

    def _check(self) -> None:
        self.clock._check()
        for account in self._accounts.values():
            pampered = _pampered(account)
            assert (account.seq in self.clock) == bool(pampered.tags)
            if pampered.tags:
                latest = pampered.tags.get(pampered.latest)
                assert self.clock.tag(account.seq) == latest
                assert self.clock._members[account.seq].cost == pampered.promised
            if not self.by_stage:
                assert pampered.before == pampered.planned == pampered.further == 0
                assert pampered.served_before == 0
            elif self._growth is None:
                part = pampered.scaled(pampered.planned) + pampered.further
                assert pampered.before + part == pampered.promised
            assert pampered.served_before <= account.service
        live = {account.seq for account in self._accounts.values()}
        assert not live & self._settled
        for seq in self._settled:
            assert seq in self.clock
            assert self.clock.tag(seq) > self.clock.value
        known = sum(bool(_pampered(a).tags) for a in self._accounts.values())
        assert len(self.clock) == known + len(self._settled)
        super()._check()


def _one_of(value: object, allowed: Collection[str], what: str) -> None:
    if not isinstance(value, str) or value not in allowed:
        names = ", ".join(allowed)
        raise PolicyError(f"{what} must be one of {names}, not {shown(value)}")


def _pampered(account: Account) -> _Pampered:
    assert isinstance(account, _Pampered)
    return account
