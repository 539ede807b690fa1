"""State as text and back: whatever a policy has in its books goes on as it was."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.serving import Claim
from justitia.engines.serving.watch import Watched
from justitia.gateway.freezing import FrozenError, freeze, thaw
from justitia.gateway.journal import Recorded, read_frozen
from justitia.gateway.shares import Shares, tenant_of_agent
from justitia.policy import Policy, create
from tests.gateway.build import Clock

MADE: dict[str, dict[str, Any]] = {
    "justitia": {},
    "justitia-stage": {"tags": "stage"},
    "justitia-growth": {"growth": 2},
    "justitia-c": {},
    "vtc": {},
    "srjf": {},
    "sjf": {},
    "fcfs": {},
    "agent-fcfs": {},
    "shares": {},
}
CLOCK = Clock()


def make() -> Policy:
    return create("justitia")


FUNCTIONS = {"now": CLOCK, "make": make, "tenant_of": tenant_of_agent}


def policy(name: str) -> Policy:
    if name == "shares":
        return Shares(make, {"u": 3}, tenant_of_agent)
    base = (
        name if name in ("justitia-c", "agent-fcfs") else name.split("-", maxsplit=1)[0]
    )
    return create(base, **MADE[name])


def recorded(made: Policy) -> tuple[Recorded, list[str]]:
    verbs: list[str] = []
    agents = Recorded(made, now=CLOCK, write=verbs.append, linger=50, most=3)
    return agents, verbs


names = st.sampled_from(["t/a", "t/b", "u/c", "u/d", None])
actions = st.lists(
    st.tuples(
        st.sampled_from(
            ["submit", "submit", "submit", "start", "serve", "serve", "finish",
             "requeue", "charge", "dismiss", "announce", "revise"]
        ),
        names,
        st.integers(1, 60),
        st.integers(0, 9),
    ),
    max_size=40,
)  # fmt: skip


def act(
    agents: Recorded, number: int, action: tuple[str, str | None, int, int]
) -> None:
    verb, name, size, pick = action
    live = sorted(agents.requests)
    waiting = list(agents.order())
    running = [one for one in live if one not in waiting]
    if verb == "submit":
        claim = Claim(name, size * 10 if pick % 2 else None, stage=pick % 3)
        request = f"{(name or 't')[0]}/{number}"
        agents.submit(request, claim, size, pick)
    elif verb == "start" and (head := agents.head()) is not None:
        agents.start(head)
    elif verb == "serve" and running:
        agents.serve({}, {running[pick % len(running)]: 1 + size % 5})
    elif verb == "finish" and live:
        agents.finish(live[pick % len(live)])
    elif verb == "requeue" and running:
        agents.requeue(running[pick % len(running)])
    elif verb == "charge" and running:
        agents.charge(running[pick % len(running)], size)
    elif verb == "dismiss" and name is not None:
        agents.dismiss(name)
    elif verb == "announce" and name is not None and name not in agents:
        agents.announce(Claim(name, size * 7, kind="K", weight=1 + pick / 4))
    elif verb == "revise" and name is not None and name in agents:
        agents.revise(name, size * 5)


def test_keys_that_were_one_object_are_one_again() -> None:
    """Numbers above 256 and words are objects, and a clock's books look at that."""
    one, _ = recorded(Shares(make, {}, tenant_of_agent))
    for number in range(300):
        one.announce(Claim(f"tenant/{number}", 5))
        one.dismiss(f"tenant/{number}")
    one.announce(Claim("tenant/last", 5))
    one.announce(Claim("other/last", 5))
    read_frozen(one.frozen(FUNCTIONS), FUNCTIONS)["policy"]._check()


def seen(agents: Recorded) -> Any:
    """All that can be asked."""
    known = [agents.describe(f"{t}/{n}") for t in "tu" for n in "abcd"]
    return (
        known,
        list(agents.order()),
        list(agents.victims()),
        sorted(agents.requests),
    )


@pytest.mark.property
@pytest.mark.parametrize("name", MADE)
@given(before=actions, after=actions, watched=st.booleans())
def test_what_was_frozen_goes_on_as_it_was(
    name: str, before: Any, after: Any, watched: bool
) -> None:
    made = policy(name)
    one, _ = recorded(Watched(made, now=CLOCK) if watched else made)
    for number, action in enumerate(before):
        act(one, number, action)
    kept = read_frozen(one.frozen(FUNCTIONS), FUNCTIONS)
    other, _ = recorded(kept["policy"])
    other._agents, other._requests = kept["agents"], kept["requests"]
    other._produced = kept["produced"]
    for agent in kept["resting"]:
        other._idle.rest(agent)
    other._check()
    assert seen(other) == seen(one)
    for number, action in enumerate(after, 1000):
        act(one, number, action)
        act(other, number, action)
        assert seen(other) == seen(one)
    other._check()


@pytest.mark.property
@pytest.mark.parametrize("name", MADE)
@given(before=actions, between=actions, after=actions)
def test_a_state_and_the_verbs_since_are_the_state_of_now(
    name: str, before: Any, between: Any, after: Any
) -> None:
    one, verbs = recorded(Watched(policy(name), now=CLOCK))
    for number, action in enumerate(before):
        act(one, number, action)
    frozen = one.frozen(FUNCTIONS)
    verbs.clear()
    for number, action in enumerate(between, 1000):
        act(one, number, action)
    kept = read_frozen(frozen, FUNCTIONS)
    other, again = recorded(kept["policy"])
    lived = len(one.requests)
    assert other.recall(kept, list(verbs)) == lived
    assert not again  # what is played is not written a second time
    for request in list(one.requests):
        one.finish(request)
    other._check()
    for number, action in enumerate(after, 2000):
        act(one, number, action)
        act(other, number, action)
        assert seen(other) == seen(one)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{}",
        "[1, []]",
        "[[0], []]",
        '[[0], [["os:system", {}]]]',
        '[[0], [["builtins:object", {}]]]',
        '[[0], [["justitia.policy.registry:create", {}]]]',
        '[[0], [["justitia.policy.errors:PolicyError", {}]]]',
        '[[0], [["justitia.policy.clock:exactly", {}]]]',
        '[[0], [["justitia.engines.serving.settings:ServingSettings", {}]]]',
        '[[0], [["function", "system"]]]',
        '[[0], [["tuple", [[0]]]]]',
        '[["1/0"], []]',
        '[[0], [["justitia.policy.clock:VirtualClock", {"_nothing": 1}]]]',
        "[" * 10_000,
    ],
)
def test_what_is_no_state_is_refused_and_nothing_is_run_b37(text: str) -> None:
    with pytest.raises(FrozenError):
        read_frozen(text, {"now": CLOCK})


def test_numbers_stay_what_they_are() -> None:
    from fractions import Fraction

    value = [10**40, Fraction(1, 3), 0.1, True, None, "1/3", (1, (2,)), {(1,): {2}}]
    back = thaw(freeze(value, {}), {})
    assert back == value
    assert [type(one) for one in back] == [type(one) for one in value]
    json.loads(freeze(value, {}))


def test_functions_without_a_name_and_foreign_objects_are_not_written() -> None:
    for value in (len, object(), float("inf"), b"x"):
        with pytest.raises(FrozenError):
            freeze([value], {})
