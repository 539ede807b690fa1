"""Agents of a live engine: how they come, rest, grow and go."""

import gc
from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import inf, nan
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.serving import Agents, Claim, ServingSettings, read_claim
from justitia.policy import (
    Agent,
    Inference,
    KVTokenTime,
    Policy,
    PolicyError,
    Step,
    create,
    names,
)
from justitia.policy.ledger import Account

WORK = KVTokenTime()


class Clock:
    def __init__(self) -> None:
        self.time = 100.0

    def __call__(self) -> float:
        return self.time


def make_agents(
    policy: Policy | str = "justitia",
    *,
    now: Callable[[], float] = lambda: 0.0,
    linger: float = 60,
    most: int = 10_000,
    predict: Callable[[str, int, int], int] | None = None,
) -> Agents:
    if isinstance(policy, str):
        policy = create(policy)
    return Agents(policy, now=now, linger=linger, most=most, predict=predict)


def run(agents: Agents, request_id: str, tokens: int) -> None:
    """Let a request start, produce some tokens and end."""
    agents.start(request_id)
    for _ in range(tokens):
        agents.serve({}, {request_id: 1})
    agents.finish(request_id)
    agents._check()


def account(agents: Agents, agent_id: str) -> Account:
    return agents.policy._accounts[agent_id]  # type: ignore[attr-defined,no-any-return]


def cost(agents: Agents, agent_id: str) -> object:
    return account(agents, agent_id).cost


# --- how agents come ------------------------------------------------------------------


def test_b18_a_request_without_an_agent_is_one_of_its_own() -> None:
    """Its tag is V + its cost; it does not run before smaller ones, and ends alone."""
    agents = make_agents()
    agents.announce(Claim("a", 130))
    agents.announce(Claim("b", 10**6))
    agents.submit("r", Claim(), 10, 20)
    agents.submit("ra", Claim("a"), 10, 20)
    agents.submit("rb", Claim("b"), 10, 20)
    assert list(agents.order()) == ["ra", "r", "rb"]
    assert cost(agents, "request/r") == WORK(10, 20)
    run(agents, "r", 20)
    assert len(agents) == 2
    assert "request/r" not in agents


def test_names_of_agents_and_requests_do_not_meet() -> None:
    """Whatever a client calls its agent, a request of nobody's is another."""
    agents = make_agents()
    for name in ("request/r", "agent/r", "r"):
        agents.submit(f"of {name}", Claim(name, 5), 1, 1)
    agents.submit("r", Claim(), 1, 1)
    assert len(agents) == 4
    assert agents.dismiss("request/r") == ("of request/r",)
    assert agents.waiting("r")


def test_an_announced_agent_has_its_tag_before_its_first_request() -> None:
    agents = make_agents()
    told = agents.announce(Claim("a", 300, (100, 200), "MRS", 2, inferences=5))
    assert told == Agent("agent/a", 300, 2, "MRS", (100, 200), 5)
    assert agents.tag("a") == 150
    assert "a" in agents
    assert agents.tag("b") is None
    agents.submit("r", Claim("a", 9, kind="other", weight=7), 1, 1)
    assert agents.tag("a") == 150  # what the first word said holds


@pytest.mark.parametrize(
    "claim",
    [
        Claim(),
        Claim("a"),
        Claim(None, 5),
        Claim("known", 5),
        Claim("a", nan),
        Claim("a", inf),
        Claim("a", -1),
        Claim("a", 1, weight=0),
        Claim("a", 1, stage_costs=(0,)),
    ],
)
def test_an_announcement_that_cannot_be_is_refused(claim: Claim) -> None:
    agents = make_agents()
    agents.announce(Claim("known", 5))
    with pytest.raises(PolicyError):
        agents.announce(claim)
    assert len(agents) == 1
    agents._check()


@pytest.mark.parametrize(("linger", "most"), [(0, 10), (60, 0)])
def test_an_announcement_that_would_be_forgotten_is_refused(
    linger: float, most: int
) -> None:
    agents = make_agents(linger=linger, most=most)
    with pytest.raises(PolicyError, match="not remembered"):
        agents.announce(Claim("a", 5))
    agents.submit("r", Claim("a", 50), 5, 5)
    run(agents, "r", 5)
    assert len(agents) == 0


