"""Two-level shares: against one-level Justitia, and against what a tenant may get."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.gateway.shares import Shares, tenant_of_agent
from justitia.policy import (
    Agent,
    Inference,
    KVTokenTime,
    Policy,
    PolicyError,
    Step,
    create,
)

WORK = KVTokenTime()


def shares(**weights: float) -> Shares:
    return Shares(
        lambda: create("justitia"), weights, lambda agent_id: agent_id.split(":")[0]
    )


class Box:
    """An engine of a few slots, a token an inference and step."""

    def __init__(self, policy: Policy, slots: int = 2) -> None:
        self.policy = policy
        self.slots = slots
        self.left: dict[str, int] = {}
        self.whose: dict[str, str] = {}
        self.live: dict[str, int] = {}
        self.started: list[str] = []
        self.got: dict[str, int] = {}
        self.prompts: dict[str, tuple[int, int]] = {}

    def arrive(self, name: str, *sizes: tuple[int, int], weight: float = 1) -> None:
        cost = sum(WORK(p, d) for p, d in sizes)
        self.policy.arrive(Agent(name, cost, weight))
        self.live[name] = len(sizes)
        for number, (p, d) in enumerate(sizes):
            one = f"{name}/{number}"
            self.policy.submit(Inference(one, name, p, d))
            self.whose[one] = name
            self.left[one] = d
            self.prompts[one] = (p, 0)

    def step(self) -> None:
        running = [one for one in self.started if one in self.left]
        while len(running) < self.slots and (head := self.policy.peek()) is not None:
            self.policy.start(head.id)
            self.started.append(head.id)
            running.append(head.id)
        self.policy.serve(Step({}, dict.fromkeys(running, 1)))
        for one in running:
            p, n = self.prompts[one]
            self.prompts[one] = (p, n + 1)
            agent = self.whose[one]
            self.got[agent] = self.got.get(agent, 0) + p + n + 1
            self.left[one] -= 1
            if not self.left[one]:
                del self.left[one]
                self.policy.finish(one)
                self.live[agent] -= 1
                if not self.live[agent]:
                    self.policy.leave(agent)
        self.policy._check()


sizes = st.lists(
    st.tuples(st.integers(0, 20), st.integers(1, 8)), min_size=1, max_size=3
)
arrivals = st.lists(
    st.tuples(st.integers(0, 6), sizes, st.sampled_from([1, 2, Fraction(1, 3)])),
    min_size=1,
    max_size=8,
)


Sizes = list[tuple[int, list[tuple[int, int]], float]]
Plan = list[tuple[int, str, list[tuple[int, int]], float]]


def run(policy: Policy, plan: Plan) -> list[str]:
    box = Box(policy)
    for wait, name, those, weight in plan:
        for _ in range(wait):
            box.step()
        box.arrive(name, *those, weight=weight)
    while box.left:
        box.step()
    return box.started


@pytest.mark.property
@given(arrivals)
def test_one_tenant_is_one_level_justitia(plan: Sizes) -> None:
    told = [(w, f"a:{n}", s, weight) for n, (w, s, weight) in enumerate(plan)]
    assert run(shares(), told) == run(create("justitia"), told)


@pytest.mark.property
@given(arrivals)
def test_a_tenant_for_each_agent_is_one_level_justitia(plan: Sizes) -> None:
    told = [(w, f"{n}:a", s, weight) for n, (w, s, weight) in enumerate(plan)]
    policy = shares(**{str(n): weight for n, (_, _, weight) in enumerate(plan)})
    assert run(policy, told) == run(create("justitia"), told)


@pytest.mark.property
@given(arrivals, st.data())
def test_the_order_is_that_of_repeated_pop(plan: Sizes, data: st.DataObject) -> None:
    box = Box(shares(b=3))
    for number, (wait, those, weight) in enumerate(plan):
        for _ in range(wait):
            box.step()
        tenant = data.draw(st.sampled_from("abc"))
        box.arrive(f"{tenant}:{number}", *those, weight=weight)
        back: bool = data.draw(st.booleans(), label="put back")
        running = [one for one in box.started if one in box.left]
        if running and back:
            box.policy.requeue(running[-1])
            box.started.remove(running[-1])
            box.policy._check()
    order: list[str] = [inference.id for inference in box.policy.order()]
    popped = []
    while (head := box.policy.pop()) is not None:
        popped.append(head.id)
        box.policy._check()
    assert order == popped


@pytest.mark.property
@given(
    st.integers(1, 5),
    st.sampled_from([1, 2, 4]),
    st.integers(1, 3),
    st.lists(st.integers(1, 6), min_size=1, max_size=6),
)
def test_a_thousand_agents_of_a_tenant_buy_nothing_b50(
    count: int, weight: int, slots: int, lengths: list[int]
) -> None:
    """One always has new agents in line; the other's only one ends as if it had one."""
    box = Box(shares(many=1, one=weight), slots)
    calls = 20
    box.arrive("one:big", *[(5, 8)] * calls)
    cost = calls * WORK(5, 8)
    made = 0
    while box.live["one:big"]:
        alive = sum(left > 0 for name, left in box.live.items() if name[0] == "m")
        for _ in range(count + slots - alive):
            box.arrive(f"many:{made}", (5, lengths[made % len(lengths)]))
            made += 1
        box.step()
    many = sum(work for name, work in box.got.items() if name[0] == "m")
    assert many <= Fraction(cost, weight) + slots * WORK(5, 8)


