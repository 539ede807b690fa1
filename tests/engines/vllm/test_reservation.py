"""Memory set aside before a request starts, by vLLM's own count of its blocks."""

import gc
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from justitia.policy import names
from tests.engines.vllm.real import Driver, make_scheduler

BLOCKS = 65


def driven(model: Path, admission: str, **knobs: object) -> Driver:
    knobs.setdefault("blocks", BLOCKS)
    settings = {"admission": admission, "policy": knobs.pop("policy", "justitia")}
    scheduler = make_scheduler(model, justitia=settings, **knobs)
    return Driver(scheduler, depth=1 + bool(knobs.get("asynchronous")), check=False)


def feed(driver: Driver, requests: Iterator[tuple[object, int, int, int]]) -> int:
    """Keep a few dozen requests in the engine until all were sent; return how many."""
    sent = 0
    for prompt, decode, longest, predicted in requests:
        claim = {"agent": f"a{sent // 4}", "inferences": 4, "tokens": predicted}
        driver.add(f"r{sent}", prompt, decode, longest=longest, claim=claim)  # type: ignore[arg-type]
        sent += 1
        while len(driver.live()) >= 60:
            driver.advance()
    driver.run()
    return sent


# --- max ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("count", "prefix", "asynchronous"),
    [(10_000, True, False), (1_000, False, False), (1_000, True, True)],
)
def test_max_never_preempts_in_ten_thousand_requests(
    model: Path, count: int, prefix: bool, asynchronous: bool
) -> None:
    """B20. Prompts share prefixes of up to 3 blocks; some are longer than a step."""
    rng = Random(7)
    shared = [[rng.randint(3, 900) for _ in range(96)] for _ in range(6)]

    def requests() -> Iterator[tuple[object, int, int, int]]:
        for _ in range(count):
            own = [rng.randint(3, 900) for _ in range(rng.choice((1, 5, 20, 60, 300)))]
            longest = rng.choice((1, 3, 5, 10, 20))
            start = rng.choice(shared)[: rng.choice((0, 32, 50, 96))]
            yield start + own, rng.randint(1, longest), longest, longest

    driver = driven(model, "max", prefix=prefix, asynchronous=asynchronous, batched=256)
    assert feed(driver, requests()) == len(driver.finishes) == count
    assert driver.preemptions == 0
    together = max(map(len, driver.batches))
    assert together > 8  # and it does not just run them one by one


@pytest.mark.parametrize("policy", names())
def test_max_never_preempts_under_any_policy(model: Path, policy: str) -> None:
    rng = Random(3)
    driver = driven(model, "max", blocks=17, policy=policy)
    requests = ((rng.randint(1, 200), d, d, d) for d in [60, 5, 30, 90] * 20)
    assert feed(driver, requests) == len(driver.finishes) == 80
    assert driver.preemptions == 0


def test_prefixes_that_are_shared_are_set_aside_once(model: Path) -> None:
    """16 blocks: 4 shared by all, 1 more for each; without sharing 3 would run."""
    prompt = list(range(3, 3 + 128))
    driver = driven(model, "max", blocks=17, prefix=True)
    driver.add("first", [*prompt, 5], 31)
    driver.advance()
    for place in range(5):
        driver.add(f"r{place}", [*prompt, place + 200], 31)
    driver.advance()
    assert len(driver.batches[-1]) == 6
    driver.run()
    assert driver.preemptions == 0

    driver = driven(model, "max", blocks=17, prefix=False)
    for place in range(6):
        driver.add(f"r{place}", [*prompt, place + 200], 31)
    driver.advance()
    assert len(driver.batches[-1]) == 3


def test_a_cached_prefix_that_is_free_is_counted_as_taken(model: Path) -> None:
    """Its blocks are among the free ones until somebody holds them again."""
    prompt = list(range(3, 3 + 128))
    driver = driven(model, "max", blocks=9, prefix=True)
    driver.add("before", prompt, 1)
    driver.run()
    driver.add("other", 97, 30)  # 4 of 8
    driver.advance()
    driver.add("again", [*prompt, 9, 9], 31)  # 4 that are free, and 2 more
    driver.advance()
    assert list(driver.batches[-1]) == ["other"]
    driver.run()
    assert driver.preemptions == 0


def test_b21_what_may_grow_to_the_whole_cache_runs_alone(model: Path) -> None:
    driver = driven(model, "max", blocks=17)
    driver.add("whole", 256, 256)
    driver.add("small", 10, 10)
    driver.run()
    assert driver.starts == {"small": 0, "whole": 10}
    assert driver.finishes == {"small": 9, "whole": 10 + 255}


