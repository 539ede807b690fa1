"""`_check` really checks: whatever is corrupted, it says so.

The clock's and the line's are in their own modules.
"""

from collections.abc import Callable
from typing import Any

import pytest

from justitia.policy import Inference, SelectivePampering, Step
from justitia.policy.ledger import Account, Entry, Ledger
from justitia.policy.vtc import VTC
from tests.policy.builders import Anything, agent, inference, make, queue


def books(variant: str) -> Ledger:
    """Make a policy in which A/0 runs, A/1 and B/0 wait, and C left and is owed."""
    policy = queue(make(variant), agent("A", 60, weight=2), runs=2)
    queue(policy, agent("B", 50), agent("C", 80))
    policy.start("A/0")
    policy.start("C/0")
    policy.serve(Step({"A/0": 3}, {"A/0": 2, "C/0": 1}))
    policy.leave("C")
    assert isinstance(policy, Ledger)
    policy._check()
    return policy


def entry(policy: Ledger, name: str) -> Entry:
    return {**policy._waiting, **policy._running}[name]


def stranger(policy: Ledger) -> Entry:
    return Entry(inference("A/9"), policy._accounts["A"], 99)


EVERYWHERE: dict[str, Callable[[Anything], object]] = {
    "waiting lost": lambda p: p._waiting.pop("A/1"),
    "running lost": lambda p: p._running.pop("A/0"),
    "both waiting and running": lambda p: p._running.update(p._waiting),
    "waiting invented": lambda p: p._waiting.update({"A/9": stranger(p)}),
    "running invented": lambda p: p._running.update({"A/9": stranger(p)}),
    "wrong name": lambda p: p._running.update({"X": p._running.pop("A/0")}),
    "account lost": lambda p: p._accounts.pop("A"),
    "account under a wrong name": lambda p: p._accounts.update(
        {"Z": p._accounts.pop("B")}
    ),
    "account invented": lambda p: p._accounts.update({"Z": Account(agent("Z"), 1)}),
    "accounts out of order": lambda p: p._accounts.update({"A": p._accounts.pop("A")}),
    "seq": lambda p: setattr(p, "_seq", 0),
    "moves": lambda p: setattr(p, "_moves", -1),
    "live lost": lambda p: p._accounts["A"].live.clear(),
    "live invented": lambda p: p._accounts["B"].live.update({"A/9": stranger(p)}),
    "account.seq": lambda p: setattr(p._accounts["A"], "seq", 99),
    "account.agent": lambda p: setattr(p._accounts["A"], "agent", agent("Z")),
    "account.cost": lambda p: setattr(p._accounts["A"], "cost", 0),
    "account.service": lambda p: setattr(p._accounts["A"], "service", -1),
    "entry.account": lambda p: setattr(entry(p, "A/1"), "account", p._accounts["B"]),
    "entry.inference": lambda p: setattr(entry(p, "A/1"), "inference", inference()),
    "entry.seq": lambda p: setattr(entry(p, "A/1"), "seq", 99),
    "entry.seq twice": lambda p: setattr(entry(p, "A/1"), "seq", entry(p, "A/0").seq),
    "entry.produced": lambda p: setattr(entry(p, "A/1"), "produced", -1),
    "entry.work": lambda p: setattr(entry(p, "A/0"), "work", 3),
    "entry.work negative": lambda p: setattr(entry(p, "A/1"), "work", -1),
    "entry.prefilled": lambda p: setattr(entry(p, "A/1"), "prefilled", None),
    "entry.charge": lambda p: setattr(entry(p, "A/0"), "charge", -1),
}
POLICIES = (
    "fcfs", "sjf", "agent-fcfs", "srjf", "vtc", "justitia", "justitia-stage", "mlfq",
    "fairserve", "ayo",
)  # fmt: skip


@pytest.mark.parametrize("what", EVERYWHERE)
@pytest.mark.parametrize("variant", POLICIES)
def test_corrupted_books(variant: str, what: str) -> None:
    policy = books(variant)
    EVERYWHERE[what](policy)
    with pytest.raises(AssertionError):
        policy._check()


def group(policy: Anything, name: str = "A") -> Any:  # noqa: ANN401
    return policy._accounts[name].groups[0]


GROUPS: dict[str, Callable[[Anything], object]] = {
    "group lost": lambda p: p._accounts["A"].groups.clear(),
    "group.account": lambda p: setattr(group(p), "account", p._accounts["B"]),
    "group.stage": lambda p: setattr(group(p), "stage", 1),
    "group.place": lambda p: setattr(group(p), "place", (-1, 0)),
    "group.entries lost": lambda p: group(p).entries.clear(),
    "group.entries twice": lambda p: group(p).entries.update(group(p, "B").entries),
    "group.entries misplaced": lambda p: group(p).entries.update(
        {77: group(p).entries.popitem()[1]}
    ),
    "line lost": lambda p: p._line.discard(group(p)),
    "line out of date": lambda p: p._line.push(group(p), (99**9, 99, 0)),
}


@pytest.mark.parametrize("what", GROUPS)
@pytest.mark.parametrize(
    "variant", ["agent-fcfs", "srjf", "vtc", "justitia", "fairserve", "ayo"]
)
def test_corrupted_groups(variant: str, what: str) -> None:
    policy = books(variant)
    GROUPS[what](policy)
    with pytest.raises(AssertionError):
        policy._check()


def test_groups_out_of_order() -> None:
    policy = queue(make("agent-fcfs"), agent("A"), runs=3)
    group(policy).entries.move_to_end(next(iter(group(policy).entries)))
    with pytest.raises(AssertionError):
        policy._check()


