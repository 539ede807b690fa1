"""Anything, at any moment, in SGLang's scheduler: all invariants, after every event.

A storm is a random script: requests of all sizes, with and without agents, that share
prompts or not; aborts of one, of all, and of ids that are nobody's; pauses of both
kinds; dismissals, timeouts, full queues, health checks, ends of text.
"""

import random
from collections.abc import Callable, Iterator
from functools import wraps
from pathlib import Path
from typing import Any

import pytest

from justitia.engines.serving import Agents
from justitia.policy import create, names
from tests.engines.sglang.stepped import (
    FOREVER,
    Script,
    Stepped,
    binding_of,
    stepped,
)

EVENTS = ("queued", "look", "run", "result", "retracted", "idle", "abort_exactly")
WAYS: dict[str, dict[str, Any]] = {
    "plain": {"overlap": False},
    "overlap": {"overlap": True},
    "mixed": {"overlap": True, "enable_mixed_chunk": True},
    "pages, all set aside": {"overlap": True, "admission": "max", "page_size": 16},
    "no radix cache, all set aside": {
        "overlap": False, "admission": "max", "disable_radix_cache": True,
        "page_size": 16,
    },
}  # fmt: skip
STORMS = 8


@pytest.fixture(scope="module", params=WAYS)
def scheduler(model: Path, request: pytest.FixtureRequest) -> Iterator[Stepped]:
    """A scheduler with 512 KV tokens, that checks itself after every event."""
    with stepped(model, **WAYS[request.param]) as made:
        binding = binding_of(made)
        for name in EVENTS:
            setattr(binding, name, checked(made, getattr(binding, name)))
        yield made


def checked(scheduler: Stepped, event: Callable[..., Any]) -> Callable[..., Any]:
    """Return a method of the binding's that asserts all invariants when it ends."""
    binding = binding_of(scheduler)

    @wraps(event)
    def check(*args: Any, **kwargs: Any) -> Any:
        told = event(*args, **kwargs)
        if len(scheduler.waiting_queue) == binding._queued:  # it knows of all aborts
            binding._check()
        else:
            binding.agents._check()
        return told

    return check


class Storm:
    """A script of one seed, and what must hold of it."""

    def __init__(self, scheduler: Stepped, seed: int) -> None:
        from sglang.srt.managers import io_struct

        self.scheduler = scheduler
        self.random = random.Random(seed)
        self.messages = io_struct
        self.sent: list[str] = []
        self.paused = 0
        self.retracting = False
        name = self.random.choice(names())
        linger = self.random.choice([0, 0.05, FOREVER])
        self.agents: Agents = scheduler.use(create(name), linger=linger)

    def script(self) -> Script:
        weighted = {
            self.send: 12, self.burst: 4, self.cancel: 8, self.cancel_nobody: 2,
            self.cancel_all: 0.5, self.pause: 2, self.resume: 2, self.dismiss: 2,
            self.stop: 2, self.check_health: 1, self.flush: 1, self.time_out: 0.5,
            self.limit: 0.5,
        }  # fmt: skip
        for _ in range(self.random.randint(10, 50)):
            for _ in range(self.random.choice([0, 0, 1, 1, 2, 5])):
                (happens,) = self.random.choices([*weighted], [*weighted.values()])
                happens()
            yield
            self.paused += self.paused > 0
            if self.paused > 8:
                self.resume()
        self.resume()
        yield

    def send(self) -> None:
        pick = self.random.choice
        prompt, most = pick([1, 8, 40, 130, 300]), pick([0, 1, 5, 30, 90])
        if self.random.random() < 0.1:
            prompt, most = pick([(500, 4), (511, 1), (5_000, 5), (10, 10**6)])
        claim: dict[str, object] | None = None
        if self.random.random() < 0.7:
            claim = {"agent": f"g{pick(range(4))}", "cost": pick([10, 1e4, -1])}
            claim |= pick(
                [{}, {"inferences": pick([1, 2])}, {"stage": 1}, {"tokens": 9}]
            )
        rid = pick(["a", "b", "", "c1"]) + str(len(self.sent))
        if self.random.random() < 0.1:
            rid = pick(["", "a", *self.sent])  # also one that is live
        self.scheduler.send(
            rid,
            prompt,
            most,
            claim,
            token=pick([10, 11, 12, 20 + len(self.sent) % 300]),
            ignore=pick([True, False, False]),
            session_id=pick([None, None, "s1", "s2"]),
        )
        self.sent.append(rid)

    def burst(self) -> None:
        for _ in range(self.random.randint(3, 12)):
            self.send()

    def cancel(self) -> None:
        if self.sent:
            self.scheduler.cancel(self.random.choice(self.sent))

    def cancel_nobody(self) -> None:
        self.scheduler.cancel(self.random.choice(["a", "b", "c", "1", "nobody"]))

    def cancel_all(self) -> None:
        self.scheduler.cancel(abort_all=True)

    def pause(self) -> None:
        mode = self.random.choice(["in_place", "retract"])
        self.retracting |= mode == "retract"
        asked = self.messages.PauseGenerationReqInput(mode=mode)
        self.scheduler.process_input_requests([asked])
        self.paused = max(1, self.paused)

    def resume(self) -> None:
        if self.paused:
            asked = self.messages.ContinueGenerationReqInput()
            self.scheduler.process_input_requests([asked])
            self.paused = 0

    def dismiss(self) -> None:
        gone = self.agents.dismiss(f"g{self.random.randrange(4)}")
        binding_of(self.scheduler).abort(gone or ())

    def stop(self) -> None:
        if self.sent:
            self.scheduler.stopping.add(self.random.choice(self.sent))

    def check_health(self) -> None:
        self.scheduler.send(f"HEALTH_CHECK_{len(self.sent)}", 1, 1)

    def flush(self) -> None:
        self.scheduler.flush_cache()

    def time_out(self) -> None:
        which = self.random.choice(["WAITING", "RUNNING"])
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv(f"SGLANG_REQ_{which}_TIMEOUT", "0.000001")
            aborts = self.scheduler._poll_timeout_aborts()
        self.scheduler.process_input_requests(aborts)

    def limit(self) -> None:
        self.scheduler.max_queued_requests = self.random.choice([None, 0, 3, 10])


@pytest.mark.parametrize("seed", range(STORMS))
def test_a_storm_leaves_nothing_behind(scheduler: Stepped, seed: int) -> None:
    """Everybody has an answer, once; nobody is known; with `max` nobody gave way."""
    storm = Storm(scheduler, seed)
    binding = binding_of(scheduler)
    preemptions = 0
    requeue = storm.agents.requeue

    def count(request_id: str) -> None:
        nonlocal preemptions
        preemptions += 1
        requeue(request_id)

    storm.agents.requeue = count  # type: ignore[method-assign]
    scheduler.play(storm.script())
    scheduler.max_queued_requests = None
    ended = [rid for rid in scheduler.ended() if not rid.startswith("HEALTH_CHECK")]
    assert sorted(ended) == sorted(storm.sent)
    assert not binding._everybody()
    assert not storm.agents.requests
    binding._check()
    if binding.settings.admission == "max" and not storm.retracting:
        assert preemptions == 0
