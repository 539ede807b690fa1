"""The link between code and proof: what ran in Python, asked again of Coq.

The machine-checked theorems (``proofs/coq``) are about programs written in Coq. This
module writes down an instance and all that the shipped code made of it: starts, tags,
virtual time, when the fair reference finished whom. The programs in ``proofs/coq/link``
run the proved programs on the same instance and compare, rational numbers by value. So
what is proved and what ships are seen to do the same, instance by instance.

A `Claim` is one such comparison; `refuted` lets ``coqc`` decide any number of them. It
needs Coq 8.16 and a folder in which ``proofs/coq`` was built, at least up to ``link/``.

- `rate_claim`: Theorem A, the clock of constant rate and the scheduler under it;
- `closed_claim`: Theorem B in closed loop, with every number that it speaks of;
- `released_claim`: the same with stages, each with a tag, released by completions;
- `settled_claim`: the same with agents that are cancelled, or cost less than predicted.

When no agent is left in the engine, `SelectivePampering` forgets what the reference
still owed those that were there. Coq's program with leaves does the same; the clock of
Theorem A knows nothing of the engine, and does not. `empties` says of a run whether
that can show.
"""

import re
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import cast

from justitia.policy import Policy, SelectivePampering, VirtualClock
from justitia.proofs.admissions import Admission, Lookahead, Peak
from justitia.proofs.bounds import Replay, ServiceLag, Unit, replay, service_lags
from justitia.proofs.lines import PolicyLine
from justitia.proofs.plans import Item, Number, Plan, Work, kv_token_time
from justitia.proofs.server import History, Server


# --- Coq terms ------------------------------------------------------------------------
def rational(number: Number) -> str:
    """Return a number as a rational.

    >>> rational(Fraction(-3, 2)), rational(0.25)
    ('(-3 # 2)%Q', '(1 # 4)%Q')
    """
    exact = Fraction(number)
    return f"({exact.numerator} # {exact.denominator})%Q"


def listing(terms: Iterable[object]) -> str:
    """Return a list.

    >>> listing([1, 2])
    '[1; 2]'
    """
    return f"[{'; '.join(map(str, terms))}]"


def option(term: object | None) -> str:
    """Return an option.

    >>> option(3), option(None)
    ('(Some 3)', 'None')
    """
    return "None" if term is None else f"(Some {term})"


def rationals(numbers: Iterable[Number]) -> str:
    """Return a list of rationals."""
    return listing(map(rational, numbers))


def options(terms: Iterable[object | None]) -> str:
    """Return a list of options."""
    return listing(map(option, terms))


def maybe_rationals(numbers: Iterable[Number | None]) -> str:
    """Return a list of options of rationals."""
    return options(None if n is None else rational(n) for n in numbers)


@dataclass(frozen=True, slots=True)
class Claim:
    """What Coq is asked to confirm.

    Attributes
    ----------
    name
        For messages.
    module
        The module in ``proofs/coq/link`` that it is made with.
    term
        A term of type `bool`.
    """

    name: str
    module: str
    term: str


# --- runs -----------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class Observed:
    """What came out of a run of a policy in the exact server.

    Attributes
    ----------
    history
        What the server did.
    admission
        By which rule.
    tags
        The tag that each unit was given.
    levels
        Virtual time at the beginning of each step, and after the last.
    """

    history: History
    admission: Admission
    tags: dict[Unit, Fraction]
    levels: tuple[Fraction, ...]


class _Witness(PolicyLine):
    """A line that notes virtual time after every step."""

    def __init__(self, policy: SelectivePampering, work: Work) -> None:
        super().__init__(policy, work=work)
        self._clock = policy.clock
        self.levels = [Fraction(0)]

    def serve(self, *step: object) -> None:
        super().serve(*step)  # type: ignore[arg-type]
        self.levels.append(Fraction(self._clock.value))


