"""The suite finds what it should: every planted fault, by name, and none in ours."""

import json
import os
import re
from collections.abc import Callable
from dataclasses import FrozenInstanceError, replace
from pathlib import Path

import pytest
from hypothesis import strategies as st

from justitia.policy import Agent, Inference, SelectivePampering, create
from justitia.proofs.admissions import Slots
from justitia.proofs.lines import PolicyLine
from justitia.proofs.plans import Plan
from justitia.proofs.properties import ALL, Family, Property, expect
from justitia.proofs.recorder import NEEDED, Session, replay
from justitia.proofs.scenarios import Scenario
from justitia.proofs.verify import (
    BROKEN,
    HELD,
    NOT_OFFERED,
    PROFILES,
    Profile,
    Report,
    Unusable,
    choose,
    verify,
)
from tests.proofs import planted
from tests.proofs.planted import FAULTS

BY_NAME = {one.name: one for one in ALL}
VERBS = [
    "total",
    "start-returns",
    "steps-pass-over",
    "order-is-pops",
    "head-stays",
    "requeue-returns",
    "unknown-ids",
    "bad-input",
    "deterministic",
    "first-come-ties",
    "no-leak",
    "checks",
]
FASTEST = Profile(examples=10, smaller=200)


def run(
    make: Callable[..., object],
    *properties: str,
    seed: int = 7,
    profile: str = "quick",
) -> Report:
    return verify(
        make,
        name=make.__name__,
        properties=properties or None,
        seed=seed,
        profile=profile,
    )


