"""What vLLM's scheduler asks of its queue, answered by the policy."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from justitia.engines.serving import Agents
from justitia.engines.serving.claims import FIELDS
from justitia.engines.serving.settings import ServingError
from justitia.policy import Policy, create, names
from tests.engines.policies import OneByOne
from tests.engines.vllm.real import (
    Driver,
    LoRARequest,
    Request,
    RequestStatus,
    make_config,
    make_scheduler,
    scheduler_of,
)


def driven(model: Path, policy: str | Policy = "justitia", **knobs: object) -> Driver:
    """Return a driver of our scheduler with a policy."""
    if isinstance(policy, str):
        return Driver(make_scheduler(model, justitia={"policy": policy}, **knobs))
    driver = Driver(make_scheduler(model, **knobs))
    driver.ours.use(Agents(policy, now=lambda: 0.0))
    return driver


def line(driver: Driver) -> list[str]:
    return [request.request_id for request in driver.ours.waiting]


def service(driver: Driver, agent: str) -> object:
    """Return what the policy thinks that an agent was given."""
    account = driver.ours.agents.policy._accounts[agent]  # type: ignore[attr-defined]
    return getattr(account, "counter", account.service)


# --- peek and pop ---------------------------------------------------------------------


@pytest.mark.parametrize("policy", names())
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    sizes=st.lists(
        st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(0, 3)),
        max_size=12,
    )
)
def test_peek_pop_and_iteration_agree(
    model: Path, policy: str, sizes: list[tuple[int, int, int]]
) -> None:
    driver = driven(model, policy)
    for place, (prompt, decode, agent) in enumerate(sizes):
        driver.add(f"r{place}", prompt, decode, claim={"agent": f"a{agent}"})
    queue = driver.ours.waiting
    told = line(driver)
    assert len(queue) == len(told) == len(sizes)
    taken = []
    while queue:
        head = queue.peek_request()
        assert queue.pop_request() is head
        taken.append(head.request_id)
    assert taken == told
    assert len(queue) == 0
    with pytest.raises(IndexError, match="nobody may start"):
        queue.peek_request()
    with pytest.raises(IndexError, match="nobody may start"):
        queue.pop_request()


def test_a_policy_that_holds_all_back_stops_nothing(model: Path) -> None:
    """It has nobody at the head while somebody waits: the queue is empty so far."""
    driver = driven(model, OneByOne())
    for place in range(4):
        driver.add(f"r{place}", 10, 5)
    driver.advance()
    assert len(driver.ours.waiting) == 3
    assert not driver.ours.waiting
    driver.run()
    assert list(driver.starts.values()) == [0, 5, 10, 15]


# --- requests that are not ready ------------------------------------------------------


@pytest.mark.parametrize("policy", ["vtc", "justitia", "srjf", "fcfs"])
def test_who_is_not_ready_is_passed_over_and_not_charged(
    model: Path, policy: str
) -> None:
    """Its grammar is compiled for three steps; vLLM takes it out and puts it back."""
    driver = driven(model, policy)
    driver.add("schema", 20, 4, claim={"agent": "a"}, unready=True)
    driver.add("plain", 30, 40, claim={"agent": "b"})
    before = service(driver, "agent/a")
    for _ in range(3):
        driver.advance()
        assert line(driver) == ["schema"]
        assert service(driver, "agent/a") == before
    assert driver.starts == {"plain": 0}
    driver.ready("schema")
    driver.advance()
    assert driver.starts["schema"] == 3
    assert service(driver, "agent/a") != before or policy == "fcfs"
    driver.run()
    assert driver.finishes["schema"] == 6
    assert driver.preemptions == 0


def test_many_that_are_not_ready_keep_their_order(model: Path) -> None:
    """vLLM puts them back in reverse; the place in line is the policy's."""
    driver = driven(model, "fcfs")
    for place in range(5):
        driver.add(f"r{place}", 10, 2, unready=place != 2)
    for _ in range(3):
        driver.advance()
        assert line(driver) == ["r0", "r1", "r3", "r4"]
    for place in (0, 1, 3, 4):
        driver.ready(f"r{place}")
    driver.run()
    assert list(driver.finishes) == ["r2", "r0", "r1", "r3", "r4"]


def test_one_that_is_not_ready_and_goes_away_leaves_nothing(model: Path) -> None:
    driver = driven(model, "vtc")
    driver.add("schema", 20, 4, claim={"agent": "a"}, unready=True)
    driver.advance()
    driver.abort("schema")
    driver.add("next", 5, 2, claim={"agent": "b"})
    driver.run()
    assert driver.finishes == {"next": 1}
    assert not driver.live()


