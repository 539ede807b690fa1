"""The table "A result to meet", to the step, on vLLM's real scheduler.

31 usable blocks of 32 tokens. A: 10 requests of 64 + 192 tokens at step 0; B: 6 of
64 + 96 at step 5; C: 3 of 32 + 32 at step 10. The table counts steps from 1, we from 0.
"""

from pathlib import Path

import pytest

from justitia.policy import KVTokenTime
from tests.engines.vllm.real import Driver, make_scheduler

AGENTS = {"A": (10, 64, 192, 0), "B": (6, 64, 96, 5), "C": (3, 32, 32, 10)}
"""Requests, prompt, decode, the step of arrival."""
TAGS = {"C": 0, "B": 1, "A": 2}
"""Priorities in the order of the agents' tags, which is that of their costs."""


def run(model: Path, *, priority: bool = False, **knobs: object) -> Driver:
    driver = Driver(make_scheduler(model, **knobs))

    def send(agent: str) -> None:
        requests, prompt, decode, _ = AGENTS[agent]
        cost = requests * KVTokenTime()(prompt, decode)
        for number in range(requests):
            driver.add(
                f"{agent}{number}",
                prompt,
                decode,
                priority=TAGS[agent] if priority else 0,
                claim={"agent": agent, "cost": cost, "inferences": requests},
            )

    at = {step: lambda a=agent: send(a) for agent, (*_, step) in AGENTS.items()}
    return driver.run(at)


def ends(driver: Driver) -> dict[str, int]:
    """Return the step in which each agent completed."""
    last: dict[str, int] = {}
    for name, step in driver.finishes.items():
        last[name[0]] = max(last.get(name[0], 0), step)
    return last


def test_row_1_native_fcfs(model: Path) -> None:
    driver = run(model, native="fcfs")
    assert ends(driver) == {"C": 443, "B": 477, "A": 412}
    assert driver.preemptions == 15


def test_row_1_our_queue_in_fcfs_order_is_native_fcfs_in_every_step(
    model: Path,
) -> None:
    """The same requests, with as many tokens, in the same place, step by step."""
    native = run(model, native="fcfs")
    ours = run(model, justitia={"policy": "fcfs"})
    assert [list(batch.items()) for batch in ours.batches] == [
        list(batch.items()) for batch in native.batches
    ]
    assert (ends(ours), ours.preemptions) == (ends(native), 15)


def test_row_2_native_priority_with_priority_tag(model: Path) -> None:
    driver = run(model, native="priority", priority=True)
    assert ends(driver) == {"C": 43, "B": 173, "A": 523}
    assert driver.preemptions == 16


@pytest.mark.parametrize("tags", ["agent", "stage"])
def test_row_2_the_tag_order_with_the_policys_victims(model: Path, tags: str) -> None:
    driver = run(model, justitia={"policy": "justitia", "options": {"tags": tags}})
    assert ends(driver) == {"C": 43, "B": 173, "A": 523}
    assert driver.preemptions == 16


def test_row_4_the_tag_order_with_full_reservation(model: Path) -> None:
    """Row 3, the newest as the victim, is what the policy's victims replace."""
    driver = run(model, justitia={"policy": "justitia", "admission": "max"})
    assert ends(driver) == {"C": 105, "B": 287, "A": 772}
    assert driver.preemptions == 0


def test_row_4_needs_no_more_than_it_is_told(model: Path) -> None:
    """With exact predictions `predicted` sets aside what `max` does."""
    driver = run(model, justitia={"policy": "justitia", "admission": "predicted"})
    assert ends(driver) == {"C": 105, "B": 287, "A": 772}


def test_what_is_written_in_a_request_beside_our_names_changes_nothing(
    model: Path,
) -> None:
    """A priority from outside is not the policy's; see docs/vllm.md."""
    assert ends(run(model, priority=True, justitia={"policy": "justitia"})) == {
        "C": 43,
        "B": 173,
        "A": 523,
    }
