"""Reservation in SGLang's own scheduler: nothing that runs ever gives way."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from justitia.engines.serving import ServingSettings
from justitia.engines.serving.settings import ServingError
from justitia.engines.sglang.plugin import install
from tests.engines.sglang.stepped import (
    Log,
    Script,
    Stepped,
    binding_of,
    check_admission,
    stepped,
)

MANY = 2_000


@pytest.mark.parametrize("admission", ["prompt", "predicted"])
def test_an_admission_that_sglang_cannot_do(admission: str) -> None:
    with pytest.raises(ServingError, match=f"none, max with SGLang.*not '{admission}'"):
        check_admission(admission)
    with pytest.raises(ServingError, match="admission"):
        install(ServingSettings(admission=admission))


class Reserving:
    """One way to have SGLang's scheduler."""

    def __init__(self, *, overlap: bool = False, **arguments: object) -> None:
        self.arguments = arguments
        self.overlap = overlap

    def __repr__(self) -> str:
        given = {**self.arguments, "overlap": self.overlap}
        return " ".join(f"{name}={value}" for name, value in given.items())


@pytest.fixture(
    scope="module",
    params=[
        Reserving(),
        Reserving(overlap=True, enable_mixed_chunk=True),
        Reserving(overlap=True, page_size=16),
        Reserving(disable_radix_cache=True),
        Reserving(disable_radix_cache=True, page_size=16),
    ],
    ids=repr,
)
def scheduler(model: Path, request: pytest.FixtureRequest) -> Iterator[Stepped]:
    """A scheduler that reserves, with 2,048 KV tokens."""
    wanted: Reserving = request.param
    with stepped(
        model,
        admission="max",
        overlap=wanted.overlap,
        max_total_tokens=2_048,
        **wanted.arguments,
    ) as made:
        yield made


def retractions(scheduler: Stepped, log: Log) -> int:
    assert binding_of(scheduler).settings.admission == "max"
    return sum(verb == "requeue" for verb, _ in log.told)


def test_nothing_is_retracted(scheduler: Stepped) -> None:
    """Many requests, that do not fit at once, and of which some end early."""
    log = Log()
    scheduler.use(log)
    many = MANY if scheduler.is_mixed_chunk else 300

    def script() -> Script:
        for n in range(many):
            rid = f"{n}"
            prompt, most = 1 + (7 * n) % 90, 1 + (n * n) % 110
            scheduler.send(rid, prompt, most, token=10 + n % 400, ignore=n % 3 == 0)
            if n % 5 == 0 and n % 3:
                scheduler.stopping.add(rid)
            while len(scheduler.waiting_queue) > 20:
                yield

    scheduler.play(script())
    assert len(scheduler.ended()) == many
    assert retractions(scheduler, log) == 0
    most = max(len(batch) for batch in scheduler.batches)
    assert most > 8  # and yet several run at once


def test_more_than_sglang_counts(scheduler: Stepped) -> None:
    """SGLang counts on no more than 4096 tokens of a request; with reservation on all.

    Of these two fit at once; with its clip at a tenth of that, all would be admitted.
    """
    from sglang.srt.managers import schedule_policy

    assert schedule_policy.CLIP_MAX_NEW_TOKENS > 10**9
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        for n in range(4):
            scheduler.send(f"{n}", 20, 900, token=10 + n)
        yield

    scheduler.play(script())
    assert retractions(scheduler, log) == 0
    assert max(len(batch) for batch in scheduler.batches) == 2


def test_one_that_needs_all(scheduler: Stepped) -> None:
    """SGLang cuts what a request may produce to what there is; alone it can have it."""
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        scheduler.send("first", 20, 40, token=9)
        yield
        yield
        scheduler.send("all", 40, 10_000)
        yield

    scheduler.play(script())
    assert log.decode["all"] > 1_900
    assert retractions(scheduler, log) == 0


@pytest.mark.parametrize("ignore", [False, True])
def test_nothing_waits_for_ever(scheduler: Stepped, ignore: bool) -> None:
    """Also what SGLang alone never starts, with all that are behind it.

    That is a prompt that leaves less than a page of the cache; and, where SGLang caches
    no prefixes, one that may produce all that there is and that no token ends.
    """
    log = Log()
    scheduler.use(log)
    prompts = [2_048 - left for left in (1, 6, 9, 16, 17, 18, 33, 2_028)]

    def script() -> Script:
        for n, prompt in enumerate(prompts):
            scheduler.send(f"{n}", prompt, 10**6, token=10 + n, ignore=ignore)
            scheduler.send(f"after {n}", 8, 4, token=40 + n)
        yield

    scheduler.play(script())
    assert len(scheduler.ended()) == 2 * len(prompts)
    assert all(log.decode[f"after {n}"] == 4 for n in range(len(prompts)))
    assert log.decode["7"] > 1_900
    assert retractions(scheduler, log) == 0
