"""The delay bound for delivered service, in a small closed loop (Theorem B).

S(s) is what the engine has delivered when inference q of agent j starts in step s, G_j
the service at which the fair reference finishes j, and I what was in flight after the
last earlier step in which anything with a larger (tag, arrival) started. Then
S(s) <= G_j + I - c_q, whatever the memory, the batches and the speed. For an agent with
a tag for each stage, a stage takes the place of j.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

import pytest
from hypothesis import given, target
from hypothesis import strategies as st

from justitia.policy import Agent, Inference, Policy, Step, create
from justitia.policy.exact import Number
from justitia.proofs.reference import FairReference
from tests.policy.models import kv
from tests.policy.strategies import weights


@dataclass(frozen=True)
class Job:
    """An agent as it really is: when it comes, and its stages of (p, d)."""

    arrival: int
    stages: tuple[tuple[tuple[int, int], ...], ...]
    weight: Number = 1


@dataclass
class Run:
    """An inference on the toy engine."""

    id: str
    stage: int
    place: tuple[Fraction, int]  # its tag and the number of its agent
    p: int
    d: int
    left_to_prefill: int
    produced: int = 0
    started: bool = False

    @property
    def work(self) -> int:
        """Delivered so far."""
        return kv(self.p, self.produced) if self.produced else 0


@dataclass
class Start:
    """A first start: what had been delivered, and what was in flight since t0."""

    run: Run
    delivered: int
    in_flight: int


@dataclass
class Loop:
    """A toy engine in closed loop with a policy and the fair reference.

    It starts the head of the line while it has `slots` and `admits` says so; one
    refusal ends the step's admission. A prompt is computed in chunks of `chunk`.
    `holds` says which of the running make no progress in a step, `preempts` when the
    first of the victims is sent back, to compute its prompt and its tokens again.
    """

    policy: Policy
    jobs: list[Job]
    by_stage: bool = False
    slots: int = 10**6
    admits: Callable[[int], bool] = lambda n: True
    holds: Callable[[int], bool] = lambda n: False
    preempts: Callable[[int], bool] = lambda n: False
    chunk: int = 100
    fair: FairReference = field(default_factory=FairReference)
    delivered: int = 0
    live: dict[str, Run] = field(default_factory=dict)
    running: dict[str, Run] = field(default_factory=dict)
    starts: list[Start] = field(default_factory=list)
    log: list[tuple[list[tuple[Fraction, int]], int]] = field(default_factory=list)
    coins: int = 0

    def run(self) -> list[tuple[Start, Fraction]]:
        """Run to the end; return each first start with the service that bounds it."""
        step = 0
        while step <= max(job.arrival for job in self.jobs) or self.live:
            self.admit_agents(step)
            self.start_some()
            self.serve()
            step += 1
            assert step < 10_000
        self.fair._check()
        assert self.fair.lost == 0
        bounds = []
        for start in self.starts:
            finish = self.fair.reached(start.run.place[0])
            assert finish is not None
            cost = kv(start.run.p, start.run.d)
            bounds.append((start, finish + start.in_flight - cost))
        return bounds

    def flip(self, coin: Callable[[int], bool]) -> bool:
        self.coins += 1
        return coin(self.coins)

    def admit_agents(self, step: int) -> None:
        for number, job in enumerate(self.jobs):
            if job.arrival == step:
                name = f"a{number}"
                stages = [sum(kv(p, d) for p, d in stage) for stage in job.stages]
                self.policy.arrive(
                    Agent(name, sum(stages), job.weight, stage_costs=tuple(stages))
                )
                self.ready(number, 0)

    def ready(self, number: int, stage: int) -> None:
        """Put a stage in line; tell the reference of it, or at first of all of them."""
        job, name = self.jobs[number], f"a{number}"
        costs = [sum(kv(p, d) for p, d in stage) for stage in job.stages]
        if not stage:
            first = costs[0] if self.by_stage else sum(costs)
            self.fair.arrive(name, first, job.weight)
        elif self.by_stage:
            self.fair.revise(name, sum(costs[: stage + 1]))
        seq = [share.agent for share in self.fair.shares].index(name)
        place = (self.fair.finish_level(name), seq)
        for index, (p, d) in enumerate(job.stages[stage]):
            item = f"{name}/{stage}.{index}"
            self.live[item] = Run(item, stage, place, p, d, p)
            self.policy.submit(Inference(item, name, p, d, stage))

    def start_some(self) -> None:
        if self.running and self.flip(self.preempts):
            gone = next(self.policy.victims()).id
            self.policy.requeue(gone)
            run = self.running.pop(gone)
            run.left_to_prefill = run.p + run.produced
        places = []
        while (head := self.policy.peek()) is not None:
            fits = len(self.running) < self.slots and self.flip(self.admits)
            if self.running and not fits:
                self.policy.refuse(head.id)
                break
            self.policy.start(head.id)
            run = self.running[head.id] = self.live[head.id]
            places.append(run.place)
            if not run.started:
                run.started = True
                flying = (
                    flying
                    for before, flying in reversed(self.log)
                    if any(place > run.place for place in before)
                )
                self.starts.append(Start(run, self.delivered, next(flying, 0)))
        self.log.append((places, 0))

    def serve(self) -> None:
        prefill, decode, got = {}, {}, 0
        for run in self.running.values():
            if self.flip(self.holds):
                continue
            if run.left_to_prefill > self.chunk:
                prefill[run.id] = self.chunk
                run.left_to_prefill -= self.chunk
                continue
            prefill[run.id], run.left_to_prefill = run.left_to_prefill, 0
            decode[run.id] = 1
            before, run.produced = run.work, run.produced + 1
            got += run.work - before
        self.policy.serve(Step(prefill, decode))
        self.policy._check()
        self.fair.serve(got)
        self.delivered += got
        flying = sum(kv(r.p, r.d) - r.work for r in self.running.values())
        self.log[-1] = (self.log[-1][0], flying)
        for run in [r for r in self.running.values() if r.produced == r.d]:
            self.policy.finish(run.id)
            del self.running[run.id], self.live[run.id]
            number = int(run.id[1:].partition("/")[0])
            if not any(r.id.startswith(f"a{number}/") for r in self.live.values()):
                if run.stage + 1 < len(self.jobs[number].stages):
                    self.ready(number, run.stage + 1)
                else:
                    self.policy.leave(f"a{number}")


sizes = st.tuples(st.integers(0, 5), st.integers(1, 5))
stages = st.lists(sizes, min_size=1, max_size=3).map(tuple)


def jobs(most_stages: int) -> st.SearchStrategy[list[Job]]:
    return st.lists(
        st.builds(
            Job,
            st.integers(0, 12),
            st.lists(stages, min_size=1, max_size=most_stages).map(tuple),
            weights,
        ),
        min_size=1,
        max_size=6,
    )


def coin(seed: int, one_in: int) -> Callable[[int], bool]:
    """Return a coin that falls as `seed` says; the loop flips it with 1, 2, 3, …"""
    return lambda n: (seed * 2654435761 + n * n * 40503 + n * 9973) % 1009 % one_in == 0


@pytest.mark.property
@pytest.mark.parametrize("by_stage", [False, True], ids=["agent", "stage"])
@given(data=st.data(), seed=st.integers(0, 10**6), chunk=st.integers(1, 6))
def test_theorem_B_bounds_every_first_start(
    by_stage: bool, data: st.DataObject, seed: int, chunk: int
) -> None:
    loop = Loop(
        create("justitia", tags="stage" if by_stage else "agent"),
        data.draw(jobs(3 if by_stage else 1)),
        by_stage,
        admits=coin(seed, 2),
        holds=coin(seed + 1, 4),
        preempts=coin(seed + 2, 5),
        chunk=chunk,
    )
    bounds = loop.run()
    assert len(bounds) == sum(len(s) for job in loop.jobs for s in job.stages)
    slack = min(bound - start.delivered for start, bound in bounds)
    target(-float(slack), label="lag beyond the bound")
    assert slack >= 0


@pytest.mark.parametrize("weight", [1, 10, 1000])
def test_theorem_B_leaves_nothing_to_spare(weight: int) -> None:
    """A mouse behind an elephant, one at a time: as close to the bound as one likes."""
    elephant = Job(0, (((0, 3),),))
    mouse = Job(1, (((0, 1),),), weight)
    loop = Loop(create("justitia"), [elephant, mouse], slots=1)
    first, second = [bound - start.delivered for start, bound in loop.run()]
    assert first == 1
    assert second == Fraction(1, weight)


def test_the_check_of_the_bound_can_fail() -> None:
    """First come, first served keeps no such bound."""
    elephant = Job(0, (((0, 10),) * 5,))
    mouse = Job(0, (((0, 1),),))
    loop = Loop(create("fcfs"), [elephant, mouse], slots=1)
    worst = max(start.delivered - bound for start, bound in loop.run())
    assert worst > 100


def test_theorem_B_needs_a_tag_for_each_stage() -> None:
    """With the paper's one tag for a chain of stages there is no such bound."""

    def worst(tags: str, length: int) -> Fraction:
        chain = Job(0, (((0, 1),),) * length)
        crowd = Job(0, (((100, 10),) * length,))
        by_stage = tags == "stage"
        loop = Loop(create("justitia", tags=tags), [chain, crowd], by_stage, slots=2)
        return max(start.delivered - bound for start, bound in loop.run())

    assert worst("stage", 80) <= 0
    assert worst("agent", 40) > 1_000
    assert worst("agent", 80) > 5_000  # and it grows
