"""What happens in SGLang's scheduler, as the policy is told, in both of its loops."""

from collections.abc import Iterator
from copy import copy
from pathlib import Path
from typing import Any

import pytest

from justitia.policy import create
from tests.engines.sglang.stepped import (
    SWEEP,
    Log,
    Script,
    Stepped,
    binding_of,
    stepped,
)


@pytest.fixture(scope="module", params=["plain", "overlap", "mixed"])
def scheduler(model: Path, request: pytest.FixtureRequest) -> Iterator[Stepped]:
    """A scheduler with 512 KV tokens, 64 seats, and steps of 64 prompt tokens."""
    overlap = request.param != "plain"
    mixed = request.param == "mixed"
    with stepped(model, overlap=overlap, enable_mixed_chunk=mixed) as made:
        yield made


def nobody(scheduler: Stepped) -> bool:
    """Return whether the binding and the policy remember nothing of anybody."""
    binding = binding_of(scheduler)
    binding._check()
    return not (binding._everybody() or len(binding.agents) or binding.agents.requests)


def test_a_life(scheduler: Stepped) -> None:
    log = Log()
    agents = scheduler.use(log)

    def script() -> Script:
        scheduler.send("a", 8, 5)
        scheduler.send("b", 8, 3, token=8)
        assert [*agents.order()] == ["a", "b"]
        yield
        assert not [*agents.order()]

    scheduler.play(script())
    for rid, produced in {"a": 5, "b": 3}.items():
        assert log.verbs(rid) == ["submit", "start", "finish"]
        assert log.verbs(f"request/{rid}") == ["arrive", "leave"]
        assert log.prefill[rid] == 8
        assert log.decode[rid] == produced
    assert sorted(scheduler.ended()) == ["a", "b"]
    assert nobody(scheduler)


def test_a_prompt_in_parts_starts_once(scheduler: Stepped) -> None:
    """A prompt of 150 tokens takes three steps of 64, and a token comes at its end."""
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        scheduler.send("short", 8, 40)
        yield
        yield
        scheduler.send("long", 150, 4, token=8)
        for _ in range(2):
            yield
        assert 0 < log.prefill["long"] < 150
        assert not log.decode.get("long")

    scheduler.play(script())
    assert log.verbs("long") == ["submit", "start", "finish"]
    assert log.prefill == {"short": 8, "long": 150}
    assert log.decode == {"short": 40, "long": 4}
    assert nobody(scheduler)


def test_who_ends_by_a_token_was_served_it(scheduler: Stepped) -> None:
    """With overlap the engine computes one more before it sees that one has ended."""
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        scheduler.send("a", 8, 30)
        for _ in range(4):
            yield
        scheduler.stopping.add("a")

    scheduler.play(script())
    steps = sum("a" in batch for batch in scheduler.batches)
    assert log.decode["a"] == steps < 30
    assert nobody(scheduler)


def test_a_cached_prompt_is_not_computed_again(scheduler: Stepped) -> None:
    log = Log()
    scheduler.use(log)
    binding = binding_of(scheduler)
    started = []
    binding.on_start = lambda *told: started.append(told)

    def script() -> Script:
        scheduler.send("a", 40, 2)
        while not scheduler.ended():
            yield
        scheduler.send("b", 40, 2)

    scheduler.play(script())
    binding.on_start = None
    assert started == [("a", 0, 40), ("b", 39, 40)]
    assert log.prefill == {"a": 40, "b": 1}
    assert (binding.cached_tokens, binding.prompt_tokens) == (39, 80)


def test_the_retracted_come_back(scheduler: Stepped) -> None:
    """Eight of 40 + 50 tokens do not fit into 512, of which SGLang guesses too little.

    Those that started last give way, under a policy of first come, first served.
    """
    log = Log()
    agents = scheduler.use(log)

    def script() -> Script:
        for n in range(8):
            scheduler.send(f"{n}", 40, 50, token=10 + n)
        yield

    scheduler.play(script())
    back = [id for verb, id in log.told if verb == "requeue"]
    assert back
    assert min(back) > "3"
    for rid in map(str, range(8)):
        verbs = log.verbs(rid)
        assert verbs.count("start") == 1 + verbs.count("requeue")
        assert (verbs[0], verbs[-1]) == ("submit", "finish")
        assert log.decode[rid] == 50
    assert not agents.requests
    assert nobody(scheduler)


