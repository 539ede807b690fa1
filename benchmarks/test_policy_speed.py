"""Speed of the clock and the policy per event, beside a bare binary heap.

Run with ``tox run -e bench``; ``docs/benchmarks.md`` has a table. A figure is the
fastest of several rounds, and every limit is on a ratio of two figures of one run, so
that a slow or busy machine moves both. The one time limit is that of a step, which has
to be told within a real engine's step.
"""

import random
from collections.abc import Callable, Iterator
from heapq import heapify, heappop, heappush
from itertools import islice

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benchmarks.conftest import Figures
from justitia.policy import Agent, Inference, Policy, Step, VirtualClock, create, names

SIZES = (10**3, 10**4, 10**5, 10**6)
EVENTS = 1_000
ROUNDS = 30
GROWTH = 1.5
"""From the smallest size to the largest, at most so many times the heap's growth."""
CYCLE = 8
"""A policy's submit, start, finish: at most so many times the heap's push and pop."""
DEARER = {"vtc": 11, "fairserve": 16}
"""These charge and lift besides, and all their counters are equal here: ties cost.
FairServe takes note, too, of who has begun."""
FRONT = 64
"""What SGLang may ask for in an iteration; at most the time of a heap made anew."""
STEP_SECONDS = 150e-6
RUNNING = 256

Round = Callable[[], None]
"""Performs `EVENTS` events and leaves the state as it found it."""


def heap(size: int) -> Iterator[tuple[str, Round]]:
    draw = random.Random(size)
    line = [(draw.random(), k) for k in range(size)]
    heapify(line)
    items = [(draw.random(), size + k) for k in range(EVENTS)]

    def push_pop() -> None:
        for item in items:
            heappush(line, item)
            heappop(line)

    yield "heap push + pop", push_pop


def clock(size: int) -> Iterator[tuple[str, Round]]:
    draw = random.Random(size)
    made = VirtualClock()
    for k in range(size):
        made.arrive(k, draw.randrange(10**6, 10**7))
    costs = [draw.randrange(10**6, 10**7) for _ in range(EVENTS)]
    agents = [draw.randrange(size) for _ in range(EVENTS)]

    def arrive_leave() -> None:
        for k, cost in enumerate(costs):
            made.arrive(size + k, cost)
            made.leave(size + k)

    def arrive_depart() -> None:
        for k in range(EVENTS):
            made.arrive(size + k, 1)
            made.serve(size + 1)
            made.leave(size + k)

    def serve() -> None:
        for _ in range(EVENTS):
            made.serve(1)

    def revise() -> None:
        for agent, cost in zip(agents, costs, strict=True):
            made.revise(agent, cost)

    yield "clock arrive + leave", arrive_leave
    yield "clock revise", revise
    yield "clock serve, nobody departs", serve
    yield "clock arrive + serve to its end", arrive_depart


def policy(name: str, size: int) -> Iterator[tuple[str, Round]]:
    made = filled(name, size)
    draw = random.Random(size)
    newcomers = [Agent(f"n{k}", draw.randrange(1, 10**6)) for k in range(EVENTS)]

    def cycle() -> None:
        for _ in range(EVENTS):
            head = made.peek()
            assert head is not None
            made.start(head.id)
            made.finish(head.id)
            made.submit(head)

    def arrive_leave() -> None:
        for agent in newcomers:
            made.arrive(agent)
            made.leave(agent.id)

    yield f"{name} submit + start + finish", cycle
    if name == "justitia":
        yield f"{name} arrive + leave", arrive_leave


def filled(name: str, size: int) -> Policy:
    """Return a policy with so many agents, an inference of each waiting."""
    made = create(name)
    draw = random.Random(size)
    for k in range(size):
        made.arrive(Agent(f"a{k}", draw.randrange(10**6, 10**7)))
        made.submit(Inference(f"i{k}", f"a{k}", 100, draw.randrange(1, 500)))
    return made


