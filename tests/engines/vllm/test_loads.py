"""Requests whose KV is loaded from elsewhere while they wait."""

from pathlib import Path
from typing import Any

from tests.engines.vllm.real import Driver, Request, RequestStatus, make_scheduler

LOADING = RequestStatus.WAITING_FOR_REMOTE_KVS


class Elsewhere:
    """A connector that has some tokens of the prompts of some requests."""

    supports_divergent_local_hybrid_hits = False

    def __init__(self, tokens: dict[str, int]) -> None:
        self._tokens = tokens

    def get_num_new_matched_tokens(
        self, request: Request, computed: int
    ) -> tuple[int, bool]:
        tokens = self._tokens.pop(request.request_id, 0)
        return tokens, tokens > 0

    def request_finished(self, *_: object) -> tuple[bool, None]:
        return False, None

    def take_events(self) -> tuple[()]:
        return ()

    def get_loaded_kv_cache_group_ids(self, request: Request) -> tuple[()]:
        return ()

    def __getattr__(self, name: str) -> Any:
        return lambda *given: None


def driven(model: Path, admission: str, **loads: int) -> Driver:
    driver = Driver(
        make_scheduler(
            model, justitia={"admission": admission, "policy": "vtc"}, blocks=17
        )
    )
    driver.scheduler.connector = Elsewhere(loads)  # type: ignore[assignment]
    return driver


def loading(driver: Driver) -> list[str]:
    return [one.request_id for one in driver.live() if one.status == LOADING]


def run(driver: Driver) -> None:
    """Run to the end; whatever loads is there when nothing else is left to do."""
    while driver.advance() or loading(driver):
        if not driver.scheduler.running:
            driver.scheduler.finished_recving_kv_req_ids.update(loading(driver))


def test_max_sets_aside_for_what_loads(model: Path) -> None:
    """8 blocks load, and may become 12 of 16; who may take 14 does not start beside."""
    driver = driven(model, "max", loads=200)
    driver.add("loads", 256, 100)
    driver.advance()
    assert loading(driver) == ["loads"]
    driver.add("large", 32, 400)
    driver.advance()
    assert not driver.starts
    run(driver)
    assert list(driver.finishes) == ["loads", "large"]
    assert driver.preemptions == 0


def test_two_load_at_once_only_where_both_can_grow(model: Path) -> None:
    driver = driven(model, "max", first=200, second=200)
    driver.add("first", 220, 200)
    driver.add("second", 220, 200)
    driver.advance()
    assert loading(driver) == ["first"]
    run(driver)
    assert list(driver.finishes) == ["first", "second"]
    assert driver.preemptions == 0


def test_those_that_have_loaded_do_not_wait_for_one_another(model: Path) -> None:
    """They were predicted too small to fit, and nobody else runs."""
    driver = driven(model, "predicted", first=200, second=200)
    for name in ("first", "second"):
        driver.add(name, 220, 150, claim={"tokens": 1})
    driver.advance()
    assert loading(driver) == ["first", "second"]
    run(driver)
    assert set(driver.finishes) == {"first", "second"}
