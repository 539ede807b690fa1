"""The programs that are proved in Coq and the code that ships do the same.

Random instances, the same ones in every run, go through the shipped clock and policy in
the exact server; Coq runs its programs on them and compares all that came out
(`justitia.proofs.link`). Then differences are planted, and Coq must find them.

Needs ``coqc``. In CI, with ``JUSTITIA_COQ=required``, its absence is a failure.
"""

import fcntl
import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import count, islice
from pathlib import Path
from random import Random

import pytest

from justitia.policy import Agent, SelectivePampering
from justitia.policy.ledger import Account
from justitia.proofs.admissions import Admission, Lookahead, Peak
from justitia.proofs.lines import FairLine
from justitia.proofs.link import (
    Claim,
    Observed,
    closed_claim,
    empties,
    observe,
    rate_claim,
    refuted,
    released_claim,
    reserved,
    run_at_rate,
    settled_claim,
)
from justitia.proofs.plans import Plan, Size, Work, kv_token_time
from justitia.proofs.reference import fair_finishes
from justitia.proofs.server import Server

SOURCES = Path(__file__).parents[2] / "proofs" / "coq"
MODULES = ("RateClaims", "ServiceClaims")
EACH = 75  # instances of each of the four families


# --- instances ------------------------------------------------------------------------
def sizes(random: Random, capacity: int) -> tuple[Size, ...]:
    """One to three inferences that fit."""
    drawn = []
    for _ in range(random.randint(1, 3)):
        d = random.randint(1, min(4, capacity))
        drawn.append((random.randint(0, min(5, capacity - d)), d))
    return tuple(drawn)


def admission(random: Random, capacity: int) -> Admission:
    if random.random() < 0.3:
        return Lookahead(capacity)
    most = random.choice((None, None, 1, 2, 3))
    return Peak(capacity, block=random.choice((1, 1, 1, 2)), most=most)


def halves(random: Random, most: int) -> tuple[Fraction]:
    return (Fraction(random.randint(1, 2 * most), 2),)


def agents(
    random: Random,
    capacity: int,
    *,
    most: int = 4,
    work: Work = kv_token_time,
    weighted: bool = True,
    exact: float = 0.6,
    overestimate: int = 1,
    leaving: float = 0.0,
) -> list[Plan]:
    """Agents of one stage, in order of arrival.

    Predictions are exact with the chance `exact`, else up to `overestimate` times what
    is real; an agent is cancelled with the chance `leaving`. Small, and some of them
    twins, so that ties are common.
    """
    plans: list[Plan] = []
    for _ in range(random.randint(1, most)):
        if plans and random.random() < 0.2:
            plans.append(plans[-1])
            continue
        stage = sizes(random, capacity - 1)
        real = sum(int(work(p, d)) for p, d in stage)
        arrival = random.randint(0, 7)
        plans.append(
            Plan(
                arrival,
                (stage,),
                weight=random.choice((1, 1, 1, 2, 3)) if weighted else 1,
                predicted=()
                if random.random() < exact
                else halves(random, overestimate * real),
                cancelled=arrival + random.randint(1, 5)
                if random.random() < leaving
                else None,
            )
        )
    return sorted(plans, key=lambda plan: plan.arrival)


def closed(random: Random, policy: type[SelectivePampering]) -> Observed:
    capacity = random.randint(3, 16)
    plans = agents(random, capacity)
    return observe(plans, admission(random, capacity), policy())


def settled(random: Random, policy: type[SelectivePampering]) -> Observed:
    capacity = random.randint(4, 16)
    plans = agents(random, capacity, exact=0.4, overestimate=3, leaving=0.4)
    return observe(plans, admission(random, capacity), policy())


def released(random: Random, policy: type[SelectivePampering]) -> Observed:
    capacity = random.randint(4, 16)
    plans: list[Plan] = []
    for _ in range(random.randint(1, 3)):
        if plans and random.random() < 0.3:
            plans.append(plans[-1])
            continue
        stages = tuple(sizes(random, capacity - 1) for _ in range(random.randint(1, 3)))
        real = [sum(kv_token_time(p, d) for p, d in stage) for stage in stages]
        exact = random.random() < 0.6
        plans.append(
            Plan(
                random.randint(0, 7),
                stages,
                weight=random.choice((1, 1, 1, 2, 3)),
                predicted=()
                if exact
                else tuple(halves(random, cost)[0] for cost in real),
            )
        )
    plans.sort(key=lambda plan: plan.arrival)
    return observe(plans, admission(random, capacity), policy(tags="stage"))


