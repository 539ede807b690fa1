"""The line of a gateway, event by event."""

import pytest

from justitia.engines.serving.priorities import VLLM, Priorities
from justitia.gateway.dispatcher import Call, Caps, Phase
from justitia.gateway.errors import GatewayError
from justitia.gateway.shares import Shares
from justitia.policy import PolicyError, create
from tests.gateway.build import call, dispatcher, engine


def test_agents_have_their_turn_in_the_order_of_their_tags() -> None:
    held = dispatcher(engine(capacity=20))
    first = call("big", cost=10_000)
    held.submit(first)
    big = [call("big") for _ in range(3)]
    small = call("small", cost=100)
    for one in (*big, small):
        held.submit(one)
    assert [one.phase for one in (first, small)] == [Phase.RUNNING, Phase.WAITING]
    held.finish(first)
    assert small.phase is Phase.RUNNING
    assert {one.phase for one in big} == {Phase.WAITING}
    held._check()


def test_nothing_passes_a_head_that_does_not_fit() -> None:
    held = dispatcher(engine(capacity=100))
    running, large, little = call(prompt=50), call("a", 60, cost=1), call("b", 1, 1)
    for one in (running, large, little):
        held.submit(one)
    assert (large.engine, little.engine) == (None, None)
    held.finish(running)
    assert large.engine is little.engine is held.fleet.engines[0]
    held._check()


def test_calls_for_another_model_pass_a_line_that_is_full() -> None:
    one = engine("one", capacity=20, models={"m": None})
    two = engine("two", capacity=20, models={"k": None})
    held = dispatcher(one, two)
    calls = [call(model="m"), call(model="m"), call(model="k")]
    for each in calls:
        held.submit(each)
    assert [each.engine for each in calls] == [one, None, two]
    held._check()


def test_what_is_too_long_for_any_engine_runs_alone() -> None:
    held = dispatcher(engine(capacity=100))
    small, huge, after = call(), call(prompt=5_000), call()
    for one in (small, huge, after):
        held.submit(one)
    assert [huge.engine] == [None]
    held.finish(small)
    held.finish(after)
    assert huge.engine is not None
    held._check()


def test_choices_start_together_and_free_all_they_hold_b24() -> None:
    held = dispatcher(engine(capacity=100))
    for _ in range(100):
        four, more = call("a", 10, 10, count=4), call("a", 10, 10, count=4)
        held.submit(four)
        held.submit(more)
        assert held.fleet.engines[0].running == 4
        held.produced(four, 2)
        held.finish(more)
        held.finish(four)
        assert not held.finish(four)
        held._check()
    assert (held.fleet.engines[0].used, len(held)) == (0, 0)


def test_a_call_that_outgrows_its_prediction_holds_what_it_holds() -> None:
    held = dispatcher(engine(capacity=100))
    one = call(prompt=10, most=50, tokens=5)
    held.submit(one)
    assert held.fleet.engines[0].used == 15
    held.produced(one, 0, 30)
    assert held.fleet.engines[0].used == 40
    held._check()
    held.finish(one)
    assert held.fleet.engines[0].used == 0


def test_prefixes_lead_to_the_engine_that_has_them() -> None:
    one, two = engine("one"), engine("two")
    held = dispatcher(one, two)
    a, b = call(marks=(b"long", b"short")), call(marks=(b"else",))
    held.submit(a)
    held.submit(b)
    assert (a.engine, b.engine) == (one, two)
    held.finish(a)
    held.finish(b)
    same, near = call(marks=(b"else",)), call(marks=(b"longer", b"short"))
    held.submit(same)
    held.submit(near)
    assert (same.engine, near.engine) == (two, one)


def test_the_least_loaded_engine_is_taken_where_no_prefix_is_known() -> None:
    one, two = engine("one", capacity=100), engine("two", capacity=1000)
    held = dispatcher(one, two)
    calls = [call(prompt=30) for _ in range(4)]
    for each in calls:
        held.submit(each)
    assert [each.engine for each in calls] == [one, two, two, two]


# Engines that die -------------------------------------------------------------------


def test_a_call_is_sent_again_once_at_its_old_place() -> None:
    one, two = engine("one", capacity=20), engine("two", capacity=20, up=False)
    held = dispatcher(one, two)
    first, second = call("a", cost=1), call("b", cost=2)
    held.submit(first)
    held.submit(second)
    assert first.engine is one
    assert held.lost(first, streamed=False)
    assert (first.phase, one.up) == (Phase.WAITING, False)
    held._check()
    held.up(two)
    assert (first.engine, second.phase) == (two, Phase.WAITING)
    assert not held.lost(first, streamed=False)  # that was the second time
    held.finish(first)
    held.up(one)
    assert second.engine is one
    assert held.sent_again == 1
    held._check()


def test_a_call_whose_client_had_something_is_not_sent_again() -> None:
    held = dispatcher()
    one = call()
    held.submit(one)
    assert not held.lost(one, streamed=True)
    assert held.finish(one)
    held._check()


def test_service_is_not_charged_twice_when_a_call_is_sent_again() -> None:
    held = dispatcher()
    one = call("a", cost=500)
    held.submit(one)
    held.lost(one, streamed=False)
    held.up(held.fleet.engines[0])
    held.settle(one, None, 10)
    known = held.agents.describe("t/a")
    assert known is not None
    assert known["delivered"] == 10 * 10 + 55
    held._check()