# --- ends -----------------------------------------------------------------------------


def test_aborted_in_line_and_running(scheduler: Stepped) -> None:
    log = Log()
    agents = scheduler.use(log)

    def script() -> Script:
        scheduler.send("runs", 8, 100)
        yield
        yield
        scheduler.send("waits", 8, 100, token=8)
        scheduler.cancel("waits")
        yield
        assert log.verbs("waits") == ["submit", "finish"]
        scheduler.cancel("runs")

    scheduler.play(script())
    assert log.verbs("runs") == ["submit", "start", "finish"]
    assert log.decode["runs"] < 100
    assert len(agents) == 0
    assert nobody(scheduler)


def test_aborted_in_the_middle_of_a_prompt(scheduler: Stepped) -> None:
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        scheduler.send("long", 300, 4)
        yield
        yield
        assert 0 < log.prefill["long"] < 300
        scheduler.cancel("long")
        yield
        scheduler.send("next", 8, 4, token=8)

    scheduler.play(script())
    assert log.verbs("long") == ["submit", "start", "finish"]
    assert log.prefill["long"] < 300
    assert log.decode == {"next": 4}
    assert nobody(scheduler)


def test_aborted_in_the_middle_of_a_prompt_beside_another(scheduler: Stepped) -> None:
    """It has ended as soon as SGLang lets it go, also where the engine never rests."""
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        scheduler.send("runs", 8, 90, token=8)
        yield
        yield
        scheduler.send("long", 300, 4)
        yield
        yield
        assert 0 < log.prefill["long"] < 300
        scheduler.cancel("long")
        yield
        yield
        assert log.verbs("long") == ["submit", "start", "finish"]

    scheduler.play(script())
    assert log.decode == {"runs": 90}
    assert nobody(scheduler)


def test_all_aborted(scheduler: Stepped) -> None:
    scheduler.use(create("justitia"))

    def script() -> Script:
        for n in range(100):
            scheduler.send(f"{n}", 30, 30, {"agent": f"{n % 7}"}, token=10 + n)
        for _ in range(5):
            yield
        scheduler.cancel(abort_all=True)

    scheduler.play(script())
    assert len(scheduler.ended()) == 100
    assert not binding_of(scheduler)._everybody()


def test_an_abort_ends_no_longer_id(scheduler: Stepped) -> None:
    """SGLang ends whoever's id begins with the one that is to end: "a1", and "a10"."""
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        for rid in ("a1", "a10", "a100"):
            scheduler.send(rid, 8, 20, token=ord(rid[-1]))
        yield
        yield
        scheduler.send("a11", 8, 20, token=9)
        scheduler.cancel("a1")
        assert {req.rid for req in scheduler.waiting_queue} == {"a11"}
        yield
        scheduler.cancel("a10")
        scheduler.cancel("a")

    scheduler.play(script())
    assert {rid: n for rid, n in log.decode.items() if n == 20} == {
        "a100": 20,
        "a11": 20,
    }
    assert nobody(scheduler)


def test_an_abort_of_no_id_ends_those_without_one(scheduler: Stepped) -> None:
    """SGLang's front end takes an empty id from a client, and every id begins so."""
    log = Log()
    agents = scheduler.use(log)

    def script() -> Script:
        scheduler.send("", 8, 20, {"agent": "nameless"})
        scheduler.send("runs", 8, 20, token=8)
        yield
        yield
        scheduler.send("waits", 8, 20, token=9)
        gone = agents.dismiss("nameless")
        assert gone is not None
        binding_of(scheduler).abort(gone)
        assert {req.rid for req in scheduler.waiting_queue} == {"waits"}

    scheduler.play(script())
    assert (log.decode["runs"], log.decode["waits"]) == (20, 20)
    assert not agents.requests


def test_a_prompt_that_is_too_long(scheduler: Stepped) -> None:
    """It ends at once and is none of the policy's, whoever waits."""
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        for n in range(12):
            scheduler.send(f"{n}", 40, 50, token=10 + n)
        yield
        yield
        scheduler.send("much", 5_000, 4)
        for _ in range(3):
            yield
        assert "much" in scheduler.ended()

    scheduler.play(script())
    assert not log.verbs("much")
    assert nobody(scheduler)


