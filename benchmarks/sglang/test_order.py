"""What it costs an iteration to have SGLang's queue in the policy's order.

Needs SGLang: ``python -m pytest benchmarks/sglang/test_order.py -s``.
"""

from importlib.util import find_spec
from statistics import mean, median
from time import perf_counter

import pytest

from justitia.engines.serving import Agents, Claim
from justitia.engines.sglang.surroundings import on_cpu, use_cpu
from justitia.policy import create

if find_spec("sglang") is not None and on_cpu():
    use_cpu()  # before anything of it is imported
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(
        find_spec("sglang") is None, reason="SGLang is not installed here"
    ),
]

MOST = {1_000: 0.1, 10_000: 0.5}
"""Milliseconds of an iteration, by how many wait."""
ITERATIONS = 300


class Req:
    """A request in a queue; SGLang's, too, are compared by identity."""

    def __init__(self, rid: str) -> None:
        self.rid = rid


def timed(count: int, *, arrivals: int) -> list[float]:
    """Return the milliseconds of each iteration with so many in the queue.

    In each, so many requests arrive, and as many are admitted; 32 run.
    """
    from justitia.engines.sglang.order import Front  # noqa: PLC0415 - imports SGLang

    agents = Agents(create("justitia"), now=lambda: 0.0, linger=60)
    live: dict[str, Req] = {}
    queue: list[Req] = []

    def add(number: int) -> None:
        req = live[f"{number}"] = Req(f"{number}")
        claim = Claim(
            agent=f"{number * 7 % (count // 10)}", cost=1e3 + number * 13 % 997
        )
        agents.submit(req.rid, claim, 100, 100)
        queue.append(req)

    for number in range(count):
        add(number)
    front = Front(agents, live.__getitem__, ())
    running: list[Req] = []
    took = []
    for step in range(ITERATIONS):
        for number in range(arrivals):
            add(count + step * arrivals + number)
        began = perf_counter()
        front.place(queue)
        admitted: list[Req] = []
        for req in queue:
            assert front.ask(req, queue)
            if len(admitted) == arrivals:
                break
            admitted.append(req)
        took.append(1e3 * (perf_counter() - began))
        gone = set(admitted)
        queue[:] = [req for req in queue if req not in gone]  # as SGLang does
        for req in admitted:
            agents.start(req.rid)
            front.started()
        running += admitted
        agents.serve({}, {req.rid: 1 for req in running})
        for req in running[:-32]:
            agents.finish(req.rid)
        del running[:-32]
    return took


@pytest.mark.parametrize("arrivals", [0, 2])
@pytest.mark.parametrize("count", MOST)
def test_an_iteration(count: int, arrivals: int) -> None:
    took = timed(count, arrivals=arrivals)
    print(
        f"\n{count:,} waiting, {arrivals} arrive and start: "
        f"median {median(took):.4f}, mean {mean(took):.4f}, max {max(took):.3f} ms"
    )
    assert median(took) < MOST[count]
