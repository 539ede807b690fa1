"""Every policy against a plain model of it, whatever happens."""

from collections.abc import Iterable
from copy import deepcopy
from typing import ClassVar

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from justitia.policy import Agent, Inference, Policy, SelectivePampering, Step, names
from justitia.policy.exact import Number
from justitia.policy.ledger import Ledger
from tests.policy.builders import (
    VARIANTS,
    line,
    make,
    pick,
    victims,
)
from tests.policy.models import MODELS, Model, Pampering
from tests.policy.strategies import costs, picks, weights

AGENTS = ("a", "a1", "a11", "b")
INFERENCES = tuple(f"i{n}" for n in range(12))

Tokens = list[tuple[int, int, int | None]]
tokens: st.SearchStrategy[Tokens] = st.lists(
    st.tuples(picks, st.integers(0, 3), st.one_of(st.none(), st.integers(0, 3))),
    min_size=1,
    max_size=4,
)


def visible(policy: Policy) -> object:
    """Return all that a policy shows."""
    assert isinstance(policy, Ledger)
    shown = [
        [item.id for item in policy.order()],
        victims(policy),
        [(name, policy.tag(name)) for name in policy._accounts],
        [(name, account.service) for name, account in policy._accounts.items()],
    ]
    if isinstance(policy, SelectivePampering):
        shown += [policy.clock.value, policy.clock.active, len(policy.clock)]
    return shown


class PolicyAgainstModel(RuleBasedStateMachine):
    """A policy and its model hear the same and must say the same."""

    variants: ClassVar[tuple[str, ...]] = ()

    @initialize(index=picks)
    def choose(self, index: int) -> None:
        variant = pick(self.variants, index)
        self.policy = make(variant)
        self.model: Model = MODELS[variant]()
        assert self.policy.name == VARIANTS[variant][0]

    # What there is to choose from ---------------------------------------------

    def free(self, ids: Iterable[str], taken: Iterable[str]) -> list[str]:
        used = set(taken)
        return [name for name in ids if name not in used]

    def waiting(self) -> list[str]:
        return [n for n, i in self.model.items.items() if not i.running]

    def running(self) -> list[str]:
        return [n for n, i in self.model.items.items() if i.running]

    # What happens -------------------------------------------------------------

    @precondition(lambda self: len(self.model.owners) < len(AGENTS))
    @rule(
        index=picks,
        cost=costs,
        weight=weights,
        stages=st.lists(costs, max_size=3).map(tuple),
        kind=st.sampled_from(["", "k"]),
    )
    def arrive(
        self,
        index: int,
        cost: Number,
        weight: Number,
        stages: tuple[Number, ...],
        kind: str,
    ) -> None:
        name = pick(self.free(AGENTS, self.model.owners), index)
        self.policy.arrive(Agent(name, cost, weight, kind, stages))
        self.model.arrive(name, cost, weight, stages, kind)

    @precondition(lambda self: self.model.owners)
    @rule(
        index=picks,
        sizes=st.lists(
            st.tuples(st.integers(0, 6), st.integers(0, 5), st.integers(0, 3)),
            min_size=1,
            max_size=4,
        ),
    )
    def submit(self, index: int, sizes: list[tuple[int, int, int]]) -> None:
        agent = pick(self.model.owners, index)
        names = self.free(INFERENCES, self.model.items)
        for name, (p, d, stage) in zip(names, sizes, strict=False):
            self.policy.submit(Inference(name, agent, p, d, stage))
            self.model.submit(name, agent, p, d, stage)

    @rule(times=st.integers(1, 3))
    def start_head(self, times: int) -> None:
        for _ in range(times):
            head = self.policy.pop()
            if head is None:
                assert not self.waiting()
            else:
                assert head.id == self.model.order()[0]
                self.model.start(head.id)

    @precondition(lambda self: self.waiting())
    @rule(index=picks)
    def start_past_the_head(self, index: int) -> None:
        name = pick(self.waiting(), index)
        assert self.policy.start(name).id == name
        self.model.start(name)

    @precondition(lambda self: self.waiting())
    @rule()
    def refuse(self) -> None:
        shown = visible(self.policy)
        head = self.model.order()[0]
        self.policy.refuse(head)
        self.model.refuse(head)
        if self.policy.static_order:
            assert visible(self.policy) == shown

    @precondition(lambda self: self.running())
    @rule(steps=st.lists(tokens, min_size=1, max_size=3))
    def serve(self, steps: list[Tokens]) -> None:
        """Tell steps one by one to the policy, and all at once to a twin of it."""
        # Tokens of what waits or is unknown are late news, and nothing.
        who = self.running() + self.waiting()[:1] + ["ghost"]
        told = []
        for tokens in steps:
            prefill = {pick(who, i): n for i, n, _ in tokens}
            decode = {pick(who, i): m for i, _, m in tokens if m is not None}
            told.append(Step(prefill, decode))
        together = Step(
            {n: sum(s.prefill.get(n, 0) for s in told) for n in who},
            {
                n: sum(s.decode.get(n, 0) for s in told)
                for n in who
                if any(n in s.decode for s in told)
            },
        )
        twin = deepcopy(self.policy)
        before = [item.id for item in self.policy.order()]
        for step in told:
            self.policy.serve(step)
            self.model.serve(dict(step.prefill), dict(step.decode))
        if self.policy.static_order:
            assert [item.id for item in self.policy.order()] == before
        twin.serve(together)
        twin._check()
        if self.policy.additive:
            assert visible(twin) == visible(self.policy)

    @precondition(lambda self: self.running())
    @rule(index=picks)
    def requeue(self, index: int) -> None:
        name = pick(self.running(), index)
        self.policy.requeue(name)
        self.model.requeue(name)

    @precondition(lambda self: self.waiting())
    @rule(index=picks)
    def start_and_undo(self, index: int) -> None:
        """A start that is taken back before a step has left nothing behind."""
        name = pick(self.waiting(), index)
        shown = visible(self.policy)
        self.policy.start(name)
        self.policy.requeue(name)
        assert visible(self.policy) == shown
        self.model.start(name)
        self.model.requeue(name)

    @rule(index=picks)
    def finish(self, index: int) -> None:
        name = pick(INFERENCES, index)
        there = name in self.model.items
        assert self.policy.finish(name) is there
        if there:
            self.model.finish(name)

    @rule(index=picks)
    def leave(self, index: int) -> None:
        name = pick(AGENTS, index)
        there = name in self.model.owners
        assert self.policy.leave(name) is there
        if there:
            self.model.leave(name)

    @precondition(lambda self: self.model.owners)
    @rule(index=picks, cost=costs)
    def revise(self, index: int, cost: Number) -> None:
        name = pick(self.model.owners, index)
        self.policy.revise(name, cost)
        self.model.revise(name, cost)

    @rule(seconds=st.one_of(st.integers(-3, 9), st.fractions(0, 5, max_denominator=4)))
    def advance(self, seconds: Number) -> None:
        before = [item.id for item in self.policy.order()]
        self.policy.advance(seconds)
        self.model.advance(seconds)
        if self.policy.static_order:
            assert [item.id for item in self.policy.order()] == before

    # What must hold -----------------------------------------------------------

    @invariant()
    def agree(self) -> None:
        policy, model = self.policy, self.model
        policy._check()
        order = [item.id for item in policy.order()]
        assert order == model.order()
        gone = victims(policy)
        assert gone == model.victims()
        # Totality: everything that is alive is in one place.
        assert sorted(order + gone) == sorted(model.items)
        head = policy.peek()
        assert (None if head is None else head.id) == (order[0] if order else None)
        for waiting in policy.order():
            for running in policy.victims():
                wanted = model.preempts(waiting.id, running.id)
                assert policy.preempts(waiting, running) == wanted
        if isinstance(model, Pampering):
            self.agree_on_tags(model)

    def agree_on_tags(self, model: Pampering) -> None:
        policy = self.policy
        assert isinstance(policy, SelectivePampering)
        model.fair._check()
        assert policy.clock.value == model.fair.level
        assert policy.clock.active == len(model.fair.wanting())
        assert len(policy.clock) == len(model.fair.shares)
        for name in model.owners:
            assert policy.tag(name) == model.tag(name)

    def teardown(self) -> None:
        if not hasattr(self, "policy"):
            return
        policy = self.policy
        assert isinstance(policy, Ledger)
        line(policy)
        for name in list(self.model.owners):
            assert policy.leave(name)
            policy._check()
        assert not policy._accounts
        assert list(policy.order()) == list(policy.victims()) == []
        if isinstance(policy, SelectivePampering):
            assert len(policy.clock) == policy.clock.active == 0
            assert not policy._settled
        policy._check()


