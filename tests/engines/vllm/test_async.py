"""vLLM's asynchronous scheduler, the default on a GPU, with two outputs in flight."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from justitia.policy import KVTokenTime, Step, create, names
from justitia.policy.exact import Number
from justitia.policy.ledger import Account
from justitia.policy.srjf import SRJF
from justitia.workloads import AgentSpec
from tests.engines.build import Case, cases
from tests.engines.ticking import runnable
from tests.engines.vllm.live import run_real
from tests.engines.vllm.real import Driver, PolicyScheduling, make_scheduler

FIXTURES = [HealthCheck.function_scoped_fixture]
workloads = cases(admissions=["none", "predicted", "max"]).map(runnable)


def driven(model: Path, **knobs: object) -> Driver:
    return Driver(make_scheduler(model, asynchronous=True, **knobs), depth=2)


@pytest.mark.parametrize("asynchronous", [True, False])
def test_the_base_is_the_one_that_vllm_would_take(
    model: Path, asynchronous: bool
) -> None:
    from vllm.v1.core.sched.async_scheduler import AsyncScheduler

    made = make_scheduler(model, asynchronous=asynchronous)
    assert isinstance(made, PolicyScheduling)
    assert isinstance(made, AsyncScheduler) == asynchronous


class Told:
    """What the policy is told of each request."""

    def __init__(self) -> None:
        self.tokens: dict[str, int] = {}
        self.requeues = 0

    def served(self, step: Step) -> None:
        for name, count in step.decode.items():
            self.tokens[name] = self.tokens.get(name, 0) + count

    def requeued(self, request_id: str) -> None:
        self.requeues += 1


@pytest.mark.parametrize("runner", ["V1", "V2"])
@pytest.mark.parametrize("prefix", [False, True])
def test_the_service_that_the_policy_is_told_is_what_was_produced(
    model: Path, prefix: bool, runner: str
) -> None:
    """With preemption, of requests that end by length: no token twice, none lost.

    What a step tells the model differs between vLLM's model runners; V2, which a GPU
    gets, cannot be asked for where there is no Triton.
    """
    driver = driven(model, blocks=9, prefix=prefix)
    assert not driver.scheduler.use_v2_model_runner
    driver.scheduler.use_v2_model_runner = runner == "V2"
    driver.ours.agents.witness = told = Told()
    lengths = {f"r{place}": (32 + place, 60 + place) for place in range(9)}
    for name, (prompt, decode) in lengths.items():
        driver.add(name, prompt, decode, claim={"agent": name[-1]})
    driver.run()
    assert driver.preemptions > 0
    assert told.requeues == driver.preemptions
    assert told.tokens == {name: decode for name, (_, decode) in lengths.items()}


def test_a_stop_costs_the_one_step_that_is_under_way(model: Path) -> None:
    """Whoever stops early has one token more computed, and is charged for it."""
    driver = driven(model)
    driver.ours.agents.witness = told = Told()
    driver.add("stops", 10, 5, longest=50)
    driver.add("goes on", 10, 20)
    driver.run()
    assert told.tokens == {"stops": 5 + 1, "goes on": 20}


def test_agents_go_in_the_order_of_their_tags(model: Path) -> None:
    """One at a time: the seat of one that ends is free a step later."""
    driver = driven(model, seqs=1)
    for agent, cost in (("large", 900), ("small", 100), ("middle", 500)):
        driver.add(agent, 10, 4, claim={"agent": agent, "cost": cost})
    driver.run()
    assert list(driver.finishes) == ["small", "middle", "large"]


@pytest.mark.parametrize("policy", names())
@settings(suppress_health_check=FIXTURES)
@given(case=workloads)
def test_all_end_under_every_policy(model: Path, policy: str, case: Case) -> None:
    """`LiveRun` raises where a request is lost, or ends with too few tokens."""
    record = run_real(model, case, create(policy), depth=2, check=True)
    if case.admission == "max":
        assert record.preemptions == 0


class Counting(SRJF):
    """Adds up what it takes to have been delivered."""

    def __init__(self) -> None:
        super().__init__()
        self.delivered: Number = 0

    def deliver(self, step: Step) -> dict[Account, Number]:
        got = super().deliver(step)
        self.delivered += sum(got.values())
        return got


@settings(suppress_health_check=FIXTURES)
@given(case=workloads)
def test_what_is_delivered_is_what_was_asked_for(model: Path, case: Case) -> None:
    """Where nobody is cancelled and all end by their length, to the token."""
    agents = tuple(map(_by_length, case.agents))
    policy = Counting()
    record = run_real(model, replace(case, agents=agents), policy, depth=2)
    finished = {agent.id for agent in record.agents if agent.outcome == "finished"}
    work = KVTokenTime()
    assert policy.delivered == sum(
        spec.cost(work) for spec in agents if spec.id in finished and spec.inferences
    )


def _by_length(spec: AgentSpec) -> AgentSpec:
    inferences = (replace(one, max_tokens=None) for one in spec.inferences)
    return replace(spec, cancel_after=None, inferences=tuple(inferences))