def test_a_request_id_that_is_live_is_the_engines_mistake() -> None:
    agents = make_agents()
    agents.submit("r", Claim("a"), 5, 5)
    with pytest.raises(PolicyError, match="here already"):
        agents.submit("r", Claim("b"), 5, 5)
    assert len(agents) == 1
    agents._check()


# --- how they go ----------------------------------------------------------------------


def test_an_agent_ends_with_the_last_of_its_requests() -> None:
    agents = make_agents()
    for place in range(3):
        agents.submit(f"r{place}", Claim("a", inferences=3), 5, 5)
    run(agents, "r0", 5)
    run(agents, "r2", 0)
    assert len(agents) == 1
    run(agents, "r1", 5)
    assert len(agents) == 0


def test_an_agent_with_more_requests_than_declared_ends_when_none_is_left() -> None:
    agents = make_agents()
    for place in range(3):
        agents.submit(f"r{place}", Claim("a", inferences=1), 5, 5)
    run(agents, "r0", 5)
    run(agents, "r1", 5)
    assert len(agents) == 1
    run(agents, "r2", 5)
    assert len(agents) == 0


def test_an_agent_lingers_and_expires() -> None:
    clock = Clock()
    agents = make_agents(now=clock, linger=60)
    agents.submit("r0", Claim("a"), 5, 5)
    run(agents, "r0", 5)
    clock.time += 59
    agents.expire()
    agents.submit("r1", Claim("a"), 5, 5)
    clock.time += 1000
    agents.expire()
    assert len(agents) == 1  # it has a request
    run(agents, "r1", 5)
    clock.time += 59.5
    agents.expire()
    assert len(agents) == 1
    assert agents.forgotten == 0
    clock.time += 0.5
    agents.expire()
    assert len(agents) == 0
    assert agents.forgotten == 1
    agents._check()


def test_a_tool_that_takes_four_minutes_does_not_end_an_agent() -> None:
    clock = Clock()
    agents = Agents(create("justitia"), now=clock)
    agents.announce(Claim("a", 500))
    clock.time += 240
    agents.expire()
    assert "a" in agents
    clock.time += 60
    agents.expire()
    assert "a" not in agents
    assert agents.forgotten == 1
    assert ServingSettings().linger == 300


def test_who_ends_is_not_forgotten() -> None:
    agents = make_agents(linger=0)
    agents.submit("own", Claim(), 5, 5)
    agents.submit("a", Claim("a"), 5, 5)
    agents.finish("own")
    agents.finish("a")
    agents = make_agents()
    agents.submit("b", Claim("b", inferences=1), 5, 5)
    agents.finish("b")
    agents.announce(Claim("c", 1))
    agents.dismiss("c")
    assert len(agents) == agents.forgotten == 0


def test_b12_a_clock_that_is_set_back_stops_nobodys_time() -> None:
    clock = Clock()
    agents = make_agents(now=clock, linger=60)
    agents.announce(Claim("a", 5))
    clock.time -= 3600
    agents.expire()
    clock.time += 61
    agents.expire()
    assert len(agents) == 0


def test_the_policy_is_told_the_time() -> None:
    class Timed(type(create("fcfs"))):  # type: ignore[misc]
        def advance(self, seconds: float) -> None:
            told.append(seconds)

    told: list[float] = []
    clock = Clock()
    agents = make_agents(Timed(), now=clock)
    for passed in (1.5, -3600, 0, 2):
        clock.time += passed
        agents.expire()
    assert told == [1.5, -3600, 0, 2]  # a policy takes less than 0 for no time


def test_b50_those_idle_longest_go_first_when_there_are_too_many() -> None:
    agents = make_agents(most=3)
    for number in range(1_000):
        agents.announce(Claim(f"a{number}", 5))
        assert len(agents) <= 3
    assert [name in agents for name in ("a996", "a997", "a999")] == [False, True, True]
    agents.submit("r", Claim("a997"), 5, 5)
    agents.announce(Claim("new", 5))
    assert len(agents) == 4
    agents.finish("r")
    assert "a998" not in agents
    assert "a997" in agents
    agents._check()


