"""The lag meter against the definitions, and Theorem B on the simulated engine."""

from fractions import Fraction
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.lag import LagMeter, Lump
from justitia.policy import create
from justitia.proofs.reference import FairReference
from tests.engines.build import Case, cases, make_agent, make_preset, run_sim
from tests.engines.fair import Fair

SEEDS = st.integers(0, 2**32 - 1)


class Both:
    """Tells the meter and the definition the same."""

    def __init__(self) -> None:
        self.meter = LagMeter()
        self.fair = Fair()
        self.now = 0

    def ready(self, agent: int, stage: int, cost: int, weight: int | Fraction) -> None:
        self.meter.ready(agent, stage, cost, weight)
        self.fair.ready(agent, stage, cost, weight)

    def cancel(self, agent: int, delivered: int) -> None:
        self.meter.cancel(agent, delivered)
        self.fair.cancel(agent, delivered)

    def start(self, agent: int, stage: int, cost: int, *, again: bool = False) -> None:
        self.meter.start(agent, stage, cost, again=again)
        self.fair.start(agent, stage, cost, again=again)

    def serve(
        self,
        service: int,
        *,
        steps: int = 1,
        growth: int = 0,
        duration: int = 10,
        lengthening: int = 0,
        owed: tuple[int, ...] = (),
    ) -> None:
        lump = Lump(steps, service, growth, self.now, duration, lengthening)
        self.meter.serve(lump)
        if self.meter.starting:
            self.meter.in_flight(owed)
        for _ in range(steps):
            self.fair.step(service, self.now, duration, sum(owed))
            self.now += duration
            service += growth
            duration += lengthening

    def compare(self) -> None:
        for agent in self.fair.sharers:
            assert self.meter.reached(agent) == self.fair.reached(agent)
        lag = self.meter.result()
        found = self.fair.lag()
        if lag is None:
            assert found is None
        else:
            assert (lag.worst, lag.allowed, lag.excess, lag.largest_cost) == found


