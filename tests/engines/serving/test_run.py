"""A workload on a live engine, with a stand-in that does what real ones might."""

from collections.abc import Callable, Sequence

import pytest

from justitia.engines import EngineError, RunRecord
from justitia.engines.base import conserved
from justitia.engines.document import Result, document
from justitia.engines.scenario import Scenario
from justitia.engines.serving.run import MOST_FRUITLESS, LiveRun
from justitia.engines.summary import summarise
from justitia.policy import create, names
from justitia.predictors import Oracle
from justitia.tables import show
from justitia.workloads import AgentSpec, InferenceSpec
from tests.engines.build import make_agent
from tests.engines.serving.fake import FakeBackend


def run_on(
    backend: FakeBackend,
    agents: Sequence[AgentSpec],
    *,
    tags: str = "agent",
    progress: Callable[[int], None] | None = None,
) -> RunRecord:
    record = LiveRun(
        agents,
        backend.agents.policy,
        Oracle(),
        backend,
        by_stage=tags == "stage",
        progress=progress,
    ).run()
    backend.agents._check()
    assert not backend.requests
    assert not len(backend.agents)
    return conserved(record, agents)


def fake(policy: str = "fcfs", **knobs: int) -> FakeBackend:
    return FakeBackend(create(policy), **knobs)


# What is told of a run ----------------------------------------------------------------


@pytest.mark.parametrize("tags", ["agent", "stage"])
@pytest.mark.parametrize("policy", ["justitia", "fcfs", "vtc", "srjf"])
def test_all_finish_and_nothing_is_left(policy: str, tags: str) -> None:
    agents = [
        make_agent(f"a{k}", (5, 3), (2, k + 1), (1, 1), stages=(0, 0, 1))
        for k in range(6)
    ]
    ended: list[int] = []
    record = run_on(fake(policy), agents, tags=tags, progress=ended.append)
    assert [agent.outcome for agent in record.agents] == ["finished"] * 6
    assert sum(ended) == 18
    assert record.utilisation == 0.5
    assert record.limits == ""
    for inference in record.inferences:
        assert inference.start_step is not None
        assert inference.finish_step is not None
        assert 0 <= inference.start_step <= inference.finish_step < record.steps
    assert all(agent.reference_finish is not None for agent in record.agents)


def test_steps_are_those_of_the_engine() -> None:
    record = run_on(fake(seats=1), [make_agent("a", (4, 3)), make_agent("b", (4, 2))])
    found = [(i.start_step, i.finish_step) for i in record.inferences]
    assert found == [(0, 2), (3, 4)]
    assert record.steps == 5
    assert [agent.cost for agent in record.agents] == [4 * 3 + 6, 4 * 2 + 3]


def test_the_engine_is_told_what_is_predicted_and_whose_it_is() -> None:
    backend = fake()
    run_on(backend, [make_agent("a/b", (4, 3), (1, 1), stages=(0, 1))])
    assert backend.claims == {
        "a%2Fb/0": {"agent": "a/b", "stage": 0, "tokens": 3},
        "a%2Fb/1": {"agent": "a/b", "stage": 1, "tokens": 1},
    }


def test_a_stage_waits_for_the_one_before() -> None:
    agents = [make_agent("a", (1, 4), (1, 1), (1, 1), stages=(0, 0, 1))]
    record = run_on(fake(seats=3), agents)
    assert [i.start_step for i in record.inferences] == [0, 0, 4]


@pytest.mark.parametrize("seats", [1, 2, 3])
def test_with_tags_by_stage_the_lag_is_within_the_bound(seats: int) -> None:
    backend = FakeBackend(create("justitia", tags="stage"), seats=seats)
    agents = [
        make_agent(f"a{k}", *[(k + 1, 7 - k)] * 3, stages=(0, 1, 1)) for k in range(6)
    ]
    record = run_on(backend, agents, tags="stage")
    assert record.lag is not None
    assert record.lag.excess <= 0


def test_time_without_work_is_skipped() -> None:
    agents = [
        make_agent("a", (1, 1)),
        AgentSpec("b", (InferenceSpec(1, 1),), arrival=9e8),
    ]
    record = run_on(fake(), agents)
    assert record.steps == 2
    assert record.agents[1].finish is not None
    assert record.agents[1].finish >= 9e8


def test_an_inference_that_may_go_on_is_ended_once_it_has_its_tokens() -> None:
    backend = fake()
    record = run_on(backend, [make_agent("a", (2, 3), longest=50)])
    assert backend.aborted == ["a/0"]
    assert record.inferences[0].outcome == "finished"
    assert record.inferences[0].finish_step == 2


def test_a_prompt_only_takes_a_token_and_an_empty_one_too() -> None:
    record = run_on(fake(), [make_agent("a", (7, 0), (0, 2), (0, 0))])
    assert [i.outcome for i in record.inferences] == ["finished"] * 3
    assert record.steps == 2