def test_a_dismissed_agents_requests_are_nobodys() -> None:
    """Until the engine aborts them it may still speak of them."""
    agents = make_agents("vtc")
    for place in range(3):
        agents.submit(f"r{place}", Claim("a"), 5, 5)
    agents.submit("other", Claim("b"), 5, 5)
    agents.start("r0")
    agents.serve({"r0": 5}, {"r0": 1})
    assert agents.dismiss("a") == ("r0", "r1", "r2")
    assert agents.dismiss("a") is None
    assert agents.dismiss("nobody") is None
    agents.requeue("r0")
    agents.refuse("r1")
    agents.serve({}, {"r0": 1, "r1": 1})
    assert agents.predicted("r0") == 0
    assert not agents.waiting("r1")
    assert not agents.finish("r2")
    assert list(agents.order()) == ["other"]
    assert list(agents.victims()) == []
    agents._check()


def test_b03_a_dismissed_agent_is_not_in_the_reference() -> None:
    """It got nothing: the other has the whole machine as if it had never come."""
    agents = make_agents()
    agents.submit("ra", Claim("a", 1000), 10, 100)
    agents.submit("rb", Claim("b", 1000), 10, 100)
    agents.dismiss("b")
    agents.start("ra")
    agents.serve({}, {"ra": 1})
    agents.announce(Claim("c", 1000))
    assert agents.tag("c") == 1000 + WORK(10, 1)


# --- whose requests are ---------------------------------------------------------------

_claims = st.builds(
    Claim,
    st.sampled_from([None, "a", "b", "c"]),
    st.sampled_from([None, 50, 900]),
    kind=st.sampled_from(["", "K", "L"]),
)


@given(
    st.lists(st.tuples(_claims, st.booleans()), max_size=30),
    st.sampled_from(["justitia", "fcfs", "vtc", "srjf"]),
)
def test_whose_a_request_is_and_its_tag_are_its_agents(
    requests: list[tuple[Claim, bool]], policy: str
) -> None:
    """The first claim of an agent holds; a number of arrival is never given twice."""
    agents = make_agents(policy, linger=0)
    first: dict[str, tuple[int, str]] = {}  # by agent that is there
    live: dict[str, str] = {}
    arrived = 0
    for number, (claim, ends) in enumerate(requests):
        name, own = f"r{number}", f"request/r{number}"
        agent = own if claim.agent is None else f"agent/{claim.agent}"
        agents.submit(name, claim, 5, 5)
        live[name] = agent
        if agent not in first:
            arrived += 1
            first[agent] = arrived, claim.kind
        for one, its in live.items():
            assert agents.whose(one) == first[its]
            assert agents.request_tag(one) == agents.policy.tag(its)
            if its.startswith("agent/"):
                assert agents.request_tag(one) == agents.tag(its[len("agent/") :])
        if ends:
            gone = next(iter(live))
            run(agents, gone, 3)
            its = live.pop(gone)
            if its not in live.values():  # nobody is remembered here
                del first[its]
            assert (agents.whose(gone), agents.request_tag(gone)) == (None, None)
    agents._check()


def test_requests_of_a_dismissed_agent_are_nobodys() -> None:
    agents = make_agents()
    agents.submit("r", Claim("a", 100, kind="K"), 5, 5)
    assert agents.whose("r") == (1, "K")
    assert agents.request_tag("r") == 100
    agents.dismiss("a")
    assert (agents.whose("r"), agents.request_tag("r")) == (None, None)


# --- what they cost -------------------------------------------------------------------


def test_an_undeclared_agent_costs_what_its_requests_do() -> None:
    agents = make_agents("srjf")
    agents.submit("r0", Claim("a"), 10, 100)
    assert cost(agents, "agent/a") == WORK(10, 100)
    agents.submit("r1", Claim("a", tokens=5), 20, 100)
    assert cost(agents, "agent/a") == WORK(10, 100) + WORK(20, 5)
    run(agents, "r0", 30)  # it ends early
    assert cost(agents, "agent/a") == WORK(10, 30) + WORK(20, 5)
    run(agents, "r1", 8)  # it outgrows what it said
    assert cost(agents, "agent/a") == WORK(10, 30) + WORK(20, 8)
    agents.submit("r2", Claim("a"), 1, 1)
    assert cost(agents, "agent/a") == WORK(10, 30) + WORK(20, 8) + WORK(1, 1)


