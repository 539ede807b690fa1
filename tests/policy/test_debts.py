"""What settled agents leave behind in the fair reference."""

from justitia.policy import Agent, Inference, SelectivePampering, Step


def over_predicted(policy: SelectivePampering, name: str, *, served: int) -> None:
    """Let an agent come that is thought to cost 1000, and leave after a few tokens."""
    policy.arrive(Agent(name, 1000))
    policy.submit(Inference(name, name, 0, 10))
    policy.start(name)
    policy.serve(Step(decode={name: served}))
    policy.leave(name)


def test_debts_are_forgotten_when_no_agent_is_left() -> None:
    policy = SelectivePampering()
    policy.arrive(Agent("long", 10**9))
    policy.submit(Inference("long", "long", 0, 10**4))
    policy.start("long")
    policy.serve(Step(decode={"long": 1000}))
    for number in range(200):
        over_predicted(policy, f"a{number}", served=3)
    assert len(policy.clock) > 1
    policy.leave("long")
    policy._check()
    assert len(policy.clock) == policy.clock.active == 0


def test_a_debt_is_kept_while_another_agent_is_there() -> None:
    policy = SelectivePampering()
    policy.arrive(Agent("other", 10**6))
    over_predicted(policy, "x", served=5)
    assert policy.clock.active == 2  # x has had 15 of work, its share was half of it
    policy.leave("other")
    assert policy.clock.active == 0
    policy._check()


def test_an_agent_with_next_to_no_service_is_taken_out() -> None:
    policy = SelectivePampering()
    policy.arrive(Agent("a", 5))
    policy.arrive(Agent("b", 5))
    account = policy._accounts["a"]
    account.service = 1e-200  # of a cost model that gives next to nothing
    assert policy.leave("a")
    assert len(policy.clock) == 1
    policy._check()
