"""What the tests of the theorems are built from."""

from collections.abc import Iterable
from fractions import Fraction
from typing import Any, TypeVar

from hypothesis import currently_in_test_context, target

from justitia.policy import create
from justitia.proofs.admissions import Admission, Slots
from justitia.proofs.bounds import DelayLag, ServiceLag, TimeLag
from justitia.proofs.lines import FairLine, PolicyLine
from justitia.proofs.plans import Number, Plan, Size, Work, kv_token_time
from justitia.proofs.scenarios import Scenario
from justitia.proofs.server import History, Line
from justitia.proofs.strategies import footprints

T = TypeVar("T", ServiceLag, DelayLag, TimeLag)


def agent(
    arrival: int,
    *sizes: Size,
    weight: Number = 1,
    predicted: Number | None = None,
    cancelled: int | None = None,
) -> Plan:
    """An agent of one stage."""
    told = () if predicted is None else (predicted,)
    return Plan(arrival, (sizes,), weight, told, cancelled)


def chain(arrival: int, *sizes: Size) -> Plan:
    """An agent of stages of one inference each."""
    return Plan(arrival, tuple((size,) for size in sizes))


def ours(*, work: Work = kv_token_time, **options: Any) -> PolicyLine:  # noqa: ANN401
    """A line that the shipped policy keeps."""
    return PolicyLine(create("justitia", **options), work=work)


def tags_of(by_stage: bool) -> str:
    return "stage" if by_stage else "agent"


def run(
    plans: Iterable[Plan],
    line: Line | None = None,
    admission: Admission | None = None,
    *,
    work: Work = kv_token_time,
) -> History:
    """Run some agents, by default one inference at a time in the fair order."""
    scenario = Scenario(tuple(plans), Slots(1) if admission is None else admission)
    return scenario.run(FairLine(work=work) if line is None else line, work=work)


def least_slack(lags: Iterable[T]) -> Fraction:
    """The least slack, which Hypothesis is told to look for; 0 of no lags at all."""
    slack = min((lag.slack for lag in lags), default=Fraction(0))
    if currently_in_test_context():
        target(-float(slack), label="lag beyond the bound")
    return slack


def longest(plans: Iterable[Plan]) -> int:
    """D: the most steps that one inference runs."""
    return max(d for plan in plans for stage in plan.stages for _, d in stage)


def largest(plans: Iterable[Plan]) -> int:
    """The largest footprint p + d."""
    return max(footprints(list(plans)))


def literal_bound(plans: Iterable[Plan], capacity: int) -> Fraction:
    """2·c_max + C_max / M, as the paper prints it."""
    agents = list(plans)
    inferences = [
        kv_token_time(p, d)
        for plan in agents
        for stage in plan.stages
        for p, d in stage
    ]
    costs = [sum(plan.real_costs(kv_token_time)) for plan in agents]
    return 2 * max(inferences) + Fraction(max(costs)) / capacity
