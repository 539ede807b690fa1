"""The front of SGLang's queue: the policy's order, and no work that is not needed."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.serving import Agents, Claim
from justitia.policy import Inference, Policy, create, names
from justitia.policy.fcfs import FCFS
from justitia.policy.ledger import Entry
from tests.engines.sglang.stepped import (
    FEW,
    MORE,
    Front,
    Log,
    Script,
    Stepped,
    binding_of,
    stepped,
)


class Req:
    def __init__(self, rid: str) -> None:
        self.rid = rid

    def __repr__(self) -> str:
        return self.rid


class Queue:
    """A queue like SGLang's, and who is in it as the policy has it."""

    def __init__(self, policy: Policy) -> None:
        self.agents = Agents(policy, now=lambda: 0.0, linger=60)
        self.live: dict[str, Req] = {}
        self.loose: dict[Req, None] = {}
        self.list: list[Req] = []
        self.front: Front = Front(self.agents, self.live.__getitem__, self.loose)

    def add(self, rid: str, agent: str, cost: float, prompt: int = 10) -> None:
        req = self.live[rid] = Req(rid)
        self.agents.submit(rid, Claim(agent=agent, cost=cost), prompt, 10)
        self.list.append(req)

    def admit(self, count: int) -> list[str]:
        """Return the first that SGLang would admit; they start, as in `Binding`."""
        self.front.place(self.list)
        admitted: list[Req] = []
        for req in self.list:
            if len(admitted) == count or not self.front.ask(req, self.list):
                break
            admitted.append(req)
        self.list = [req for req in self.list if req not in admitted]
        for req in admitted:
            self.agents.start(req.rid)
            self.front.started()
        return [req.rid for req in admitted]


@pytest.mark.parametrize("name", names())
@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("add"), st.integers(0, 9), st.integers(1, 99)),
            st.tuples(st.just("admit"), st.integers(1, 90), st.just(0)),
            st.tuples(st.just("serve"), st.integers(1, 5), st.just(0)),
            st.tuples(st.just("finish"), st.integers(0, 99), st.just(0)),
            st.tuples(st.just("abort"), st.integers(0, 99), st.just(0)),
            st.tuples(st.just("revise"), st.integers(0, 9), st.integers(1, 99)),
            st.tuples(st.just("many"), st.integers(0, 9), st.integers(1, 99)),
        ),
        max_size=40,
    )
)
def test_admitted_in_the_order_of_the_policy(
    name: str, events: list[tuple[str, int, int]]
) -> None:
    """Whatever happens in between, and however many are admitted in one look."""
    queue = Queue(create(name))
    agents, running, number = queue.agents, [], 0
    for verb, first, second in events:
        if verb in ("add", "many"):
            for more in range(1 if verb == "add" else 30):
                number += 1
                agent = f"{(first + 3 * more) % 10}"
                queue.add(f"{number}", agent, second * 1e3, 10 + second)
        elif verb == "admit":
            wanted = [*agents.order()][:first]
            assert queue.admit(first) == wanted
            running += wanted
        elif verb == "serve":
            agents.serve({}, dict.fromkeys(running[:first], 1))
        elif verb == "finish" and running:
            agents.finish(running.pop(first % len(running)))
        elif verb == "abort" and queue.list:
            gone = queue.list.pop(first % len(queue.list))
            agents.finish(gone.rid)
        elif verb == "revise" and f"{first}" in agents:
            agents.revise(f"{first}", second * 1e3)
        agents._check()
    assert queue.admit(len(queue.list)) == [*agents.order()] or not queue.list


