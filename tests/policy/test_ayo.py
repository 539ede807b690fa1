"""Ayo: first come, first served among agents, the deepest stage first inside."""

from dataclasses import replace

from hypothesis import given

from justitia.policy import Inference, create
from tests.engines.build import Case, cases
from tests.policy.builders import agent, line, queue, victims


def test_agents_in_order_of_arrival_and_the_deepest_stage_first() -> None:
    policy = create("ayo")
    queue(policy, agent("A"), agent("B"), runs=0)
    for name, stage in (("B/0", 3), ("A/0", 0), ("A/1", 2), ("A/2", 1), ("A/3", 2)):
        policy.submit(Inference(name, name[0], 3, 2, stage))
    assert line(policy) == ["A/1", "A/3", "A/2", "A/0", "B/0"]


def test_a_deeper_stage_passes_its_own_agents_and_nobody_elses() -> None:
    policy = queue("ayo", agent("A"), agent("B"), runs=2)
    policy.start("A/0")
    policy.submit(Inference("B/2", "B", 3, 2, 7))
    assert line(policy) == ["A/1", "B/2", "B/0", "B/1"]
    policy.start("B/2")
    policy.start("B/0")
    assert victims(policy) == ["B/0", "B/2", "A/0"]


@given(case=cases(graphs=False))
def test_with_barriers_between_stages_it_is_agent_fcfs(case: Case) -> None:
    """An agent has one stage in line at a time, so there is nothing to choose."""
    ours = case.run(create("ayo"))
    assert replace(ours, policy="agent-fcfs") == case.run(create("agent-fcfs"))


def test_without_barriers_it_is_not() -> None:
    def order(name: str) -> list[str]:
        policy = queue(name, agent("A"), p=5)
        policy.submit(Inference("A/1", "A", 5, 2, 1))
        return line(policy)

    assert order("ayo") == ["A/1", "A/0"]
    assert order("agent-fcfs") == ["A/0", "A/1"]