def observe(
    plans: Sequence[Plan],
    admission: Admission,
    policy: Policy,
    *,
    work: Work = kv_token_time,
) -> Observed:
    """Run a `SelectivePampering` in the exact server.

    Parameters
    ----------
    plans
        The agents, in order of arrival, so that those of equal tags are in that order.
    admission
        `Peak` or `Lookahead`; every inference must fit when it is alone.
    policy
        New, as `justitia.policy.create` makes it.
    work
        What the policy counts costs in.
    """
    assert list(plans) == sorted(plans, key=lambda plan: plan.arrival)
    line = _Witness(cast("SelectivePampering", policy), work)
    history = Server(plans, line, admission, work=work).run()
    tags = {unit: Fraction(tag) for unit, tag in line.tags.items()}
    return Observed(history, admission, tags, tuple(line.levels))


def empties(history: History) -> bool:
    """Return whether an agent arrives after all before it have left the engine."""
    here: set[int] = set()
    came = False
    for event in history.events:
        here.difference_update(event.cancelled)
        if came and not here and event.arrived:
            return True
        came = came or bool(event.arrived)
        here.update(event.arrived)
        here.difference_update(event.left)
    return False


def _items(plans: Sequence[Plan]) -> list[Item]:
    """Return the inferences in the order in which Coq numbers them."""
    return [
        Item(agent, stage, place)
        for agent, plan in enumerate(plans)
        for stage, sizes in enumerate(plan.stages)
        for place in range(len(sizes))
    ]


def _starts(seen: Observed) -> str:
    return options(map(seen.history.starts.get, _items(seen.history.plans)))


# --- Theorem A ------------------------------------------------------------------------
@dataclass(frozen=True, slots=True)
class RateRun:
    """What a `VirtualClock` of constant rate makes of agents, with no server at all.

    Attributes
    ----------
    tags, finishes
        Of each agent; the times at which it departs.
    levels
        Virtual time at the beginning of each step, until all have departed.
    """

    tags: tuple[Fraction, ...]
    finishes: tuple[Fraction, ...]
    levels: tuple[Fraction, ...]


def run_at_rate(plans: Sequence[Plan], work: Work, rate: Number) -> RateRun:
    """Serve a `VirtualClock` `rate` in every step, arrivals first."""
    clock = VirtualClock()
    tags: list[Fraction] = []
    finishes: dict[object, Fraction] = {}
    levels = [Fraction(0)]
    while len(finishes) < len(plans):
        step = len(levels) - 1
        for agent, plan in enumerate(plans):
            if plan.arrival == step:
                cost = sum(plan.costs(work), Fraction(0))
                tags.append(Fraction(clock.arrive(agent, cost)))
        for gone, served in clock.serve(rate):
            finishes[gone] = step + Fraction(served) / Fraction(rate)
        levels.append(Fraction(clock.value))
    return RateRun(
        tuple(tags),
        tuple(finishes[agent] for agent in range(len(plans))),
        tuple(levels),
    )