def broken(report: Report) -> list[str]:
    return [result.name for result in report.results if result.status == BROKEN]


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the profile ``quick`` be quicker still: as long as it takes to see."""
    monkeypatch.setitem(PROFILES, "quick", FASTEST)


# What is right ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 1])
def test_ours_keeps_everything(seed: int, fast: None) -> None:
    report = run(SelectivePampering, seed=seed)
    assert broken(report) == []
    assert report.held
    assert {result.status for result in report.results} == {HELD}
    assert all(result.examples and not result.history for result in report.results)


@pytest.mark.property
def test_ours_keeps_everything_for_long() -> None:
    profile = {"long": "long", "ci": "quick"}.get(
        os.environ.get("HYPOTHESIS_PROFILE", "quick"), "quick"
    )
    assert broken(run(SelectivePampering, profile=profile)) == []


def test_a_tag_a_stage_is_as_fair_to_agents_of_one(fast: None) -> None:
    def by_stage(cost: str = "kv") -> object:
        return SelectivePampering(tags="stage", cost=cost)

    assert broken(run(by_stage)) == ["tag-at-arrival"]


@pytest.mark.parametrize("name", ["fcfs", "agent-fcfs", "sjf", "srjf", "vtc"])
def test_other_orders_keep_the_verbs_and_are_not_fair(name: str, fast: None) -> None:
    def make() -> object:
        return create(name)

    assert broken(run(make, *VERBS)) == []
    report = run(make, "fair-order", "weights", "theorem-b-stages")
    assert broken(report) == ["fair-order", "weights"]
    assert report.results[-1].status == NOT_OFFERED
    assert not report.held


# What is wrong ------------------------------------------------------------------------


@pytest.mark.parametrize("seed", [0, 20_261_130])
@pytest.mark.parametrize("make", FAULTS, ids=lambda make: make.__name__)
def test_a_planted_fault_is_found_by_name(
    make: Callable[..., object], seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(PROFILES, "quick", replace(PROFILES["quick"], smaller=0))
    must = FAULTS[make].split()
    report = run(make, *must, seed=seed)
    assert broken(report) == must
    for result in report.results:
        assert result.message
        assert result.history[0] == f"policy = {make.__name__}({_options(result.name)})"


def _options(name: str) -> str:
    return ", ".join(f"{k}={v!r}" for k, v in BY_NAME[name].needs.items())


SMALL = [
    (planted.LastInFirstOut, "first-come-ties", 6),
    (planted.LastInFirstOut, "fair-order", 7),
    (planted.Backfills, "head-stays", 10),
    (planted.TiesById, "first-come-ties", 6),
    (planted.StaleRate, "rate-at-departures", 13),
    (planted.DroppedAtItsEnd, "ended-stays", 17),
    (planted.TakesTwice, "bad-input", 5),
    (planted.Leaks, "no-leak", 11),
    (planted.LosesWhatComesBack, "total", 13),
]


@pytest.mark.parametrize(("make", "name", "most"), SMALL)
def test_what_is_found_is_small_and_can_be_replayed(
    make: Callable[..., object], name: str, most: int
) -> None:
    (result,) = run(make, name).results
    assert len(result.history) <= most, "\n".join(result.history)
    for told, now in replay(result.history, make):
        assert now == told
    if make is not planted.Leaks:  # which shows in no answer
        right = [now == told for told, now in replay(result.history, create_ours)]
        assert not all(right), "\n".join(result.history)


def test_a_history_ends_where_the_bound_is_broken() -> None:
    report = run(planted.shortest_remaining, "theorem-b", "no-starvation")
    starts, ends = (result.history for result in report.results)
    assert starts[-1].startswith(("policy.start(", "policy.finish("))
    assert ends[-1].startswith(("policy.start(", "policy.finish("))


def create_ours() -> object:
    return create("justitia")


# What is not even a scheduler ---------------------------------------------------------


class Bare:
    """Has two verbs."""

    def arrive(self, agent: Agent) -> None: ...

    def submit(self, inference: Inference) -> None: ...


def test_missing_verbs_are_named() -> None:
    with pytest.raises(Unusable) as caught:
        verify(Bare)
    assert str(caught.value) == f"has no {', '.join(NEEDED[2:])}"


def test_what_cannot_be_made_is_told() -> None:
    def needy(size: int) -> object:
        return size

    with pytest.raises(Unusable, match="cannot be made without arguments: TypeError: "):
        verify(needy)


class Exits(SelectivePampering):
    """Ends the program."""

    def peek(self) -> Inference | None:
        raise SystemExit(3)


class Strange(SelectivePampering):
    """Answers with its ids."""

    def peek(self) -> Inference | None:
        head = super().peek()
        return head and head.id  # type: ignore[return-value]


class Unseen(SelectivePampering):
    """Is next with something that nobody submitted."""

    def peek(self) -> Inference | None:
        return Inference("x", "y", 1, 1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (Exits, "peek raised SystemExit: 3 (test_verify.py:LINE)"),
        (Strange, "peek() answered 'd/0', which is no Inference"),
        (Unseen, "peek() answered 'x', which is not waiting"),
    ],
)
def test_whatever_an_object_does_is_told(
    make: Callable[..., object], message: str, fast: None
) -> None:
    (result,) = run(make, "total").results
    told = re.sub(r"py:\d+", "py:LINE", result.message)
    assert (result.status, told) == (BROKEN, message)


class Duck:
    """Has the verbs that there must be, and no others."""

    def __init__(self) -> None:
        ours = SelectivePampering()
        for verb in NEEDED:
            setattr(self, verb, getattr(ours, verb))


def test_an_object_need_not_be_a_policy(fast: None) -> None:
    report = run(Duck, "total", "checks", "fair-order", "no-leak", "head-stays")
    assert [result.status for result in report.results] == [
        HELD,
        NOT_OFFERED,
        HELD,
        HELD,
        HELD,
    ]
    assert report.results[1].message == "has no _check"


def test_a_line_needs_no_more_than_the_verbs() -> None:
    plan = Plan(0, (((2, 3), (0, 1)),))
    scenario = Scenario((plan, plan), Slots(1))
    ran = [scenario.run(PolicyLine(make())) for make in (Duck, create_ours)]  # type: ignore[arg-type]
    assert ran[0].finishes == ran[1].finishes


# Telling a history again --------------------------------------------------------------

HISTORY = """
    policy = Ours()
    # two agents

    policy.arrive(Agent('a', 3))
    policy.submit(Inference('a/0', 'a', 1, 1))
    policy.tag('a')  # 3
    policy._check()
    policy.refuse('a/0')
    policy.advance(1)
    policy.pop()  # 'a/0'
    policy.pop()  # None
    policy.requeue('b')  # raised PolicyError: inference 'b' is not running"""


class Floats(Duck):
    """Tells its tags as floats, a little off."""

    def tag(self, _: str) -> float:
        return 3.0000000001