def test_b04_an_undeclared_agent_is_settled_at_what_it_got() -> None:
    agents = make_agents()
    agents.submit("r", Claim("a"), 10, 10_000)
    run(agents, "r", 3)
    assert agents.tag("a") == WORK(10, 3)


@pytest.mark.parametrize("tags", ["agent", "stage"])
def test_an_undeclared_agents_stages_cost_once(tags: str) -> None:
    """Each request adds its cost to max(V, tag), as a tag a stage would."""
    agents = make_agents(create("justitia", tags=tags))
    agents.submit("r0", Claim("a", stage=0), 10, 10)
    run(agents, "r0", 10)
    agents.submit("r1", Claim("a", stage=1), 20, 5)
    agents.submit("r2", Claim("a", stage=7), 20, 5)
    assert agents.tag("a") == WORK(10, 10) + 2 * WORK(20, 5)


def test_a_declared_agents_stages_have_tags_of_their_own() -> None:
    agents = make_agents(create("justitia", tags="stage"))
    agents.submit("r0", Claim("a", 300, (100, 200), stage=0), 10, 5)
    assert agents.tag("a") == 100
    agents.submit("r1", Claim("a", stage=1), 10, 5)
    assert agents.tag("a") == 300


def test_a_cost_can_be_revised_and_is_declared_then() -> None:
    agents = make_agents()
    agents.submit("r", Claim("a"), 10, 10)
    agents.revise("a", 5_000)
    assert agents.tag("a") == 5_000
    agents.submit("r1", Claim("a"), 10, 10)
    run(agents, "r", 10)
    assert agents.tag("a") == 5_000
    for name, worth in (("nobody", 5), ("a", nan), ("a", 0)):
        with pytest.raises(PolicyError):
            agents.revise(name, worth)
    agents._check()


def test_costs_are_in_the_unit_of_the_policy() -> None:
    agents = make_agents(create("justitia", cost="compute"))
    agents.submit("r", Claim("a"), 10, 7)
    assert agents.tag("a") == 10 + 2 * 7
    agents = make_agents(create("justitia", cost="kv-paper"))
    for place in range(5):
        agents.submit(f"r{place}", Claim("a"), 3, 1 + place)
    for place in range(5):
        run(agents, f"r{place}", 1 + place)
    assert agents.tag("a") == sum(3 * n + n * n / 2 for n in range(1, 6))


def test_a_request_that_only_computes_its_prompt_costs_that() -> None:
    """B09: an embedding, say. It is served when its prompt is done."""
    agents = make_agents()
    agents.submit("r", Claim("a"), 8_000, 0)
    assert agents.predicted("r") == 0
    assert agents.tag("a") == 8_000
    agents.start("r")
    agents.serve({"r": 8_000}, {"r": 0})
    agents.finish("r")
    agents.announce(Claim("b", 5))
    assert agents.tag("b") == 8_005


# --- what they are predicted to produce -----------------------------------------------


@pytest.mark.parametrize(
    ("said", "longest", "found"),
    [(None, 50, 50), (20, 50, 20), (70, 50, 50), (0, 50, 1), (5, 0, 0), (None, 0, 0)],
)
def test_b29_a_request_produces_something_and_no_more_than_it_may(
    said: int | None, longest: int, found: int
) -> None:
    agents = make_agents()
    agents.submit("r", Claim(tokens=said), 5, longest)
    assert agents.predicted("r") == found
    assert agents.predicted("nobody") == 0


def test_a_predictor_is_asked_for_what_nobody_said() -> None:
    asked = []

    def predict(kind: str, prompt: int, longest: int) -> int:
        asked.append((kind, prompt, longest))
        return 7

    agents = make_agents(predict=predict)
    agents.submit("r0", Claim("a", kind="MRS"), 5, 50)
    agents.submit("r1", Claim("a", tokens=9), 5, 50)
    assert [agents.predicted("r0"), agents.predicted("r1")] == [7, 9]
    assert asked == [("MRS", 5, 50)]