def random_story(seed: int) -> Both:
    """Agents, stages, starts, restarts, steps and cancellations, in no sense."""
    rng = Random(seed)
    both = Both()
    stages: dict[int, int] = {}  # how many each agent has
    totals: dict[int, int] = {}
    alike = rng.random() < 0.3  # for ties
    for _ in range(rng.randint(3, 50)):
        what = rng.random()
        cost = 12 if alike else rng.randint(1, 40)
        if what < 0.2 or not stages:
            agent = len(totals) + 1
            stages[agent], totals[agent] = 1, cost
            weight = 1 if alike else rng.choice((1, 1, 2, Fraction(1, 3)))
            both.ready(agent, 0, cost, weight)
        elif what < 0.35:
            agent = rng.choice(list(stages))
            both.ready(agent, stages[agent], cost, both.fair.sharers[agent].weight)
            stages[agent] += 1
            totals[agent] += cost
        elif what < 0.42:
            agent = rng.choice(list(stages))
            del stages[agent]
            both.cancel(agent, rng.choice((0, 1, totals[agent] // 2, totals[agent])))
        else:
            started = rng.choice((0, 0, 1, 2))
            for agent in rng.choices(list(stages), k=started):
                stage = rng.randrange(stages[agent])
                both.start(agent, stage, cost, again=rng.random() < 0.3)
            both.serve(
                rng.choice((0, 1, 12, rng.randint(1, 40))),
                steps=1 if started else rng.randint(1, 6),
                growth=rng.choice((0, 1, 5)),
                duration=rng.randint(1, 20),
                lengthening=rng.choice((0, 3)),
                owed=tuple(rng.randint(0, 30) for _ in range(rng.randint(0, 3))),
            )
    return both


@given(SEEDS)
def test_the_meter_is_what_the_definition_says(seed: int) -> None:
    random_story(seed).compare()


@given(SEEDS)
def test_the_definition_here_is_the_one_of_the_proofs(seed: int) -> None:
    rng = Random(seed)
    fair, reference = Fair(), FairReference()
    served = 0
    for agent in range(1, rng.randint(2, 8)):
        cost = rng.randint(1, 30)
        weight = rng.choice((1, 2, Fraction(3, 2)))
        fair.ready(agent, 0, cost, weight)
        reference.arrive(agent, cost, weight)
        service = rng.randint(0, 25)
        fair.step(service, served, service or 1, 0)
        reference.serve(service)
        served += service
    fair.step(1000, served, 1000, 0)
    reference.serve(1000)
    for agent in fair.sharers:
        assert fair.sharers[agent].units[0].goal == reference.finish(agent)


@given(
    steps=st.integers(1, 12),
    service=st.integers(0, 9),
    growth=st.integers(0, 3),
    lengthening=st.integers(0, 4),
    part=st.fractions(0, 1),
)
def test_a_lump_is_its_steps(
    steps: int, service: int, growth: int, lengthening: int, part: Fraction
) -> None:
    lump = Lump(steps, service, growth, 100, 7, lengthening)
    works = [service + k * growth for k in range(steps)]
    times = [7 + k * lengthening for k in range(steps)]
    assert lump.served(steps) == sum(works)
    assert lump.passed(steps) == sum(times)
    work = part * sum(works)
    left, now = work, Fraction(100)
    for one, time in zip(works, times, strict=True):
        if left <= one:
            break
        left -= one
        now += time
    assert lump.when(work) == now + (left / one * time if one else 0)


# --- by hand ------------------------------------------------------------------------


def test_equal_shares_by_hand() -> None:
    both = Both()
    both.ready(1, 0, 30, 1)
    both.ready(2, 0, 10, 1)
    both.start(1, 0, 30)
    both.start(2, 0, 10)
    both.serve(20, duration=10)  # both have 10: the second is done
    both.serve(10, duration=10)
    both.serve(20, duration=10)  # the first is done half way
    assert both.meter.reached(2) == 10
    assert both.meter.reached(1) == 25
    both.compare()


def test_what_a_settled_agent_was_given_shapes_the_rates_to_its_settled_tag() -> None:
    both = Both()
    both.ready(1, 0, 100, 1)
    both.ready(2, 0, 100, 1)
    both.serve(20)  # 10 each
    both.cancel(1, 20)  # 10 more are owed to it, and no more
    both.serve(200, duration=20)
    # 20 shared by two, then 80 for the second alone.
    assert both.meter.reached(2) == 10 + 10
    both.compare()


def test_a_restart_of_something_larger_counts() -> None:
    def excess(again: bool) -> int:
        both = Both()
        both.ready(1, 0, 50, 1)  # the larger one
        both.start(1, 0, 50, again=True)  # so that only the mouse is measured
        both.serve(10, owed=(40,))
        both.ready(2, 0, 10, 1)
        both.serve(5)
        if again:
            both.start(1, 0, 50, again=True)
        both.serve(5, owed=(30,))
        both.start(2, 0, 10)
        both.serve(5)
        both.compare()
        lag = both.meter.result()
        assert lag is not None
        return int(lag.excess)

    # S is 20, G is 30, c is 10; I is 40 after the first start, 30 after the second.
    assert excess(again=False) == 20 - 30 - 40 + 10
    assert excess(again=True) == 20 - 30 - 30 + 10


def test_units_of_one_tag_go_by_arrival() -> None:
    both = Both()
    both.ready(1, 0, 10, 1)
    both.ready(2, 0, 10, 1)
    both.start(2, 0, 10)  # out of order
    both.serve(10, owed=(3,))
    both.start(1, 0, 10)
    both.serve(10)
    both.compare()
    lag = both.meter.result()
    assert lag is not None
    assert (lag.worst, lag.allowed, lag.excess) == (10 - 20, 3 - 10, -3)


def test_nothing_started_has_no_lag() -> None:
    both = Both()
    both.ready(1, 0, 10, 1)
    both.cancel(1, 0)
    both.cancel(1, 0)
    both.compare()
    assert both.meter.result() is None
    assert both.meter.reached(1) is None
    assert both.meter.reached(9) is None
    LagMeter().cancel(7, 0)  # unheard of: it was refused


# --- Theorem B ----------------------------------------------------------------------


@given(cases(graphs=False, tags=["stage"]))
def test_theorem_b_stage_by_stage(case: Case) -> None:
    lag = case.run(create("justitia", tags="stage"), check=False).lag
    assert lag is None or lag.excess <= 0


@given(cases(staged=False, graphs=False, tags=["agent"]))
def test_theorem_b_for_agents_of_one_stage(case: Case) -> None:
    lag = case.run(create("justitia"), check=False).lag
    assert lag is None or lag.excess <= 0


def herd_and_mouse() -> Case:
    """A mouse that arrives just after a herd, which first come first served favours."""
    herd = [make_agent(f"big{k}", *[(10, 20)] * 3) for k in range(8)]
    preset = make_preset(blocks=60)
    return Case((*herd, make_agent("mouse", (1, 1), at=1)), preset)


@pytest.mark.parametrize("name", ["fcfs", "agent-fcfs"])
def test_the_wrong_order_is_seen(name: str) -> None:
    case = herd_and_mouse()
    ordered = case.run(create("justitia")).lag
    assert ordered is not None
    assert ordered.excess <= 0
    lag = case.run(create(name)).lag
    assert lag is not None
    assert lag.excess > 1000
    assert lag.ratio == float(lag.excess) / 410


def test_one_tag_for_a_staged_agent_has_no_such_bound() -> None:
    """Its second stage starts long after the reference is through with it."""
    agents = [
        make_agent("staged", (0, 20), (0, 1), stages=(0, 1)),
        make_agent("wide", *[(5, 1)] * 200),
    ]
    preset = make_preset(blocks=60, seats=10)
    one_tag = run_sim(agents, create("justitia"), preset=preset).lag
    assert one_tag is not None
    assert one_tag.excess > 0
    staged = run_sim(
        agents, create("justitia", tags="stage"), preset=preset, tags="stage"
    ).lag
    assert staged is not None
    assert staged.excess <= 0


def test_a_graph_that_opens_a_stage_bit_by_bit_has_no_such_bound() -> None:
    """Theorem B asks that all of a stage become ready together."""
    graph = make_agent(
        "graph", (0, 1), (0, 20), (0, 1), (0, 1), after=[(), (), ("0",), ("1",)]
    )
    wide = make_agent("wide", *[(5, 1)] * 200)
    preset = make_preset(blocks=60, seats=10)
    stages = make_agent("graph", (0, 1), (0, 20), (0, 1), (0, 1), stages=(0, 0, 1, 1))
    for agent, holds in [(graph, False), (stages, True)]:
        lag = run_sim(
            [agent, wide], create("justitia", tags="stage"), preset=preset, tags="stage"
        ).lag
        assert lag is not None
        assert (lag.excess <= 0) == holds
