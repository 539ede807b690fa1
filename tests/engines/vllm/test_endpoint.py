"""vLLM's endpoint plugin beside an engine that is made up."""

import asyncio
import json
from argparse import Namespace
from importlib.metadata import entry_points
from typing import Any

import pytest

pytest.importorskip("vllm", reason="vLLM is not installed: see docs/vllm.md")

from justitia.engines.vllm.endpoint import Endpoint


class Core:
    """The front end's client of an engine, or of several."""

    def __init__(self, *answers: object) -> None:
        self.answers = answers
        self.asked: list[tuple[object, ...]] = []

    async def call_utility_all_async(self, *call: object) -> list[str]:
        self.asked.append(call)
        if isinstance(self.answers[0], Exception):
            raise self.answers[0]
        return [json.dumps(answer) for answer in self.answers]


STATE = {
    "status": 200, "version": "1", "policy": "justitia", "admission": "none",
    "capacity_tokens": 2016, "scheduler": ["PolicyScheduling", "Scheduler"],
    "engine_version": "0.32.0",
}  # fmt: skip


def start(*answers: object, api_key: list[str] | None = None) -> Endpoint:
    endpoint = Endpoint()
    client: Any = Namespace(engine_core=Core(*answers))
    state: Any = None
    asyncio.run(endpoint.init_state(client, state, Namespace(api_key=api_key)))
    return endpoint


def test_vllm_finds_it() -> None:
    (one,) = entry_points(group="vllm.endpoint_plugins", name="justitia")
    from vllm.plugins.endpoint_plugins.interface import EndpointPlugin

    assert isinstance(one.load()(), EndpointPlugin)


def test_it_says_what_is_in_force(capsys: pytest.CaptureFixture[str]) -> None:
    start(STATE, STATE)
    assert capsys.readouterr().out.count("is in force: policy justitia") == 2


def test_another_scheduler_stops_the_server() -> None:
    missing = Exception("'EngineCoreProc' object has no attribute 'justitia'")
    with pytest.raises(SystemExit, match="not in force, so this server stops") as it:
        start(missing)
    assert "--scheduler-cls justitia.engines.vllm.Scheduler" in str(it.value)
    assert it.value.code  # so that the process fails


def test_a_scheduler_that_fails_stops_the_server() -> None:
    with pytest.raises(SystemExit, match="the scheduler fails"):
        start({"status": 500, "error": {"message": "no"}})


def test_a_server_without_an_engine_is_refused() -> None:
    with pytest.raises(SystemExit, match="no engine"):
        asyncio.run(
            Endpoint().init_state(None, None, Namespace(api_key=None))  # type: ignore[arg-type]
        )


def test_the_key_of_the_environment_guards_too(monkeypatch: pytest.MonkeyPatch) -> None:
    from starlette.requests import Request

    def request(key: str | None) -> Request:
        headers = [] if key is None else [(b"authorization", f"Bearer {key}".encode())]
        return Request({"type": "http", "headers": headers})

    assert start(STATE)._allowed(request(None))
    monkeypatch.setenv("VLLM_API_KEY", "from the environment")
    guarded = start(STATE)
    assert not guarded._allowed(request(None))
    assert not guarded._allowed(request("x"))
    assert guarded._allowed(request("from the environment"))
    stronger = start(STATE, api_key=["from a flag"])
    assert not stronger._allowed(request("from the environment"))
    assert stronger._allowed(request("from a flag"))