def raises(*_: object) -> int:
    raise RuntimeError("no model")


@pytest.mark.parametrize(
    ("predict", "found", "faults"),
    [
        (lambda *_: -5, 1, 1),
        (lambda *_: 10**30, 50, 0),
        (lambda *_: nan, 50, 1),
        (lambda *_: inf, 50, 1),
        (lambda *_: "many", 50, 1),
        (lambda *_: None, 50, 1),
        (lambda *_: Fraction(7, 2), 3, 0),
        (raises, 50, 1),
    ],
)
def test_b34_a_predictor_that_fails_is_counted(
    predict: Callable[[str, int, int], int], found: int, faults: int
) -> None:
    agents = make_agents(predict=predict)
    agents.submit("r", Claim("a"), 5, 50)
    assert agents.predicted("r") == found
    assert agents.faults["prediction"] == faults


# --- what the policy refuses ----------------------------------------------------------


def test_a_claim_that_the_policy_refuses_is_a_request_of_nobodys() -> None:
    """Each cost is one, but the two together are not."""
    agents = make_agents(create("justitia", tags="stage"))
    large = Claim("a", 1e150, (1e150, 1e150))
    agents.submit("r0", large, 5, 5)
    agents.submit("r1", Claim("a", stage=1), 5, 5)
    assert agents.faults == Counter({"claim": 1})
    assert len(agents) == 2
    assert cost(agents, "request/r1") == WORK(5, 5)
    run(agents, "r1", 5)
    run(agents, "r0", 5)
    agents._check()


def test_a_new_agent_whose_request_is_refused_has_not_come() -> None:
    class Picky(type(create("fcfs"))):  # type: ignore[misc]
        def submit(self, inference: Inference) -> None:
            if inference.agent == "agent/a":
                raise PolicyError("not this one")
            super().submit(inference)

    agents = make_agents(Picky())
    agents.submit("r", Claim("a"), 5, 5)
    assert "a" not in agents
    assert list(agents.order()) == ["r"]
    agents._check()


@pytest.mark.parametrize(
    "claim",
    [
        Claim("a", nan),
        Claim("a", weight=-1),
        Claim("a", kind=5),  # type: ignore[arg-type]
        Claim("a", 5, stage=-1),
        Claim("a", inferences=nan),  # type: ignore[arg-type]
    ],
)
def test_a_claim_that_nobody_read_cannot_stop_a_request(claim: Claim) -> None:
    agents = make_agents()
    agents.submit("r", claim, 5, 5)
    assert agents.waiting("r")
    assert agents.faults["claim"] == 1
    agents._check()


def test_faults_are_counted_by_field() -> None:
    agents = make_agents()
    agents.submit("r0", Claim(faults=("agent", "cost")), 5, 5)
    agents.submit("r1", Claim(faults=("cost",)), 5, 5)
    assert agents.faults == Counter(cost=2, agent=1)


def test_what_cannot_be_used_is_in_the_log(caplog: pytest.LogCaptureFixture) -> None:
    agents = make_agents()
    agents.submit("r0", read_claim({"agent": "x" * 10**6, "cost": "12"}), 5, 5)
    agents.submit("r1", Claim("a", nan), 5, 5)  # the policy's word
    lines = [record.getMessage() for record in caplog.records]
    assert len(lines) == 3
    assert "agent must be a str of 1 to 256 characters, not 'xxx" in lines[0]
    assert "cost must be a finite number, not '12'" in lines[1]
    assert "not nan" in lines[2]
    assert all(len(line) < 300 and "\n" not in line for line in lines)
    assert {(r.name, r.levelname) for r in caplog.records} == {("justitia", "WARNING")}


# --- witnesses ------------------------------------------------------------------------