def test_a_small_agent_passes_a_large_one_of_its_tenant() -> None:
    box = Box(shares(), slots=1)
    box.arrive("a:big", *[(10, 8)] * 4)
    box.arrive("b:big", *[(10, 8)] * 4)
    for _ in range(10):
        box.step()
    box.arrive("a:small", (1, 2))
    while box.left:
        box.step()
    assert box.started.index("a:small/0") <= 3


def test_a_tenant_pays_for_what_it_is_really_delivered() -> None:
    policy = shares()
    for name in ("a:1", "b:1"):
        policy.arrive(Agent(name, 100))
    policy.submit(Inference("x", "a:1", 0, 1))
    policy.start("x")
    policy.serve(Step({}, {"x": 40}))  # 820 token-steps
    policy._check()
    assert policy.delivered("a") == 820
    policy.submit(Inference("y", "b:1", 50, 1))
    policy.submit(Inference("z", "a:1", 1, 1))
    assert [one.id for one in policy.order()] == ["y", "z"]
    policy.leave("a:1")
    policy.arrive(Agent("a:2", 1))  # another name does not help
    policy.submit(Inference("w", "a:2", 1, 1))
    assert [one.id for one in policy.order()] == ["y", "w"]
    policy._check()


def test_nothing_is_remembered_of_tenants_without_agents() -> None:
    policy = shares()
    for round_ in range(5):
        policy.arrive(Agent(f"a:{round_}", 10))
        policy.arrive(Agent(f"b:{round_}", 10))
        policy.leave(f"a:{round_}")
        policy.leave(f"b:{round_}")
        policy._check()
        assert len(policy.among) == 0


@pytest.mark.parametrize(
    ("agent_id", "tenant"),
    [("agent/t/x/y", "t"), ("request/t/1", "t"), ("a", ""), ("agent/", "")],
)
def test_the_tenant_is_in_the_id(agent_id: str, tenant: str) -> None:
    assert tenant_of_agent(agent_id) == tenant


def test_costs_that_do_not_add_up_to_one_are_refused_and_change_nothing() -> None:
    shares = Shares(lambda: create("justitia"))
    shares.arrive(Agent("agent/a/1", 6e149))
    with pytest.raises(PolicyError, match="must add up to at most"):
        shares.arrive(Agent("agent/a/2", 6e149))
    shares._check()
    shares.arrive(Agent("agent/a/2", 5))
    with pytest.raises(PolicyError, match="must add up to at most"):
        shares.revise("agent/a/2", 6e149)
    assert shares.tag("agent/a/2") == 5
    shares._check()
