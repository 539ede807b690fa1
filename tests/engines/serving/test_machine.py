"""`Agents` beside a plain model of who is there, step by step."""

from dataclasses import dataclass, field
from math import inf, nan

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from justitia.engines.serving import Agents, read_claim
from justitia.policy import PolicyError, create

LINGER, MOST = 10, 3
POLICIES: list[tuple[str, dict[str, object]]] = [
    ("justitia", {}),
    ("justitia", {"tags": "stage"}),
    ("justitia", {"growth": 2}),
    ("justitia", {"cost": "kv-paper"}),
    ("vtc", {}),
    ("srjf", {}),
    ("fcfs", {}),
]

names = st.sampled_from(["a", "b", "c", "d", "e", "f", "a\n", "", "x" * 300])
values = st.sampled_from([1, 2, 50, 0.5, 1e150, 0, -1, nan, inf, "5", True, None, [1]])
claims = st.fixed_dictionaries(
    {},
    optional={
        "agent": names,
        "cost": values,
        "kind": names,
        "weight": values,
        "stage": st.one_of(st.integers(0, 2), values),
        "inferences": st.one_of(st.integers(1, 3), values),
        "tokens": st.one_of(st.integers(0, 9), values),
        "stage_costs": st.one_of(values, st.lists(values, max_size=3)),
    },
)


@dataclass
class Plain:
    """An agent as one would write it down."""

    inferences: int | None
    live: set[str] = field(default_factory=set)
    ended: int = 0
    since: float | None = None


class Serving(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.clock = self.time = 0.0
        self.sent = 0
        self.owner: dict[str, str] = {}  # of live requests
        self.running: set[str] = set()
        self.gone: list[str] = []  # requests that are nobody's any more
        self.plain: dict[str, Plain] = {}
        self.faults = 0

    @initialize(policy=st.sampled_from(POLICIES))
    def begin(self, policy: tuple[str, dict[str, object]]) -> None:
        name, options = policy
        made = create(name, **options)
        self.agents = Agents(made, now=lambda: self.clock, linger=LINGER, most=MOST)

    # --- what happens -----------------------------------------------------------------

    @rule(said=claims, prompt=st.integers(1, 20), longest=st.integers(0, 20))
    def submit(self, said: dict[str, object], prompt: int, longest: int) -> None:
        claim = read_claim(said)
        self.sent += 1
        request = f"r{self.sent}"
        refused = self.agents.faults["claim"]
        self.agents.submit(request, claim, prompt, longest)
        self.faults += len(claim.faults) + self.agents.faults["claim"] - refused
        own = claim.agent is None or self.agents.faults["claim"] > refused
        name = f"request/{request}" if own else f"agent/{claim.agent}"
        if name not in self.plain:
            self.plain[name] = Plain(1 if own else claim.inferences)
        self.plain[name].live.add(request)
        self.plain[name].since = None
        self.owner[request] = name
        assert self.agents.predicted(request) <= longest
        assert self.agents.waiting(request)

    @rule(said=claims)
    def announce(self, said: dict[str, object]) -> None:
        claim = read_claim(said)
        name = f"agent/{claim.agent}"
        if claim.agent is None or claim.cost is None or name in self.plain:
            with pytest.raises(PolicyError):
                self.agents.announce(claim)
            return
        self.agents.announce(claim)
        self.plain[name] = Plain(claim.inferences, since=self.time)
        self.forget()

    @rule(data=st.data(), cost=values)
    @precondition(lambda self: self.plain)
    def revise(self, data: st.DataObject, cost: object) -> None:
        name = data.draw(st.sampled_from([*self.plain, "agent/nobody"]))
        bare = name.removeprefix("agent/")
        before = self.agents.tag(bare)
        try:
            self.agents.revise(bare, cost)  # type: ignore[arg-type]
        except PolicyError:
            assert self.agents.tag(bare) == before
        else:
            assert name in self.plain

    @rule(count=st.integers(1, 3))
    def start(self, count: int) -> None:
        for _ in range(count):
            head = self.agents.head()
            if head is None:
                return
            assert head in self.owner
            assert next(self.agents.order()) == head
            self.agents.start(head)
            self.running.add(head)

    @rule(tokens=st.integers(1, 3))
    def serve(self, tokens: int) -> None:
        step = dict.fromkeys(sorted(self.running), tokens)
        self.agents.serve({}, step | dict.fromkeys(self.gone[:2], 1))

    @rule(data=st.data())
    @precondition(lambda self: self.running)
    def requeue(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(sorted(self.running)))
        self.running.discard(request)
        self.agents.requeue(request)
        assert self.agents.waiting(request)

    @rule(data=st.data())
    @precondition(lambda self: self.owner)
    def finish(self, data: st.DataObject) -> None:
        request = data.draw(st.sampled_from(sorted(self.owner)))
        assert self.agents.finish(request)
        assert not self.agents.finish(request)
        self.end(request)
        self.forget()

    @rule(data=st.data())
    @precondition(lambda self: self.plain)
    def dismiss(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.plain)))
        bare = name.removeprefix("agent/")
        gone = self.agents.dismiss(bare)
        if not name.startswith("agent/"):
            assert gone is None
            return
        assert gone is not None
        assert set(gone) == self.plain.pop(name).live
        for request in gone:
            self.running.discard(request)
            del self.owner[request]
        self.gone += gone

    @rule(passed=st.one_of(st.integers(0, 12), st.just(-100)))
    def wait(self, passed: int) -> None:
        self.clock += passed
        self.time += max(0, passed)
        self.agents.expire()
        self.forget()

    @rule()
    @precondition(lambda self: self.gone)
    def speak_of_the_gone(self) -> None:
        for request in self.gone:
            self.agents.requeue(request)
            self.agents.refuse(request)
            assert not self.agents.finish(request)

    # --- the model --------------------------------------------------------------------

    def end(self, request: str) -> None:
        name = self.owner.pop(request)
        self.running.discard(request)
        plain = self.plain[name]
        plain.live.remove(request)
        plain.ended += 1
        if plain.live:
            return
        own = name.startswith("request/")
        if own or (plain.inferences is not None and plain.ended >= plain.inferences):
            del self.plain[name]
        else:
            plain.since = self.time
            self.plain[name] = self.plain.pop(name)  # the last to come to rest

    def forget(self) -> None:
        """Forget who rested too long, and the longest at rest of too many."""
        resting = [n for n, plain in self.plain.items() if plain.since is not None]
        resting.sort(key=lambda n: self.plain[n].since or 0)
        for place, name in enumerate(resting):
            since = self.plain[name].since or 0
            if len(resting) - place > MOST or self.time - since >= LINGER:
                del self.plain[name]

    @invariant()
    def is_the_model(self) -> None:
        agents = self.agents
        agents._check()
        assert set(agents._agents) == set(self.plain)
        assert len(agents) == len(self.plain)
        for name, plain in self.plain.items():
            assert set(agents._agents[name].live) == plain.live
        order = list(agents.order())
        assert sorted([*order, *self.running]) == sorted(self.owner)
        assert sorted(agents.victims()) == sorted(self.running)
        assert agents.head() == (order[0] if order else None)
        assert agents.faults.total() == self.faults

    def teardown(self) -> None:
        for request in list(self.owner):
            self.agents.finish(request)
        for name in list(self.plain):
            self.agents.dismiss(name.removeprefix("agent/"))
        assert len(self.agents) == 0
        assert self.agents.head() is None
        self.agents._check()


TestServing = Serving.TestCase