def test_a_witness_sees_steps_and_requeues() -> None:
    class Seen:
        def served(self, step: Step) -> None:
            seen.append(step)

        def requeued(self, request_id: str) -> None:
            seen.append(request_id)

    seen: list[object] = []
    agents = make_agents()
    agents.witness = Seen()
    agents.submit("r", Claim("a"), 5, 5)
    agents.start("r")
    agents.serve({"r": 5}, {"r": 1})
    agents.requeue("r")
    agents.requeue("r")  # it is in line already
    assert seen == [Step({"r": 5}, {"r": 1}), "r"]


class Nobody:
    """A witness that looks on and does nothing: each step is told as it comes."""

    def served(self, step: Step) -> None:
        pass

    def requeued(self, request_id: str) -> None:
        pass


@pytest.mark.parametrize(
    ("policy", "options"),
    [
        ("justitia", {}),
        ("justitia", {"tags": "stage"}),
        ("justitia", {"growth": 2}),
        ("justitia-c", {}),
        ("vtc", {}),
        ("srjf", {}),
        ("sjf", {}),
    ],
)
@given(seed=st.integers(0, 2**32 - 1))
def test_steps_told_as_one_leave_all_as_they_would_one_by_one(
    policy: str, options: dict[str, object], seed: int
) -> None:
    """Equal steps in a row are held back; nothing that is asked may show it."""
    both = [make_agents(create(policy, **options)) for _ in range(2)]
    both[1].witness = Nobody()
    rng = Random(seed)
    running: list[str] = []
    for number in range(rng.randint(1, 60)):
        event = rng.choice(("submit", "start", *["serve"] * 4, "finish", "requeue"))
        claim = Claim(
            rng.choice((None, "a", "b")),
            rng.choice((None, 50)),
            stage=rng.randint(0, 1),
        )
        lengths = rng.randint(1, 9), rng.randint(1, 9)
        heads = {agents.head() for agents in both} if event == "start" else set()
        steps, place = rng.randint(1, 12), rng.random()
        for agents in both:
            if event == "submit":
                agents.submit(f"r{number}", claim, *lengths)
            elif event == "serve" and running:
                for _ in range(steps):
                    agents.serve({}, dict.fromkeys(running, 1))
            elif event == "finish" and running:
                agents.finish(running[int(place * len(running))])
            elif event == "requeue" and running:
                agents.requeue(running[-1])
            elif event == "start" and heads != {None}:
                (head,) = heads
                agents.start(str(head))
        if event == "start" and heads != {None}:
            running += map(str, heads)
        elif event == "finish" and running:
            del running[int(place * len(running))]
        elif event == "requeue" and running:
            running.pop()
    held, told = both
    assert list(held.order()) == list(told.order())
    assert list(held.victims()) == list(told.victims())
    assert held._agents.keys() == told._agents.keys()
    for name, agent in told._agents.items():
        assert held._agents[name].delivered == agent.delivered
        assert held.policy.tag(name) == told.policy.tag(name)
        assert account(held, name).service == account(told, name).service
    held._check()


# --- nothing grows --------------------------------------------------------------------


def ours() -> Counter[str]:
    gc.collect()
    return Counter(
        type(one).__qualname__
        for one in gc.get_objects()
        if str(type(one).__module__).startswith("justitia.")
    )


@pytest.mark.parametrize("policy", names())
def test_a_hundred_thousand_agents_leave_no_growth(policy: str) -> None:
    """Named ones that linger, at most 50 at a time, and requests of nobody's.

    One that stays keeps the reference from being idle. (With "justitia" all of them;
    the others have the same books.)
    """
    clock = Clock()
    agents = make_agents(policy, now=clock, most=50)
    agents.submit("stays", Claim("stays", 10**9), 5, 5)
    agents.start("stays")

    def live(first: int, count: int) -> None:
        for number in range(first, first + count):
            request = f"r{number}"
            name = f"a{number}" if number % 2 else None
            agents.submit(request, Claim(name, kind=f"k{number}"), 3, 2)
            if number % 5:
                agents.start(request)
                agents.serve({request: 3}, {request: 1, "stays": 1})
            agents.finish(request)
            agents.expire()

    live(0, 1_000)
    before = ours()
    live(1_000, 100_000 if policy == "justitia" else 3_000)
    assert len(agents) <= 51
    after = ours()
    assert after.total() <= before.total() + 40  # where in the last cycle it is
    agents._check()