def test_an_agent_of_nothing_is_done_when_it_arrives() -> None:
    record = run_on(fake(), [make_agent("a")])
    assert (record.agents[0].outcome, record.steps) == ("finished", 0)
    assert record.utilisation is None
    assert record.lag is None


def test_what_cannot_fit_is_refused_and_the_others_run() -> None:
    agents = [make_agent("a", (1, 1), (90, 11)), make_agent("b", (2, 2))]
    ended: list[int] = []
    record = run_on(fake(room=100), agents, progress=ended.append)
    assert [agent.outcome for agent in record.agents] == ["refused", "finished"]
    assert record.agents[0].reason == (
        "inference 1 may need 90 + 11 tokens, the engine has room for 100"
    )
    assert sum(ended) == 3


def test_cancelled_agents_leave_the_engine() -> None:
    class Slow(FakeBackend):
        """A step in which nothing ends, for as long as anybody is there."""

        def over(self, request: object) -> bool:
            return False

    backend = Slow(create("justitia"), seats=1, room=10**9)
    agents = [
        make_agent("a", (1, 10**6), (1, 1), stages=(0, 1), cancel_after=10**4),
        make_agent("b", (1, 10**6), cancel_after=2 * 10**4),
    ]
    ended: list[int] = []
    record = run_on(backend, agents, progress=ended.append)
    assert [agent.outcome for agent in record.agents] == ["cancelled"] * 2
    assert [i.outcome for i in record.inferences] == ["cancelled"] * 3
    assert sorted(backend.aborted) == ["a/0", "b/0"]
    assert sum(ended) == 3
    assert all(agent.cost < 10**12 for agent in record.agents)


def test_what_gives_way_is_counted_and_served_once() -> None:
    class Short(FakeBackend):
        def step(self) -> list[str]:
            ended = super().step()
            if self.steps in (1, 2) and len(self.batch) == 2:
                self.preempt()
            return ended

    record = run_on(Short(create("justitia")), [make_agent("a", (3, 4), (3, 4))])
    assert record.preemptions == 2
    assert [i.preempted for i in record.inferences] == [0, 2]
    assert record.agents[0].cost == 2 * (3 * 4 + 10)


@pytest.mark.parametrize("name", names())
def test_a_policy_that_would_displace_is_named_as_what_it_is(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the record, and so in every table and in the JSON."""
    agents = (make_agent("a", (3, 2)),)
    record = run_on(FakeBackend(create(name)), agents)
    result = Result(name, {}, record, summarise(record, None))
    label = "mlfq (non-preemptive)" if name == "mlfq" else name
    show("a run", [result])
    assert capsys.readouterr().out.count(f"\n{label}  ") == 3
    scenario = Scenario(agents, "made up", "burst", None, None, 7)
    content = document(scenario, [result], version="1", engine={}, predictor="oracle")
    assert [run["policy"] for run in content["runs"]] == [label]


# Engines at fault ---------------------------------------------------------------------


class Idle(FakeBackend):
    def step(self) -> list[str]:
        return []


class Endless(FakeBackend):
    """Serves, but ends nothing and produces nothing."""

    def step(self) -> list[str]:
        self.agents.serve(dict.fromkeys(self.batch, 1), {})
        return []


class Hasty(FakeBackend):
    def over(self, request: object) -> bool:
        return True


class Forgetful(FakeBackend):
    """Produces all tokens, and never says that a request ended."""

    def step(self) -> list[str]:
        super().step()
        return []


@pytest.mark.parametrize(
    ("broken", "message"),
    [
        (
            Idle,
            f"the engine produced no token in {MOST_FRUITLESS + 1} steps, under fcfs",
        ),
        (Endless, f"the engine produced no token in {MOST_FRUITLESS + 1} steps"),
        (Hasty, "the engine ended 'a/0' after 1 tokens, 2 too early, under fcfs"),
        (Forgetful, f"the engine produced no token in {MOST_FRUITLESS + 1} steps"),
    ],
)
def test_an_engine_at_fault_is_told_with_its_state(
    broken: type[FakeBackend], message: str
) -> None:
    with pytest.raises(EngineError, match=message):
        run_on(broken(create("fcfs")), [make_agent("a", (2, 3))])


def test_ends_told_twice_and_of_strangers_are_passed_over() -> None:
    class Stammering(FakeBackend):
        def step(self) -> list[str]:
            ended = super().step()
            return ["nobody", *ended, *ended]

    record = run_on(Stammering(create("fcfs")), [make_agent("a", (2, 2), (1, 1))])
    assert [i.outcome for i in record.inferences] == ["finished"] * 2


def test_tokens_beyond_the_last_are_nobodys_service() -> None:
    class Overshooting(FakeBackend):
        """As with a step in flight when a request had all its tokens."""

        def end(self, request_id: str) -> None:
            if request_id in self.batch:
                self.agents.serve({}, {request_id: 1})
            super().end(request_id)

    record = run_on(Overshooting(create("justitia")), [make_agent("a", (2, 3))])
    assert record.agents[0].cost == 2 * 3 + 6