def cases(size: int) -> Iterator[tuple[str, Round]]:
    yield from heap(size)
    yield from clock(size)
    for name in names() if size <= 10**5 else ["justitia"]:
        yield from policy(name, size)


@pytest.mark.parametrize("size", SIZES)
def test_events(benchmark: BenchmarkFixture, figures: Figures, size: int) -> None:
    """Measure all events at one size, in turn, round by round."""
    rounds = list(cases(size))
    fastest = dict.fromkeys((name for name, _ in rounds), float("inf"))

    def all_in_turn() -> None:
        for name, events in rounds:
            began = benchmark._timer()
            events()
            fastest[name] = min(fastest[name], benchmark._timer() - began)

    benchmark.group = f"{size:,} agents"
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        all_in_turn, rounds=ROUNDS, warmup_rounds=1
    )
    for name, seconds in fastest.items():
        figures.add(name, size, seconds / EVENTS)


def test_growth_is_the_heaps(figures: Figures) -> None:
    bare = figures.micros["heap push + pop"]
    for name, by_size in figures.micros.items():
        if max(by_size) == SIZES[-1]:
            growth = by_size[SIZES[-1]] / by_size[SIZES[0]]
            assert growth <= GROWTH * bare[SIZES[-1]] / bare[SIZES[0]], name


@pytest.mark.parametrize("size", SIZES)
def test_a_cycle_is_a_few_heap_operations(figures: Figures, size: int) -> None:
    bare = figures.micros["heap push + pop"]
    for name, by_size in figures.micros.items():
        if name.endswith("submit + start + finish") and size in by_size:
            most = DEARER.get(name.split()[0], CYCLE)
            assert by_size[size] <= most * bare[size], name


@pytest.mark.parametrize("name", names())
def test_front(benchmark: BenchmarkFixture, figures: Figures, name: str) -> None:
    """Ask for the first of ten thousand in line, with some outdated by a step."""
    made = filled(name, 10**4)
    draw = random.Random(1)
    for k in range(RUNNING):
        made.submit(Inference(f"more{k}", f"a{k}", 100, 5))
    running = [made.pop() for _ in range(RUNNING)]
    made.serve(Step(decode={one.id: 1 for one in running if one is not None}))
    line = [(draw.random(), k) for k in range(10**4)]
    best = {"heap": float("inf"), "front": float("inf")}

    def both() -> None:
        began = benchmark._timer()
        anew = list(line)
        heapify(anew)
        for _ in range(FRONT):
            heappop(anew)
        between = benchmark._timer()
        assert sum(1 for _ in islice(made.order(), FRONT)) == FRONT
        best["heap"] = min(best["heap"], between - began)
        best["front"] = min(best["front"], benchmark._timer() - between)

    benchmark.group = "front"
    benchmark.pedantic(both, rounds=100, warmup_rounds=5)  # type: ignore[no-untyped-call]
    figures.notes.append(
        f"{name}: the first {FRONT} of 10,000 {best['front'] * 1e6:.0f} us, "
        f"a heap of them {best['heap'] * 1e6:.0f} us"
    )
    assert best["front"] <= best["heap"]


@pytest.mark.parametrize("name", names())
def test_step(benchmark: BenchmarkFixture, figures: Figures, name: str) -> None:
    """Tell a step with 256 running, of 256 agents."""
    made = filled(name, RUNNING)
    running = [made.pop() for _ in range(RUNNING)]
    step = Step(decode={one.id: 1 for one in running if one is not None})
    benchmark.group = "serve"
    benchmark.pedantic(  # type: ignore[no-untyped-call]
        made.serve, (step,), rounds=300, warmup_rounds=10
    )
    assert benchmark.stats is not None
    seconds = benchmark.stats.stats.min
    figures.notes.append(f"{name}: serve of {RUNNING} running {seconds * 1e6:.0f} us")
    assert seconds <= STEP_SECONDS