# What was counted -------------------------------------------------------------------


def test_what_the_engine_counts_is_what_is_charged() -> None:
    held = dispatcher()
    one = call("a", prompt=10, most=10, count=2, cost=10_000)
    held.submit(one)
    held.produced(one, 0, 3)
    held.settle(one, (14, 14), 9)  # four tokens more of each prompt, six more produced
    known = held.agents.describe("t/a")
    assert known is not None
    work = sum(14 * n + n * (n + 1) // 2 for n in one.counted)
    assert sum(one.counted) == 9
    assert known["delivered"] == work
    held.finish(one)
    held._check()


def test_a_prompt_thought_too_long_is_not_paid_back() -> None:
    held = dispatcher()
    one = call("a", prompt=10, most=10, cost=10_000)
    held.submit(one)
    held.settle(one, (5,), 2)
    known = held.agents.describe("t/a")
    assert known is not None
    assert known["delivered"] == 2 * 10 + 3


# Tenants and agents -----------------------------------------------------------------


def test_a_tenant_has_so_many_agents_and_calls_at_once_b50() -> None:
    held = dispatcher(
        engine(capacity=20), caps={"t": Caps(agents=2, waiting=2), "u": Caps()}
    )
    held.submit(call("a"))
    held.submit(call("b"))
    with pytest.raises(GatewayError) as error:
        held.submit(call("c"))
    assert (error.value.status, error.value.code) == (429, "too_many_agents")
    held.submit(call("a"))
    with pytest.raises(GatewayError) as error:
        held.submit(call("a"))
    assert (error.value.status, error.value.code) == (429, "too_many_requests")
    held.submit(call("c", tenant="u"))
    held._check()


def test_a_request_without_an_agent_counts_as_one() -> None:
    held = dispatcher(caps={"t": Caps(agents=1)})
    one = call()
    held.submit(one)
    with pytest.raises(GatewayError):
        held.submit(call())
    held.finish(one)
    held.submit(call())
    held._check()


def test_an_unknown_model_is_404() -> None:
    held = dispatcher(engine(models={"m": 100}))
    with pytest.raises(GatewayError) as error:
        held.submit(call(model="x"))
    assert error.value.status == 404
    held._check()


def test_dismissing_an_agent_ends_its_calls_and_no_others_b25() -> None:
    held = dispatcher(engine(capacity=40))
    calls = [call("a1"), call("a10"), call("a1"), call("a11")]
    told: list[Call] = []
    for one in calls:
        one.on_cancel = lambda one=one: told.append(one)  # type: ignore[misc]
        held.submit(one)
    assert held.dismiss("t", "a1") == 2
    assert held.dismiss("t", "a1") is None
    assert held.dismiss("u", "a10") is None
    assert told == [calls[0], calls[2]]
    assert [one.phase for one in calls] == [
        Phase.OVER, Phase.RUNNING, Phase.OVER, Phase.RUNNING
    ]  # fmt: skip
    assert calls[0].error is not None
    assert calls[0].error.status == 499
    held._check()


def test_a_call_is_submitted_once() -> None:
    held = dispatcher()
    one = call()
    held.submit(one)
    with pytest.raises(PolicyError, match="is not new"):
        held.submit(one)


# An engine that keeps the order -----------------------------------------------------


def test_priorities_stand_in_the_order_of_tags() -> None:
    held = dispatcher(
        engine(capacity=20), holds=False, priorities={"one": Priorities(VLLM)}
    )
    big, small, middle = (
        call(n, cost=c) for n, c in zip("abc", (9, 1, 5), strict=True)
    )
    for one in (big, small, middle):
        held.submit(one)
        assert one.phase is Phase.RUNNING
    assert small.priority < middle.priority < big.priority  # type: ignore[operator]
    for one in (big, small, middle):
        held.finish(one)
    assert len(held._priorities["one"]) == 0
    held._check()


def test_a_thousand_agents_of_a_tenant_get_one_share_b50() -> None:
    policy = Shares(lambda: create("justitia"), {"many": 1, "one": 1})
    held = dispatcher(engine(slots=1, capacity=None), policy=policy)
    calls = [call(f"a{number}", tenant="many") for number in range(1000)]
    calls += [call("single", tenant="one") for _ in range(100)]
    for each in calls:
        held.submit(each)
    ended = {"many": 0, "one": 0}
    while ended["one"] < 100:
        (running,) = [each for each in calls if each.phase is Phase.RUNNING]
        held.produced(running, 0, running.predicted)
        held.finish(running)
        calls.remove(running)
        ended[running.tenant] += 1
    assert ended["many"] <= 102  # as much as the other, and what was in flight
    held._check()


def test_what_comes_together_competes_in_whatever_order_it_is_told() -> None:
    for large_first in (True, False):
        held = dispatcher(engine(slots=1))
        large, small = call("large", cost=10**4), call("small", cost=100)
        with held.together():
            for one in (large, small) if large_first else (small, large):
                held.submit(one)
                assert one.phase is Phase.WAITING
            held._check()
        assert (small.phase, large.phase) == (Phase.RUNNING, Phase.WAITING)
        next_, ended = call("small"), small
        with held.together():
            held.finish(ended)
            assert large.phase is Phase.WAITING
            held.submit(next_)
        assert (next_.phase, large.phase) == (Phase.RUNNING, Phase.WAITING)
        held._check()