class Asked(FCFS):
    """First come, first served; counts how often it is asked for its order."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def order(self) -> Iterator[Inference]:
        self.asked += 1
        return super().order()


class ShortestPrompt(FCFS):
    """The shortest prompt first."""

    def key(self, entry: Entry) -> tuple[object, ...]:
        return (entry.inference.prompt_tokens,)


def full(policy: Policy, count: int = 1_000) -> Queue:
    queue = Queue(policy)
    for n in range(count):
        queue.add(f"{n}", f"{n % 10}", 1e3 + n)
    return queue


def test_nothing_is_asked_when_nothing_has_changed() -> None:
    policy = Asked()
    queue = full(policy)
    queue.front.place(queue.list)
    assert policy.asked == 1
    for _ in range(100):
        queue.front.place(queue.list)
        queue.agents.serve({}, {})
        queue.agents.expire()
    assert policy.asked == 1


def test_the_started_leave_the_others_in_their_places() -> None:
    """The order is asked for once in many starts, and the list is not rewritten."""
    policy = Asked()
    queue = full(policy)
    for n in range(MORE):
        assert queue.admit(1) == [f"{n}"]
    assert policy.asked <= 2 * MORE / FEW
    assert queue.front.rewrites == 0


def test_no_more_of_the_order_is_looked_at_than_is_admitted() -> None:
    """A look at 10,000 takes the first few; one that admits a, some times a of them."""
    taken = 0

    class Lazy(FCFS):
        def order(self) -> Iterator[Inference]:
            nonlocal taken
            for inference in super().order():
                taken += 1
                yield inference

    queue = full(Lazy(), 10_000)
    queue.admit(1)
    assert taken <= FEW + 1
    taken = 0
    queue.admit(500)
    assert taken <= 4 * 500 + MORE


def test_an_arrival_takes_its_place() -> None:
    queue = Queue(ShortestPrompt())
    for n in range(100):
        queue.add(f"{n}", f"{n}", 1e3, 50 + n)
    queue.front.place(queue.list)
    rewrites = queue.front.rewrites
    queue.add("late and long", "x", 1e3, 500)
    queue.front.place(queue.list)
    assert queue.front.rewrites == rewrites
    queue.add("late and short", "y", 1e3, 1)
    assert queue.admit(3) == ["late and short", "0", "1"]


def test_who_is_not_in_line_is_not_asked_for() -> None:
    """A policy may hold all back, and so it does with those of a dismissed agent."""
    queue = Queue(create("justitia"))
    queue.add("a", "a", 1e3)
    queue.add("b", "b", 2e3)
    queue.agents.dismiss("a")
    assert queue.admit(2) == ["b"]
    assert queue.admit(2) == []
    assert [req.rid for req in queue.list] == ["a"]


def test_the_loose_go_first() -> None:
    queue = full(create("fcfs"), 3)
    check = Req("check")
    queue.list.append(check)
    queue.loose[check] = None
    queue.front.outdate()
    queue.front.place(queue.list)
    assert [req.rid for req in queue.list] == ["check", "0", "1", "2"]
    assert queue.front.ask(check, queue.list)


def test_all_in_order_for_an_engine_that_passes_over_some() -> None:
    queue = Queue(ShortestPrompt())
    queue.front = Front(queue.agents, queue.live.__getitem__, (), all=True)
    for n in range(300):
        queue.add(f"{n}", f"{n}", 1e3, 1_000 - n)
    queue.front.place(queue.list)
    assert [req.rid for req in queue.list] == [*queue.agents.order()]


# --- in SGLang ------------------------------------------------------------------------


@pytest.fixture(scope="module", params=["plain", "overlap"])
def scheduler(model: Path, request: pytest.FixtureRequest) -> Iterator[Stepped]:
    """A scheduler with 512 KV tokens, 4 seats, and steps of 64 prompt tokens."""
    overlap = request.param == "overlap"
    with stepped(model, overlap=overlap, max_running_requests=4) as made:
        yield made


def first_in(scheduler: Stepped) -> list[str]:
    """Return who was in a batch, in the order in which they first were."""
    return list(dict.fromkeys(rid for batch in scheduler.batches for rid in batch))


@pytest.mark.parametrize("name", names())
def test_a_policy_orders_sglang(scheduler: Stepped, name: str) -> None:
    """Those that wait start in the order of the policy, which is asked beside it."""
    scheduler.use(create(name))
    wanted: list[str] = []

    def script() -> Script:
        for n in range(4):  # all seats
            scheduler.send(f"early{n}", 8, 60, token=10 + n)
        yield
        yield
        for n in range(12):
            claim = {"agent": f"{n % 5}", "cost": 1e5 - 1e3 * (n % 5), "kind": "k"}
            scheduler.send(f"{n}", 8 + 2 * n, 3, claim, token=20 + n)
        wanted.extend(binding_of(scheduler).agents.order())
        yield

    scheduler.play(script())
    static = binding_of(scheduler).agents.policy.static_order
    first = [rid for rid in first_in(scheduler) if not rid.startswith("early")]
    assert sorted(first) == sorted(wanted)
    assert first[:1] == wanted[:1]
    if static:
        assert first == wanted


def test_any_version_of_sglangs_order_is_out(scheduler: Stepped) -> None:
    """An order that is the reverse of arrival is the policy's, and not SGLang's."""

    class Last(FCFS):
        def key(self, entry: Entry) -> tuple[object, ...]:
            return (-entry.seq,)

    scheduler.use(Last())

    def script() -> Script:
        for n in range(4):
            scheduler.send(f"early{n}", 8, 30, token=10 + n)
        yield
        yield
        for n in range(8):
            scheduler.send(f"{n}", 8, 3, token=20 + n)
        yield

    scheduler.play(script())
    late = [rid for rid in first_in(scheduler) if not rid.startswith("early")]
    assert late == [f"{n}" for n in reversed(range(8))]


def test_nothing_is_asked_while_the_seats_are_taken(scheduler: Stepped) -> None:
    scheduler.use(Asked())
    front = binding_of(scheduler).front

    def script() -> Script:
        for n in range(8):
            scheduler.send(f"{n}", 8, 60, token=10 + n)
        for _ in range(6):
            yield
        sorts = front.sorts
        for _ in range(40):
            yield
        assert front.sorts == sorts

    scheduler.play(script())


def test_one_that_would_fit_is_looked_at_though_the_cache_was_full(
    scheduler: Stepped,
) -> None:
    """SGLang itself looks at nobody until somebody leaves, once one had no room."""
    scheduler.use(ShortestPrompt())

    def script() -> Script:
        scheduler.send("runs", 50, 200, token=5)
        yield
        yield
        scheduler.send("large", 60, 400, token=6)
        yield
        yield
        assert scheduler.running_batch.batch_is_full
        scheduler.send("small", 8, 3, token=7)
        yield
        yield
        assert "small" in first_in(scheduler)
        assert "large" not in first_in(scheduler)

    scheduler.play(script())


def test_nobody_passes_a_head_that_has_no_room(scheduler: Stepped) -> None:
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        scheduler.send("runs", 50, 200, token=5)
        yield
        yield
        scheduler.send("head", 60, 400, token=6)
        for n in range(3):
            scheduler.send(f"{n}", 8, 3, token=7 + n)
            yield
        assert first_in(scheduler) == ["runs"]
        assert log.verbs("head") == ["submit", "refuse"]  # once, not in every step

    scheduler.play(script())
    assert first_in(scheduler)[:2] == ["runs", "head"]