@pytest.mark.parametrize("make", [SelectivePampering, Duck, Floats])
def test_a_history_is_told_again(make: Callable[..., object]) -> None:
    told = list(replay(HISTORY.splitlines(), make))
    assert len(told) == 10
    for before, now in told[:-1]:
        assert before == now
    assert "  # raised PolicyError: " in told[-1][1]


def test_other_answers_are_told() -> None:
    lines = ["p = Ours()", "p.arrive(Agent('a', 3))", "p.tag('a')  # 4"]
    lines += ["p.pop()  # 'a/0'", "p.requeue('a/0')"]
    told = [now for _, now in replay(lines, SelectivePampering)]
    assert told[2:4] == ["p.tag('a')  # 3", "p.pop()  # None"]
    assert told[4].startswith("p.requeue('a/0')  # raised PolicyError: ")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("… 39 lines left out", "line 2, '… 39 lines left out': lines were left out"),
        ("from x import y", "line 2, 'from x import y': no call of a verb"),
        ("p.stop()", "line 2, 'p.stop()': no verb: stop"),
        ("q.peek()", "line 2, 'q.peek()': nothing made q"),
        ("p.tag(open('x'))", "no value: open('x')"),
        ("p.arrive(", "line 2, 'p.arrive(': "),
        ("p.arrive()", "missing 1 required positional argument"),
    ],
)
def test_a_line_that_is_no_call_is_named(line: str, message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        list(replay(["p = Ours()", line], SelectivePampering))


# The report ---------------------------------------------------------------------------


def test_the_same_seed_finds_the_same(fast: None) -> None:
    names = ("total", "fair-order", "theorem-b-predictions")
    first, second = (run(planted.TiesById, *names, seed=5) for _ in range(2))
    assert first == second
    assert first.seed == 5


def test_the_document(fast: None) -> None:
    report = run(planted.TakesTwice, "total", "bad-input", "checks")
    document = report.document(version="1.2.3")
    assert json.loads(json.dumps(document)) == document
    assert list(document) == [
        "schema", "version", "policy", "profile", "seed", "held", "properties",
    ]  # fmt: skip
    assert document["schema"] == 1
    assert document["held"] is False
    properties = document["properties"]
    assert isinstance(properties, list)
    for one in properties:
        assert list(one) == [
            "name", "says", "status", "examples", "message", "history",
        ]  # fmt: skip
    assert [one["status"] for one in properties] == [HELD, BROKEN, HELD]
    with pytest.raises(FrozenInstanceError):
        report.seed = 3  # type: ignore[misc]


def test_progress_is_told_after_each(fast: None) -> None:
    told: list[int] = []
    verify(SelectivePampering, properties=ALL[:3], progress=told.append)
    assert told == [1, 2, 3]


def test_nothing_is_written(
    fast: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run(planted.LastInFirstOut, "fair-order")
    assert os.listdir() == []


def test_properties_are_named_and_say_what_holds() -> None:
    assert len(BY_NAME) == len(ALL) == len(choose())
    with pytest.raises(Unusable, match="no property 'no'; there are: total, start-r"):
        choose(["no"])
    for one in ALL:
        assert one.name == one.name.lower()
        assert " " not in one.name
        assert one.says.endswith(".")
        assert len(one.says) <= 80


def test_the_page_has_all_properties() -> None:
    page = Path(__file__, "../../../docs/verify.md").resolve().read_text()
    for one in ALL:
        assert f"\n| `{one.name}` | {one.says} |\n" in page
    assert f"\n{len(ALL)} properties: {len(ALL)} held.\n" in page


def test_a_property_of_ones_own() -> None:
    def never_three(session: Session, number: int) -> None:
        policy = session.policy()
        for name in range(number):
            policy.arrive(Agent(f"a{name}", 1))
        expect(number < 3, "three agents came")

    own = Property("never-three", "x.", (Family(st.integers(0, 9), never_three),))
    report = verify(SelectivePampering, properties=[own])
    (result,) = report.results
    assert result.message == "three agents came"
    assert result.history == (
        "policy = make()",
        "policy.arrive(Agent('a0', 1))",
        "policy.arrive(Agent('a1', 1))",
        "policy.arrive(Agent('a2', 1))",
    )
