"""Nobody starves: not an elephant among mice, and not a mouse behind elephants."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy import create
from justitia.proofs.admissions import Peak, Slots
from justitia.proofs.bounds import service_lags
from justitia.proofs.lines import FairLine, PolicyLine
from justitia.proofs.plans import Plan
from justitia.proofs.reference import fair_finishes
from justitia.proofs.scenarios import Scenario
from justitia.proofs.server import Line
from justitia.proofs.strategies import plans, scenarios
from tests.proofs.builders import agent, least_slack, ours, run
from tests.proofs.wrong import FirstCome, LeastRemaining


@pytest.mark.property
@pytest.mark.parametrize("tags", ["agent", "stage"])
@given(scenario=scenarios(most_stages=3, most_error=4, cancelled=True))
def test_every_agent_ends(tags: str, scenario: Scenario) -> None:
    history = scenario.run(ours(tags=tags))
    gone = {number for event in history.events for number in event.cancelled}
    assert history.agent_finishes().keys() | gone == set(range(len(scenario.plans)))


@pytest.mark.property
@given(data=st.data(), rate=st.integers(1, 12))
def test_every_agent_ends_by_its_bound(data: st.DataObject, rate: int) -> None:
    """A fair server of rate R, and a step: of one-token inferences in R slots.

    Every step in which something waits delivers R, and D is 1. `test_theorem_b` has the
    bound for inferences of any size.
    """
    size = st.just((0, 1))
    agents = data.draw(st.lists(plans(size=size, most_inferences=9), min_size=1))
    history = run(agents, ours(), Slots(rate))
    jobs = [(k, p.arrival, len(p.stages[0]), p.weight) for k, p in enumerate(agents)]
    fair = fair_finishes(jobs, rate)
    for number, end in history.agent_finishes().items():
        assert end <= fair[number] + 1


def ends(plans: list[Plan], line: Line) -> dict[int, int]:
    return run(plans, line, Peak(10)).agent_finishes()


def policy(name: str) -> Line:
    return PolicyLine(create(name))


MICE = 200
STREAM = [agent(2 * number, (8, 2)) for number in range(MICE)]
"""A mouse every two steps, of two steps, that fills the memory: full load."""
ELEPHANT = agent(0, *[(0, 10)] * 4)
"""40 steps of work."""


def test_least_remaining_first_starves_the_elephant() -> None:
    """It waits until the mice stop coming, however many there are."""
    for line in (LeastRemaining(), policy("srjf")):
        finish = ends([*STREAM, ELEPHANT], line)
        assert finish[MICE] == 2 * MICE + 40
        assert all(finish[k] == 2 * k + 2 for k in range(MICE))


def test_first_come_first_served_makes_mice_wait_for_the_elephant() -> None:
    for line in (FirstCome(), policy("fcfs")):
        finish = ends([ELEPHANT, *STREAM], line)
        assert finish[0] == 40
        # All of them are late by 40 steps for ever.
        assert [finish[1 + k] - 2 * k for k in range(MICE)] == [42] * MICE


def test_selective_pampering_does_neither() -> None:
    """130 mice go before the elephant, each as soon as it comes; then it is its turn.

    At full load the mice after it stay late by its 40 steps, and no more.
    """
    for line in (ours(), FairLine()):
        history = run([ELEPHANT, *STREAM], line, Peak(10))
        finish = history.agent_finishes()
        assert finish[0] == 300
        late = [finish[1 + k] - 2 * k for k in range(MICE)]
        assert late == [2] * 130 + [42] * 70
        assert least_slack(service_lags(history)) >= 0


@pytest.mark.parametrize("mice", [130, 150, 300])
def test_the_elephants_end_does_not_depend_on_how_many_mice_will_come(
    mice: int,
) -> None:
    stream = [agent(2 * number, (8, 2)) for number in range(mice)]
    assert ends([ELEPHANT, *stream], ours())[0] == 300
    assert ends([*stream, ELEPHANT], policy("srjf"))[mice] == 2 * mice + 40