def test_a_longest_output_beyond_the_context_is_the_context(model: Path) -> None:
    """Else nothing would ever run beside it."""
    driver = driven(model, "max", blocks=33, context=256)
    for place in range(4):
        driver.add(f"r{place}", 56, 5, longest=10**9)
    driver.advance()
    assert len(driver.batches[0]) == 4
    driver.run()
    assert driver.ours.agents.faults.total() == 0


# --- less than max --------------------------------------------------------------------


@pytest.mark.parametrize("prefix", [False, True])
def test_predictions_that_are_too_small_are_no_disaster(
    model: Path, prefix: bool
) -> None:
    """Running requests do give way then, and all of them end."""
    rng = Random(5)
    driver = driven(model, "predicted", prefix=prefix, blocks=33)
    decodes = [rng.randint(20, 120) for _ in range(300)]
    requests = ((rng.randint(1, 90), d, d, 1) for d in decodes)
    assert feed(driver, requests) == len(driver.finishes) == 300
    assert driver.preemptions > 30


def test_the_more_is_set_aside_the_less_often_somebody_gives_way(model: Path) -> None:
    found = {}
    for admission in ("none", "prompt", "predicted", "max"):
        rng = Random(11)
        driver = driven(model, admission, blocks=33)
        decodes = [rng.randint(20, 120) for _ in range(150)]
        requests = ((rng.randint(1, 90), d, d, max(1, d // 2)) for d in decodes)
        assert feed(driver, requests) == len(driver.finishes) == 150
        found[admission] = driver.preemptions
    # All of a prompt must have room in vLLM anyway (scheduler_reserve_full_isl).
    assert found["none"] == found["prompt"] > found["predicted"] > found["max"] == 0


def test_the_head_that_has_no_room_is_told(model: Path) -> None:
    told: list[str] = []
    driver = driven(model, "max", blocks=9)

    def refuse(inference_id: str) -> None:
        told.append(inference_id)

    driver.ours.agents.policy.refuse = refuse  # type: ignore[method-assign]
    driver.add("runs", 100, 100)
    driver.add("waits", 100, 3)
    driver.advance()
    driver.advance()
    assert told in (["runs"] * 2, ["waits"] * 2)
    driver.run()


# --- nothing is left ------------------------------------------------------------------


def ours() -> Counter[str]:
    """Count the objects of our own types, by type."""
    gc.collect()
    return Counter(
        type(one).__qualname__
        for one in gc.get_objects()
        if str(type(one).__module__).startswith("justitia.")
    )


def test_ten_thousand_agents_leave_no_growth(model: Path) -> None:
    """And a hundred thousand in tests/engines/serving, without vLLM."""
    driver = driven(model, "max", blocks=513, seqs=256)

    def live(first: int, count: int) -> None:
        for number in range(first, first + count):
            claim = {"agent": f"a{number}", "inferences": 1, "kind": f"k{number}"}
            driver.add(f"r{number}", 1, 1, claim=claim)
            if number % 250 == 249:
                driver.run()
        driver.batches.clear()
        driver.starts.clear()
        driver.finishes.clear()
        driver._ends.clear()

    live(0, 1_000)
    before = ours()
    live(1_000, 10_000)
    assert ours().total() <= before.total() + 20  # entries that a heap drops later
    assert len(driver.ours.agents) == 0
    assert not driver.ours.waiting._known


def test_b24_a_thousand_aborted_requests_leave_nothing(model: Path) -> None:
    """Aborted while they wait, while their prompt is computed, while they decode."""
    driver = driven(model, "max", batched=64)
    pool = driver.scheduler.kv_cache_manager.block_pool

    def abort(first: int, count: int) -> None:
        for number in range(first, first + count):
            claim = {"agent": f"a{number}", "cost": 5_000}
            names = [f"{child}_r{number}" for child in range(4)]
            for name in names:
                driver.add(name, 100, 50, claim=claim)
            for _ in range(number % 7):
                driver.advance()
            driver.abort(*names[: number % 5])
            driver.advance()
            driver.ours.agents.dismiss(f"a{number}")
            driver.abort(*names)
        driver.run()
        driver.starts.clear()

    free = pool.get_num_free_blocks()
    abort(0, 10)
    before = ours()
    abort(10, 250)  # with 4 requests each
    assert not driver.live()
    assert pool.get_num_free_blocks() == free
    assert ours().total() <= before.total() + 20  # entries that a heap drops later