class Lines(PolicyAgainstModel):
    variants = ("fcfs", "sjf", "sjf-cost", "agent-fcfs", "ayo")


class Remaining(PolicyAgainstModel):
    variants = ("srjf",)


class Counters(PolicyAgainstModel):
    variants = ("vtc", "vtc-priced")


class Feedback(PolicyAgainstModel):
    variants = ("mlfq", "mlfq-short")


class Throttling(PolicyAgainstModel):
    variants = ("fairserve", "fairserve-strict")


class Pampered(PolicyAgainstModel):
    variants = ("justitia", "justitia-growth", "justitia-nominal", "justitia-c")


class PamperedByStage(PolicyAgainstModel):
    variants = ("justitia-stage", "justitia-stage-growth", "justitia-stage-reserved")


TestLines = Lines.TestCase
TestRemaining = Remaining.TestCase
TestCounters = Counters.TestCase
TestFeedback = Feedback.TestCase
TestThrottling = Throttling.TestCase
TestPampered = Pampered.TestCase
TestPamperedByStage = PamperedByStage.TestCase


def test_every_policy_has_a_model_and_a_machine() -> None:
    machines = (
        Lines, Remaining, Counters, Feedback, Throttling, Pampered, PamperedByStage
    )  # fmt: skip
    covered = {variant for machine in machines for variant in machine.variants}
    assert covered == set(VARIANTS) == set(MODELS)
    assert {name for name, _ in VARIANTS.values()} == set(names())