@pytest.mark.parametrize("variant", ["fcfs", "sjf"])
def test_a_corrupted_line_of_inferences(variant: str) -> None:
    corruptions: tuple[Callable[[Anything], object], ...] = (
        lambda p: p._line.discard(entry(p, "A/1")),
        lambda p: p._line.push(stranger(p), (0, 0)),
        lambda p: p._line.push(entry(p, "A/1"), (99, 99)),
    )
    for corrupt in corruptions:
        policy = books(variant)
        corrupt(policy)
        with pytest.raises(AssertionError):
            policy._check()


CLOCKS: dict[str, Callable[[Anything], object]] = {
    "promised": lambda p: setattr(p._accounts["A"], "promised", 1),
    "tag": lambda p: p._accounts["A"].tags.update({0: 7}),
    "tags lost": lambda p: p._accounts["A"].tags.clear(),
    "latest": lambda p: setattr(p._accounts["A"], "latest", 5),
    "planned": lambda p: setattr(p._accounts["A"], "planned", -1),
    "further": lambda p: setattr(p._accounts["A"], "further", -1),
    "settled lost": lambda p: p._settled.clear(),
    "settled invented": lambda p: p._settled.add(99),
    "settled alive": lambda p: p._settled.add(p._accounts["A"].seq),
    "clock lost": lambda p: p.clock.leave(p._accounts["A"].seq),
    "clock ahead": lambda p: p.clock.serve(10**6),
    "clock corrupted": lambda p: setattr(p.clock, "_active", 0),
}


@pytest.mark.parametrize("what", CLOCKS)
@pytest.mark.parametrize("variant", ["justitia", "justitia-stage"])
def test_corrupted_tags(variant: str, what: str) -> None:
    policy = books(variant)
    assert isinstance(policy, SelectivePampering)
    assert policy._settled
    CLOCKS[what](policy)
    with pytest.raises(AssertionError):
        policy._check()


COUNTERS: dict[str, Callable[[Anything], object]] = {
    "counter": lambda p: setattr(p._accounts["A"], "counter", 0),
    "counter negative": lambda p: setattr(p._accounts["B"], "counter", -1),
    "weight": lambda p: setattr(p._accounts["A"], "weight", 9),
    "charge lost": lambda p: setattr(entry(p, "A/0"), "charge", None),
}


@pytest.mark.parametrize("what", COUNTERS)
def test_corrupted_counters(what: str) -> None:
    policy = books("vtc")
    COUNTERS[what](policy)
    with pytest.raises(AssertionError):
        policy._check()


QUEUES: dict[str, Callable[[Anything], object]] = {
    "now": lambda p: setattr(p, "_now", -1),
    "told": lambda p: setattr(p, "_told", 99),
    "front": lambda p: setattr(p, "_front", 1),
    "back": lambda p: setattr(p, "_back", -1),
    "level": lambda p: setattr(entry(p, "A/0"), "level", -1),
    "level too low": lambda p: setattr(entry(p, "A/0"), "level", 9),
    "place": lambda p: setattr(entry(p, "A/0"), "place", 99),
    "place twice": lambda p: setattr(entry(p, "A/0"), "place", p._waiting["B/0"].place),
    "used": lambda p: setattr(entry(p, "A/0"), "used", -1),
    "seen": lambda p: setattr(entry(p, "A/0"), "seen", 10**15),
    "computing": lambda p: setattr(entry(p, "A/1"), "computing", True),
    "stepped": lambda p: p._stepped.update({stranger(p): None}),
}


@pytest.mark.parametrize("what", QUEUES)
def test_corrupted_queues(what: str) -> None:
    policy = books("mlfq-short")
    QUEUES[what](policy)
    with pytest.raises(AssertionError):
        policy._check()


THROTTLES: dict[str, Callable[[Anything], object]] = {
    "counter": lambda p: setattr(p._accounts["B"], "counter", -1),
    "weight": lambda p: setattr(p._accounts["A"], "weight", 9),
    "running": lambda p: setattr(p._accounts["A"], "running", 0),
    "held": lambda p: setattr(p._accounts["B"], "held", True),
    "calls": lambda p: p._accounts["A"].calls.extend((1, 0)),
    "calls to come": lambda p: p._accounts["A"].calls.append(9),
    "look": lambda p: setattr(p, "_look", 9),
    "kinds": lambda p: p._kinds.update(dict.fromkeys(range(1001))),
    "usual": lambda p: p._usual.update({("", 0): (0, 1)}),
    "usual of none": lambda p: p._usual.update({("", 0): (1, 0)}),
}


@pytest.mark.parametrize("what", THROTTLES)
def test_corrupted_throttling(what: str) -> None:
    policy = books("fairserve-strict")
    THROTTLES[what](policy)
    with pytest.raises(AssertionError):
        policy._check()


def test_who_is_throttled_is_looked_at_in_time() -> None:
    policy: Anything = queue(make("fairserve-strict"), agent("A"), runs=3)
    policy.refuse("A/0")
    policy._check()
    assert policy._accounts["A"].held
    for wrong in (None, 0, 99):
        policy._look = wrong
        with pytest.raises(AssertionError):
            policy._check()


def test_who_left_the_line_last_is_known() -> None:
    policy = queue(make("vtc"), agent("A"))
    policy.pop()
    assert isinstance(policy, VTC)
    policy._last_left = None
    with pytest.raises(AssertionError):
        policy._check()


def test_books_of_two_stages() -> None:
    policy = make("justitia-stage")
    policy.arrive(agent("A", 30, stage_costs=(10, 20)))
    for stage in (1, 0):
        policy.submit(Inference(f"A/{stage}", "A", 1, 1, stage))
    policy._check()
    account: Any = policy._accounts["A"]  # type: ignore[attr-defined]
    account.latest = 1
    with pytest.raises(AssertionError):
        policy._check()
