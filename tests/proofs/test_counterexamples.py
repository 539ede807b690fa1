"""Every row of the table of counterexamples to Theorem B.1 as printed, exactly.

Each instance drops one thing that the paper takes for granted. Random search does not
find them: it broke the printed bound in 447 of 5 million instances.
"""

from fractions import Fraction

import pytest

from justitia.proofs.admissions import Admission, Peak, Slots
from justitia.proofs.lines import FairLine
from justitia.proofs.plans import Plan, kv_token_time
from justitia.proofs.reference import fair_finishes
from justitia.proofs.server import Line
from tests.proofs.builders import agent, chain, literal_bound, ours, run
from tests.proofs.wrong import BestFit, ReallyUnfinished


def worst_lag(
    plans: list[Plan],
    capacity: int,
    *,
    line: Line | None = None,
    admission: Admission | None = None,
) -> Fraction:
    """The most that an agent ends later than in the reference of rate M.

    The reference knows the real costs. By default the line runs at rate M, too.
    """
    history = run(
        plans,
        FairLine(rate=capacity) if line is None else line,
        Peak(capacity) if admission is None else admission,
    )
    fair = fair_finishes(
        [
            (number, plan.arrival, sum(plan.real_costs(kv_token_time)))
            for number, plan in enumerate(plans)
        ],
        capacity,
    )
    return max(end - fair[number] for number, end in history.agent_finishes().items())


def lines(capacity: int) -> list[Line]:
    """Every line that could be meant, as the lag is not a matter of the clock."""
    return [
        FairLine(),
        FairLine(rate=capacity),
        FairLine(by_stage=True),
        ours(),
        ours(clock="nominal", capacity=capacity),
        ours(tags="stage", clock="nominal", capacity=capacity),
    ]


def agreed_lag(plans: list[Plan], capacity: int) -> Fraction:
    """The worst lag, the same under every line."""
    lags = {worst_lag(plans, capacity, line=line) for line in lines(capacity)}
    (lag,) = lags
    return lag


@pytest.mark.parametrize("agents", [15, 30, 90])
def test_a_refused_inference_leaves_a_hole(agents: int) -> None:
    plans = [agent(0, (1, 1))] * agents
    assert agreed_lag(plans, 3) == Fraction(agents, 3)
    assert literal_bound(plans, 3) == Fraction(14, 3)
    assert Fraction(15, 3) > literal_bound(plans, 3)


@pytest.mark.parametrize(
    ("agents", "lag"), [(60, Fraction(37, 3)), (240, Fraction(145, 3))]
)
def test_a_hole_is_enough_below_full_load(agents: int, lag: Fraction) -> None:
    """2 token-steps every 4/5 of a step: 2.5 of a capacity of 3."""
    plans = [agent(4 * number // 5, (1, 1)) for number in range(agents)]
    assert worst_lag(plans, 3) == lag
    assert worst_lag(plans, 3, line=ours()) == lag
    assert literal_bound(plans, 3) == Fraction(14, 3) < lag


def test_reserved_memory_is_not_yet_used() -> None:
    plans = [agent(0, (0, 3))] * 150
    assert agreed_lag(plans, 30) == 15
    assert literal_bound(plans, 30) == Fraction(61, 5) < 15


def test_one_agent_alone_is_late() -> None:
    plans = [agent(0, *[(0, 4)] * 18)]
    assert agreed_lag(plans, 7) == Fraction(324, 7)
    assert literal_bound(plans, 7) == Fraction(320, 7) < Fraction(324, 7)


def test_dependencies_inside_an_agent() -> None:
    plans = [chain(0, (0, 1), (0, 1), (0, 1))]
    assert agreed_lag(plans, 10) == Fraction(27, 10)
    assert literal_bound(plans, 10) == Fraction(23, 10) < Fraction(27, 10)


def test_wrong_predictions() -> None:
    """One honest agent of cost 2, six that say 1 and take 3."""
    liars = [agent(0, *[(0, 1)] * 3, predicted=1)] * 6
    plans = [agent(0, *[(0, 1)] * 2), *liars]
    for line in (FairLine(), FairLine(rate=1), ours()):
        assert worst_lag(plans, 1, line=line) == 6
    assert literal_bound(plans, 1) == 5


def test_fewer_run_than_fit() -> None:
    plans = [agent(0, (0, 1))] * 6
    assert worst_lag(plans, 2, admission=Slots(1)) == 3
    assert literal_bound(plans, 2) == Fraction(5, 2) < 3


def test_backfilling_past_the_head() -> None:
    """Whoever fits starves one that never does."""
    plans = [agent(9 * number, (0, 10)) for number in range(200)]
    plans.append(agent(1, (9, 2)))
    lag = worst_lag(plans, 20, line=BestFit(Peak(20)))
    assert lag == Fraction(17999, 10)
    assert literal_bound(plans, 20) == Fraction(451, 4) < lag
    assert worst_lag(plans, 20) < literal_bound(plans, 20)  # the line that stops


def test_counting_the_really_unfinished() -> None:
    """V runs too fast as agents end before the reference is through with them."""
    plans = [agent(0, *[(0, 1)] * 10)] * 6 + [agent(39, (0, 1))]
    assert worst_lag(plans, 1, line=ReallyUnfinished(1)) == 15
    assert literal_bound(plans, 1) == 12
    assert worst_lag(plans, 1) < 12  # counting the reference's


@pytest.mark.parametrize("name", ["growing", "more"])
def test_the_lag_behind_the_nominal_rate_grows_with_the_run(name: str) -> None:
    """Mixed agents at more than the capacity: the longer, the later."""
    sizes = {"growing": [(1, 3), (4, 2), (0, 5)], "more": [(6, 1), (1, 6)]}[name]

    def lag(agents: int) -> Fraction:
        plans = [
            agent(2 * number, *[sizes[number % len(sizes)]] * (1 + number % 3))
            for number in range(agents)
        ]
        return worst_lag(plans, 10)

    assert 2 * lag(20) < lag(60)
    assert 2 * lag(60) < lag(150)