def test_b28_who_lacks_a_lora_slot_is_next_when_one_is_free(model: Path) -> None:
    """One slot, and requests of the LoRA that has it come in without end."""
    from vllm.config import LoRAConfig

    config = make_config(model, seqs=4)
    config.lora_config = LoRAConfig(max_loras=1, max_lora_rank=8)
    driver = Driver(scheduler_of(config))
    one, two = (LoRARequest(name, id, name) for id, name in ((1, "one"), (2, "two")))
    sent = 0

    def send() -> None:
        nonlocal sent
        claim = {"agent": f"a{sent}", "cost": 1_000}
        driver.add(f"r{sent}", 10, 5 + sent % 7, claim=claim, lora=one)
        sent += 1

    for _ in range(6):
        send()
    driver.advance()
    driver.add("other", 10, 5, claim={"agent": "b", "cost": 1}, lora=two)
    for _ in range(20):
        send()
        driver.advance()
    assert driver.starts["other"] == max(driver.finishes[f"r{n}"] for n in range(4)) + 1
    assert [n for n in range(4, sent) if f"r{n}" not in driver.starts]
    driver.run()
    assert len(driver.finishes) == sent + 1


# --- ends -----------------------------------------------------------------------------


def test_absent_requests_can_be_removed(model: Path) -> None:
    """vLLM removes from all queues at once, wherever a request is."""
    driver = driven(model)
    request = driver.add("r", 10, 3)
    queue = driver.ours.waiting
    driver.advance()
    queue.remove_request(request)
    queue.remove_requests([request, request])
    driver.run()
    queue.forget("r")
    queue.forget("never seen")
    assert driver.finishes == {"r": 2}


@pytest.mark.parametrize("steps", [0, 1, 3])
def test_b24_all_children_of_a_request_stop_waiting_or_running(
    model: Path, steps: int
) -> None:
    """n=4 is four requests that say the same; two are running, two wait."""
    driver = driven(model, seqs=2)
    free = driver.scheduler.kv_cache_manager.block_pool.get_num_free_blocks()
    for cycle in range(20):
        children = [f"{child}_r{cycle}" for child in range(4)]
        for child in children:
            driver.add(child, 40, 30, claim={"agent": "a", "inferences": 4})
        for _ in range(steps):
            driver.advance()
        driver.abort(*children)
        assert not driver.live()
        assert len(driver.ours.waiting) == len(driver.ours.agents) == 0
        driver.advance()
        assert (
            driver.scheduler.kv_cache_manager.block_pool.get_num_free_blocks() == free
        )


def test_b25_ending_one_ends_no_other(model: Path) -> None:
    driver = driven(model)
    for name in ("a1", "a10", "a11"):
        driver.add(name, 10, 5, claim={"agent": name})
    driver.abort("a1", "", "no such")
    assert line(driver) == ["a10", "a11"]
    driver.run()
    assert set(driver.finishes) == {"a10", "a11"}


# --- preemption -----------------------------------------------------------------------


def test_b19_who_was_preempted_comes_back_ahead_of_equals(model: Path) -> None:
    """Of one agent and one tag: it started before those behind it in line."""
    driver = driven(model, blocks=9, seqs=4)
    for place in range(8):
        driver.add(f"r{place}", 32, 64, claim={"agent": "a", "cost": 10**6})
    while not driver.preemptions:
        driver.advance()
    assert [r.request_id for r in driver.live() if r.num_preemptions] == ["r2", "r3"]
    assert line(driver) == ["r2", "r3", "r4", "r5", "r6", "r7"]
    driver.run()
    assert list(driver.finishes) == [f"r{place}" for place in range(8)]


def test_the_victim_is_the_policys(model: Path) -> None:
    """Of three that run the one of the largest tag goes, though it started first."""
    driver = driven(model, blocks=9)
    driver.add("large", 32, 100, claim={"agent": "large", "cost": 10**6})
    driver.advance()
    driver.add("small", 32, 100, claim={"agent": "small", "cost": 10})
    driver.add("middle", 32, 100, claim={"agent": "middle", "cost": 1000})
    while not driver.preemptions:
        driver.advance()
    assert line(driver) == ["large"]
    driver.run()
    assert list(driver.finishes) == ["small", "middle", "large"]


def test_b19_a_served_token_is_counted_once(model: Path) -> None:
    """Delivered is what was produced, however often it was computed."""
    driver = driven(model, "srjf", blocks=9)
    told: list[int] = []

    class Counting:
        def served(self, step: object) -> None:
            told.append(sum(step.decode.values()))  # type: ignore[attr-defined]

        def requeued(self, request_id: str) -> None:
            pass

    driver.ours.agents.witness = Counting()
    for place in range(6):
        driver.add(f"r{place}", 32, 90, claim={"agent": f"a{place}"})
    driver.run()
    assert driver.preemptions > 0
    assert sum(told) == 6 * 90