def test_a_full_queue(scheduler: Stepped, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Log()
    scheduler.use(log)
    monkeypatch.setattr(scheduler, "max_queued_requests", 2)

    def script() -> Script:
        for n in range(4):
            scheduler.send(f"{n}", 8, 4, token=10 + n)
        assert scheduler.ended() == ["2", "3"]
        yield

    scheduler.play(script())
    assert log.verbs("1") == ["submit", "start", "finish"]
    assert not log.verbs("2")
    assert nobody(scheduler)


def test_retracted_into_a_full_queue(
    scheduler: Stepped, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = Log()
    scheduler.use(log)
    monkeypatch.setattr(scheduler, "max_queued_requests", 8)

    def script() -> Script:
        for n in range(8):
            scheduler.send(f"{n}", 40, 50, token=10 + n)
        yield
        while not scheduler.waiting_queue:
            yield
        monkeypatch.setattr(scheduler, "max_queued_requests", 0)

    scheduler.play(script())
    assert len(scheduler.ended()) == 8
    assert nobody(scheduler)


def test_a_timeout(scheduler: Stepped, monkeypatch: pytest.MonkeyPatch) -> None:
    """A time that has passed already ends whoever waits; the loop asks for it."""
    log = Log()
    scheduler.use(log)
    monkeypatch.setenv("SGLANG_REQ_WAITING_TIMEOUT", "0.000001")

    def script() -> Script:
        for n in range(12):
            scheduler.send(f"{n}", 40, 50, token=10 + n)
        yield
        yield
        scheduler.process_input_requests(scheduler._poll_timeout_aborts())
        yield
        assert not scheduler.waiting_queue

    scheduler.play(script())
    assert any(log.verbs(f"{n}") == ["submit", "finish"] for n in range(12))
    assert nobody(scheduler)


def test_a_pause(scheduler: Stepped) -> None:
    """One that takes all out of the batch: they are back in line, in their places."""
    from sglang.srt.managers.io_struct import (
        ContinueGenerationReqInput,
        PauseGenerationReqInput,
    )

    log = Log()
    agents = scheduler.use(log)

    def script() -> Script:
        for n in range(3):
            scheduler.send(f"{n}", 8, 20, token=10 + n)
        for _ in range(4):
            yield
        scheduler.send("new", 8, 20)
        scheduler.process_input_requests([PauseGenerationReqInput(mode="retract")])
        yield
        assert [*agents.order()] == ["0", "1", "2", "new"]
        scheduler.process_input_requests([ContinueGenerationReqInput()])

    scheduler.play(script())
    for n in range(3):
        assert log.verbs(f"{n}") == ["submit", "start", "requeue", "start", "finish"]
        assert log.decode[f"{n}"] == 20  # also where that of a step under way is lost
    assert nobody(scheduler)


def test_grammars_that_are_being_compiled(
    scheduler: Stepped, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such a request is in line when its grammar is there; till then, it can end.

    SGLang has no compiler of grammars here, so its manager is told which are compiled.
    """
    log = Log()
    agents = scheduler.use(log)
    manager, compiled = scheduler.grammar_manager, set()

    def compiles(req: Any) -> bool:
        if req.rid.startswith("g"):
            manager.grammar_queue.append(req)
        return req.rid.startswith("g")

    def ready() -> list[Any]:
        queue = manager.grammar_queue
        done = [r for r in queue if r.rid in compiled or r.to_finish is not None]
        manager.grammar_queue = [req for req in queue if req not in done]
        return done

    monkeypatch.setattr(manager, "process_req_with_grammar", compiles)
    monkeypatch.setattr(manager, "get_ready_grammar_requests", ready)

    def script() -> Script:
        scheduler.send("runs", 8, 30)
        for rid in ("g1", "g10", "g2"):
            scheduler.send(rid, 8, 5, {"agent": "g"}, token=ord(rid[-1]))
        yield
        assert set(agents.requests) == {"runs"}
        compiled.add("g2")
        scheduler.cancel("g1")
        yield
        yield
        assert log.verbs("g2")[:2] == ["submit", "start"]
        assert not log.verbs("g1")
        assert scheduler.grammar_manager.grammar_queue
        compiled.add("g10")

    scheduler.play(script())
    assert sorted(scheduler.ended()) == ["g1", "g10", "g2", "runs"]
    assert log.decode == {"runs": 30, "g2": 5, "g10": 5}
    assert not agents.requests
    assert binding_of(scheduler)._everybody() == []


def test_a_thousand_cancelled_agents(scheduler: Stepped) -> None:
    """Named agents are remembered for a while, here for half a second: 50 steps."""
    agents = scheduler.use(create("justitia"), linger=0.5)
    binding = binding_of(scheduler)

    def script() -> Script:
        for n in range(1_000):
            scheduler.send(f"{n}", 8, 100, {"agent": f"a{n}", "cost": 1e4 + n})
            if n % 50 == 0:
                yield
        for n in range(1_000):
            scheduler.cancel(f"{n}")
        while not scheduler.is_fully_idle():
            yield
        yield
        assert not binding._everybody()
        assert not agents.requests
        scheduler.send("last", 8, 60)

    scheduler.play(script())
    assert len(scheduler.ended()) == 1_001
    assert nobody(scheduler)
    clock = agents.policy.clock  # type: ignore[attr-defined]
    assert clock.active <= 1_000  # who owes is in the reference until that is through


def test_a_dismissed_agent(scheduler: Stepped) -> None:
    """Its requests end; one that runs has one more step, of which nobody is told."""
    log = Log()
    agents = scheduler.use(log)
    binding = binding_of(scheduler)

    def script() -> Script:
        scheduler.send("runs", 8, 50, {"agent": "a"})
        yield
        yield
        scheduler.send("waits", 8, 50, {"agent": "a"}, token=8)
        scheduler.send("stays", 8, 5, {"agent": "b"}, token=9)
        gone = agents.dismiss("a")
        assert gone == ("runs", "waits")
        binding.abort(gone)
        told = log.decode["runs"]
        yield
        yield
        yield
        assert log.decode["runs"] == told

    scheduler.play(script())
    assert sorted(scheduler.ended()) == ["runs", "stays", "waits"]
    assert not agents.requests
    assert len(agents) == 1  # b, which may come back


def test_who_is_lost_is_found(scheduler: Stepped) -> None:
    """A request that left the engine without a word is forgotten after two sweeps."""
    log = Log()
    scheduler.use(log)
    binding = binding_of(scheduler)

    def script() -> Script:
        scheduler.send("stays", 8, 40)
        yield
        ghost = copy(next(iter(binding._ids)))
        ghost.rid = "lost"
        binding._admit(ghost)
        binding._queued += 1
        binding._start(ghost, "lost")
        for _ in range(2):
            assert "lost" in binding._live
            scheduler.forward_ct += SWEEP
            yield
        assert "lost" not in binding._live

    scheduler.play(script())
    assert nobody(scheduler)


# --- who is none of the policy's ------------------------------------------------------


def test_a_health_check_is_nobody(scheduler: Stepped) -> None:
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        scheduler.send("HEALTH_CHECK_1", 1, 1)
        for n in range(9):
            scheduler.send(f"{n}", 60, 20, token=10 + n)
        yield
        yield
        assert scheduler.batches[0][0] == "HEALTH_CHECK_1"

    scheduler.play(script())
    assert not log.verbs("HEALTH_CHECK_1")
    assert "HEALTH_CHECK_1" not in log.decode
    assert nobody(scheduler)


def test_one_that_only_calls_itself_a_health_check(scheduler: Stepped) -> None:
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        scheduler.send("HEALTH_CHECK_x", 8, 20)
        yield

    scheduler.play(script())
    assert log.decode["HEALTH_CHECK_x"] == 20


def test_two_requests_of_one_id(scheduler: Stepped) -> None:
    """SGLang's front end lets none through; the policy would know two by one name."""
    log = Log()
    scheduler.use(log)

    def script() -> Script:
        scheduler.send("a", 8, 5)
        scheduler.send("a", 8, 7, token=8)
        yield

    scheduler.play(script())
    assert (log.decode["a"], log.decode["a#2"]) == (5, 7)
    assert nobody(scheduler)