def guaranteed(rule: Admission, plans: Sequence[Plan], work: Work) -> Fraction:
    """Return a rate as Theorem A has it: R for reserved costs, R / 2 for KV costs."""
    peak = Peak(rule.capacity) if isinstance(rule, Lookahead) else rule
    assert isinstance(peak, Peak)
    return Fraction(peak.guaranteed_rate(plans), 1 if work is reserved else 2)


def nominal(random: Random, policy: type[SelectivePampering]) -> Observed:
    capacity = random.randint(3, 16)
    work = random.choice((reserved, kv_token_time))
    plans = agents(random, capacity, most=5, work=work, weighted=False)
    rule = admission(random, capacity)
    kept = policy(
        clock="nominal",
        capacity=guaranteed(rule, plans, work),
        cost="reserved" if work is reserved else "kv",
    )
    return observe(plans, rule, kept, work=work)


def rate_of(seen: Observed) -> Fraction:
    return guaranteed(seen.admission, seen.history.plans, seen.history.work)


def claim_at_rate(name: str, seen: Observed) -> Claim:
    return rate_claim(name, seen, rate_of(seen))


Family = tuple[
    Callable[[Random, type[SelectivePampering]], Observed],
    Callable[[str, Observed], Claim],
]
FAMILIES: dict[str, Family] = {
    "constant rate": (nominal, claim_at_rate),
    "closed loop": (closed, closed_claim),
    "stages": (released, released_claim),
    "settled": (settled, settled_claim),
}


def instances(
    family: str, policy: type[SelectivePampering] = SelectivePampering
) -> Iterator[tuple[str, Observed]]:
    """Yield instances for ever, each with its name.

    The clock of Theorem A does not forget debts when the engine is empty, so that there
    are no instances in which it gets empty before the last arrival.
    """
    draw, _ = FAMILIES[family]
    for seed in count():
        seen = draw(Random(f"{family} {seed}"), policy)
        if family != "constant rate" or not empties(seen.history):
            yield f"{family} {seed}", seen