def rate_claim(name: str, seen: Observed, rate: Number) -> Claim:
    """Claim that clock and scheduler of Theorem A do what was seen.

    Starts and tags as in the server; virtual time, and the times at which the reference
    finishes the agents, as a `VirtualClock` has them that is served `rate` in every
    step. Where predictions are exact Coq computes the costs itself. Its reserved cost
    counts whole blocks, unlike the policy's; with larger blocks it is told the costs.

    Parameters
    ----------
    name
        For messages.
    seen
        A run under a nominal clock of this rate, of agents of one stage and weight 1,
        with the work `kv_token_time` or `reserved`. It must not be one that `empties`.
    rate
        Work a step.
    """
    plans, work = seen.history.plans, seen.history.work
    at_rate = run_at_rate(plans, work, rate)
    items = _items(plans)
    sizes = [plans[item.agent].stages[0][item.place] for item in items]
    prompts = f"(of {listing(p for p, _ in sizes)} 0)"
    block = 1
    match seen.admission:
        case Peak(capacity, block, None):
            admits = f"(reserve_peak W {capacity})"
        case Peak(capacity, block, most):
            admits = f"(reserve_peak_capped W {capacity} {most})"
        case Lookahead(capacity):
            admits = f"(look_ahead W {prompts} {capacity})"
        case _:
            raise TypeError(f"no Coq program for {seen.admission!r}")
    footprints = [-(-(p + d) // block) * block for p, d in sizes]
    if any(plan.predicted for plan in plans) or (work is reserved and block > 1):
        costs = (sum(plan.costs(work), Fraction(0)) for plan in plans)
        cost = f"(of {rationals(costs)} 0%Q)"
    else:
        cost = "(reserved_cost W)" if work is reserved else f"(kv_cost W {prompts})"
    tables = (
        [item.agent for item in items],
        footprints,
        [d for _, d in sizes],
        [plan.arrival for plan in plans],
    )
    demand = " ".join(map(listing, tables))
    term = (
        f"let W := demanded {demand} in",
        f"rate_agrees (System W {cost} {rational(rate)} {admits})",
        str(len(seen.history.events)),
        _starts(seen),
        rationals(seen.tags[agent, 0] for agent in range(len(plans))),
        rationals(at_rate.levels),
        rationals(at_rate.finishes),
    )
    return Claim(name, "RateClaims", "\n  ".join(term))


def reserved(p: int, n: int) -> int:
    """Return the cost of setting p + n tokens aside for n steps, all of an inference.

    It is no measure of the service of a single step.
    """
    return (p + n) * n


# --- Theorem B ------------------------------------------------------------------------
def _engine(admission: Admission) -> str:
    """Return the engine of a workload `w` with `p` and `d`."""
    match admission:
        case Peak(capacity, block, most):
            slots = 1_000 if most is None else most  # Coq has no number for "any"
            if block == 1:
                fits = f"within w p d {capacity} {slots}"
            else:
                fits = f"in_blocks w p d {block} {capacity} {slots}"
        case Lookahead(capacity):
            fits = f"look w p d {capacity}"
        case _:
            raise TypeError(f"no Coq program for {admission!r}")
    return f"kv_engine p d ({fits})"


def _service_claim(name: str, seen: Observed, agrees: str, *claimed: str) -> Claim:
    """Claim something of agents of one stage."""
    work = seen.history.work
    given = listing(
        f"Leaving {plan.arrival} {plan.weight} "
        f"{rational(sum(plan.costs(work), Fraction(0)))} "
        f"{listing(plan.stages[0])} {option(plan.cancelled)}"
        for plan in seen.history.plans
    )
    term = (
        f"let given := {given} in let w := leaving_workload given in",
        "let p := call_prompt given in let d := call_decode given in",
        f"{agrees} given ({_engine(seen.admission)})",
        *claimed,
    )
    return Claim(name, "ServiceClaims", "\n  ".join(term))


def closed_claim(name: str, seen: Observed) -> Claim:
    """Claim that Coq's closed loop does what was seen.

    Starts, tags, virtual time, and all that Theorem B speaks of, as
    `justitia.proofs.bounds` has it: of each agent the service at which the reference
    finishes it; of each inference what was delivered before its start and in flight,
    its cost, and what was underestimated.

    Parameters
    ----------
    name
        For messages.
    seen
        A run of agents of one stage, none cancelled and none predicted too large.
    """
    run = replay(seen.history)
    lags = {lag.item: lag for lag in service_lags(seen.history)}
    agents = range(len(seen.history.plans))
    return _service_claim(
        name,
        seen,
        "closed_agrees",
        str(len(seen.history.events)),
        _starts(seen),
        rationals(seen.tags[agent, 0] for agent in agents),
        rationals(seen.levels),
        rationals(_reached(run, (agent, 0)) for agent in agents),
        listing(rationals(_lag(lags[i])) for i in _items(seen.history.plans)),
    )


def _lag(lag: ServiceLag) -> tuple[Fraction, ...]:
    return lag.delivered, lag.in_flight, lag.cost, lag.underestimated


def _reached(run: Replay, unit: Unit) -> Fraction:
    level, _ = run.places[unit]
    service = run.fair.reached(level)
    assert service is not None
    return service


def settled_claim(name: str, seen: Observed) -> Claim:
    """Claim that Coq's loop with leaves does what was seen.

    Starts, the step before which each agent left, its tag on arrival, virtual time, its
    tag once it is settled, and the service at which the reference was through with it.

    Parameters
    ----------
    name
        For messages.
    seen
        A run of agents of one stage.
    """
    fair = replay(seen.history).fair
    # Those that the reference still owed something at the end are forgotten.
    known = {share.agent: share for share in fair.shares}
    left: dict[int, int] = {}
    for step, event in enumerate(seen.history.events):
        left |= dict.fromkeys(event.cancelled, step)
        left |= dict.fromkeys(event.left, step + 1)
    agents = range(len(seen.history.plans))
    # One step more than the run had, in which the last are seen to have left.
    steps = len(seen.history.events) + 1
    return _service_claim(
        name,
        seen,
        "settled_agrees",
        str(steps),
        _starts(seen),
        options(left[agent] for agent in agents),
        rationals(seen.tags[agent, 0] for agent in agents),
        rationals((*seen.levels, seen.levels[-1])),
        maybe_rationals(fair.finish_level(a) if a in known else None for a in agents),
        maybe_rationals(known[a].finish if a in known else None for a in agents),
    )


def released_claim(name: str, seen: Observed) -> Claim:
    """Claim that Coq's loop with stages does what was seen.

    Starts, the steps in which stages become ready, their tags, virtual time, and the
    service at which the reference finishes each stage.

    Parameters
    ----------
    name
        For messages.
    seen
        A run with a tag for each stage, none cancelled and none predicted too large.
    """
    plans, work = seen.history.plans, seen.history.work
    run = replay(seen.history, by_stage=True)
    units = [(a, k) for a, plan in enumerate(plans) for k in range(len(plan.stages))]
    given = listing(
        f"Agent {plan.arrival} {plan.weight} "
        + listing(
            f"Stage {rational(cost)} {listing(sizes)}"
            for sizes, cost in zip(plan.stages, plan.costs(work), strict=True)
        )
        for plan in plans
    )
    term = (
        f"let given := {given} in let w := staged_workload given in",
        "let p := prompt given in let d := decode given in",
        f"released_agrees given ({_engine(seen.admission)})",
        str(len(seen.history.events)),
        _starts(seen),
        options(map(run.arrivals.get, units)),
        rationals(seen.tags[unit] for unit in units),
        rationals(seen.levels),
        rationals(_reached(run, unit) for unit in units),
    )
    return Claim(name, "ServiceClaims", "\n  ".join(term))


# --- deciding -------------------------------------------------------------------------
def refuted(claims: Sequence[Claim], objects: Path, scratch: Path) -> list[str]:
    """Let Coq decide claims of one module; return the names of those it contradicts.

    Parameters
    ----------
    claims
        At least one.
    objects
        A copy of ``proofs/coq`` in which the module was built.
    scratch
        A folder for the file that is written.

    Raises
    ------
    RuntimeError
        If ``coqc`` fails, or its answer cannot be read.
    """
    (module,) = {claim.module for claim in claims}
    file = scratch / f"asked_of_{module}.v"
    lines = [
        "Require Import List Arith QArith.",
        f"From Justitia Require Import {module}.",
        "Import ListNotations.",
        "Set Printing Width 100000.",
        "Set Printing Depth 100000.",
        "Open Scope nat_scope.",
    ]
    for number, claim in enumerate(claims):
        lines.append(f"Definition claim_{number} : bool :=\n  {claim.term}.")
    names = listing(f"claim_{number}" for number in range(len(claims)))
    lines.append(f"Eval vm_compute in refuted {names}.")
    file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    done = subprocess.run(
        ["coqc", "-q", "-R", str(objects), "Justitia", file.name],
        cwd=scratch,
        capture_output=True,
        text=True,
        check=False,
    )
    answer = re.fullmatch(r"\s*= (\[[\d; ]*\])\s*: list nat\s*", done.stdout)
    if done.returncode or answer is None:
        raise RuntimeError(f"coqc says {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return [claims[int(number)].name for number in re.findall(r"\d+", answer[1])]