# --- agents that are dismissed --------------------------------------------------------


def test_a_dismissed_agent_is_in_nobodys_way(model: Path) -> None:
    """Its requests go on until vLLM aborts them; they give way before all others."""
    driver = driven(model, blocks=9, seqs=4)
    for place in range(6):
        driver.add(f"gone{place}", 32, 90, claim={"agent": "gone", "cost": 1})
    driver.advance()
    driver.add("other", 32, 90, claim={"agent": "other", "cost": 10**9})
    driver.advance()
    gone = driver.ours.agents.dismiss("gone")
    assert gone is not None
    assert sorted(gone) == [f"gone{place}" for place in range(6)]
    while not driver.preemptions:
        driver.advance()
    assert "other" not in {r.request_id for r in driver.live() if r.num_preemptions}
    assert len(driver.ours.waiting) > 0
    driver.abort(*gone)
    driver.run()
    assert "other" in driver.finishes
    assert not driver.live()
    assert len(driver.ours.waiting) == 0


# --- streams that pause ---------------------------------------------------------------


def test_a_stream_that_pauses_goes_on_where_it_was(model: Path) -> None:
    """It waits with its memory, in another queue of vLLM's, and starts from there."""
    driver = driven(model)

    def part(resumable: bool) -> Request:
        request = Request(
            request_id="stream",
            prompt_token_ids=list(range(3, 43)),
            sampling_params=_params(),
            pooling_params=None,
            resumable=resumable,
        )
        driver._ends["stream"] = 3
        driver.scheduler.add_request(request)
        return request

    first = part(True)
    while first.status != RequestStatus.WAITING_FOR_STREAMING_REQ:
        assert driver.advance()
    driver.add("other", 10, 5)
    driver.advance()
    assert driver.starts["other"] == 3
    part(True)
    while first.status != RequestStatus.WAITING_FOR_STREAMING_REQ:
        assert driver.advance()
    part(False)
    driver.run()
    assert not driver.live()
    assert len(driver.ours.agents) == 0


def _params() -> object:
    from vllm import SamplingParams

    params = SamplingParams(max_tokens=50, stop_token_ids=[1], ignore_eos=True)
    params.update_from_generation_config({}, 1)
    return params


# --- what it says at its start --------------------------------------------------------


def test_vllms_own_priority_mode_is_refused(model: Path) -> None:
    """It would be ignored: the order is the policy's (B17)."""
    config = make_config(model, native="priority")
    config.scheduler_config.scheduler_cls = "justitia.engines.vllm.Scheduler"
    with pytest.raises(
        ServingError, match="--scheduling-policy priority has no effect"
    ):
        scheduler_of(config)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"policy": "none"}, "policy: must be one of"),
        ({"admission": "all"}, "admission: must be one of"),
        ({"options": {"tags": "all"}}, "options: tags must be one of"),
        ({"polcy": "fcfs"}, "polcy"),
    ],
)
def test_a_setting_that_cannot_be_used_stops_vllm(
    model: Path, settings: dict[str, object], message: str
) -> None:
    with pytest.raises(ServingError, match=message):
        make_scheduler(model, justitia=settings)


# --- hostile requests -----------------------------------------------------------------


HOSTILE = [
    *[float("nan"), float("inf"), 2**63, -1, 0, "12", [], True, {}],
    *["x" * 10_000, "a\nb", "\ud800"],
]


def hostile() -> Iterator[dict[str, object]]:
    for value in HOSTILE:
        yield from ({field: value} for field in FIELDS)
        yield {"stage_costs": value, "cost": 5, "agent": "s"}
    yield {"agent": "s", "cost": 1e150, "stage_costs": [1e150, 1e150], "stage": 1}
    yield {"agent": "s", "stage": 999, "weight": 1e-150}


@pytest.mark.parametrize("policy", [*names(), "justitia stage"])
def test_no_claim_stops_a_request(model: Path, policy: str) -> None:
    name, _, tags = policy.partition(" ")
    chosen = create(name, tags=tags) if tags else create(name)
    driver = driven(model, chosen)
    sent = 0
    for claim in hostile():
        driver.add(f"r{sent}", 5, 3, claim=claim)
        sent += 1
    driver.run()
    assert len(driver.finishes) == sent
    assert sum(driver.ours.agents.faults.values()) > sent / 2