# --- Coq ------------------------------------------------------------------------------
@pytest.fixture(scope="session")
def objects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build the programs in a copy of the sources, once for all processes of a run."""
    if shutil.which("coqc") is None:
        reason = "coqc is not installed"
        if os.environ.get("CI") and os.environ.get("JUSTITIA_COQ") == "required":
            pytest.fail(reason)
        pytest.skip(reason)
    shared = tmp_path_factory.getbasetemp()
    if os.environ.get("PYTEST_XDIST_WORKER"):
        shared = shared.parent
    built = shared / "coq"
    with (shared / "coq.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not built.exists():
            copy = shared / "coq.part"
            shutil.rmtree(copy, ignore_errors=True)
            for pattern in ("*.v", "Makefile", "_CoqProject"):
                for file in SOURCES.rglob(pattern):
                    target = copy / file.relative_to(SOURCES)
                    target.parent.mkdir(parents=True, exist_ok=True)
                    shutil.copy(file, target)
            made = subprocess.run(
                [
                    "make",
                    "-j2",
                    "FOLDERS=base model statements link",
                    *(f"link/{module}.vo" for module in MODULES),
                ],
                cwd=copy,
                capture_output=True,
                text=True,
                check=False,
            )
            assert made.returncode == 0, made.stdout[-2000:] + made.stderr[-2000:]
            copy.rename(built)
    return built


# --- tests ----------------------------------------------------------------------------
@pytest.mark.parametrize("family", FAMILIES)
def test_coq_makes_the_same_of_every_instance(
    family: str, objects: Path, tmp_path: Path
) -> None:
    _, claim = FAMILIES[family]
    seen = islice(instances(family), EACH)
    claims = [claim(name, observed) for name, observed in seen]
    assert refuted(claims, objects, tmp_path) == []


def test_the_fair_line_and_the_nominal_policy_start_the_same() -> None:
    for name, seen in islice(instances("constant rate"), EACH):
        plans, work = seen.history.plans, seen.history.work
        rate = rate_of(seen)
        line = FairLine(work=work, rate=rate)
        fair = Server(plans, line, seen.admission, work=work).run()
        assert fair.starts == seen.history.starts, name
        at_rate = run_at_rate(plans, work, rate)
        assert dict(enumerate(at_rate.tags)) == {
            a: t for (a, _), t in seen.tags.items()
        }
        jobs = [(a, p.arrival, sum(p.costs(work))) for a, p in enumerate(plans)]
        assert dict(enumerate(at_rate.finishes)) == fair_finishes(jobs, rate), name


# --- planted differences --------------------------------------------------------------
class LastOfEqualsFirst(SelectivePampering):
    """Decides ties the other way."""

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (*super().key(account, stage), -account.seq)


class WeightsForgotten(SelectivePampering):
    """Gives every agent the weight 1."""

    def account(self, agent: Agent, seq: int) -> Account:
        return super().account(agent.__replace__(weight=1), seq)


class Unsettled(SelectivePampering):
    """Drops an agent from the reference when it leaves."""

    def left(self, account: Account) -> None:
        self.clock.leave(account.seq)


POLICIES = [
    (family, policy)
    for family in FAMILIES
    for policy in (LastOfEqualsFirst, WeightsForgotten, Unsettled)
    # The clock of Theorem A has no weights, and does not follow who leaves when.
    if family != "constant rate" or policy is LastOfEqualsFirst
]


@pytest.mark.parametrize(("family", "policy"), POLICIES)
def test_coq_finds_another_policy(
    family: str, policy: type[SelectivePampering], objects: Path, tmp_path: Path
) -> None:
    _, claim = FAMILIES[family]
    seen = islice(instances(family, policy), 40)
    claims = [claim(name, observed) for name, observed in seen]
    assert refuted(claims, objects, tmp_path)


def one_more(seen: Observed) -> Observed:
    """Tell of one slot more, or one block."""
    rule = seen.admission
    if isinstance(rule, Lookahead):
        return replace(seen, admission=Lookahead(rule.capacity + 1))
    assert isinstance(rule, Peak)
    if rule.most is not None:
        return replace(seen, admission=replace(rule, most=rule.most + 1))
    return replace(seen, admission=replace(rule, capacity=rule.capacity + rule.block))


def tags_plus_one(seen: Observed) -> Observed:
    return replace(seen, tags={unit: tag + 1 for unit, tag in seen.tags.items()})


def a_grain_ahead(seen: Observed) -> Observed:
    grain = Fraction(1, 10**30)
    return replace(seen, levels=tuple(level + grain for level in seen.levels))


def a_step_late(seen: Observed) -> Observed:
    """Tell of the last start as one step later."""
    starts = dict(seen.history.starts)
    last = max(starts, key=starts.__getitem__)
    starts[last] += 1
    return replace(seen, history=replace(seen.history, starts=starts))


@pytest.mark.parametrize("family", FAMILIES)
def test_coq_finds_every_number_that_is_changed(
    family: str, objects: Path, tmp_path: Path
) -> None:
    _, claim = FAMILIES[family]
    changes = [tags_plus_one, a_step_late]
    if family != "constant rate":  # whose levels are not the server's
        changes.append(a_grain_ahead)
    claims = [
        claim(f"{change.__name__}: {name}", change(seen))
        for name, seen in islice(instances(family), 5)
        for change in changes
    ]
    assert refuted(claims, objects, tmp_path) == [claim.name for claim in claims]


@pytest.mark.parametrize("family", FAMILIES)
def test_coq_finds_a_capacity_that_is_off_by_one(
    family: str, objects: Path, tmp_path: Path
) -> None:
    _, claim = FAMILIES[family]
    seen = islice(instances(family), 25)
    claims = [claim(name, one_more(observed)) for name, observed in seen]
    assert refuted(claims, objects, tmp_path)


def test_a_claim_that_coq_cannot_read_is_an_error(
    objects: Path, tmp_path: Path
) -> None:
    with pytest.raises(RuntimeError, match="nonsense"):
        refuted([Claim("no", "ServiceClaims", "nonsense")], objects, tmp_path)


def test_the_nominal_policy_forgets_debts_and_the_clock_of_theorem_a_does_not(
    objects: Path, tmp_path: Path
) -> None:
    """The engine is empty at 1, when the reference still owes the first agent 1."""
    plans = [Plan(0, (((1, 1),),)), Plan(1, (((1, 1), (1, 1)),)), Plan(2, (((0, 2),),))]
    policy = SelectivePampering(clock="nominal", capacity=1)
    seen = observe(plans, Peak(3), policy)
    assert empties(seen.history)
    assert rate_of(seen) == 1
    # Forgotten, the third is tagged 2 + 3 and waits for the second, a tie; in the clock
    # of Theorem A it is tagged 3/2 + 3, and goes first.
    assert list(seen.tags.values()) == [2, 5, 5]
    tags = run_at_rate(plans, kv_token_time, 1).tags
    assert list(tags) == [2, 5, Fraction(9, 2)]
    assert list(seen.history.starts.values()) == [0, 1, 2, 3]
    assert refuted([claim_at_rate("forgets", seen)], objects, tmp_path)
