"""The routes, on a server in this process."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

pytest.importorskip("starlette", reason="comes with the extra gateway")
pytest.importorskip("httpx", reason="comes with the extra gateway")
pytest.importorskip("prometheus_client", reason="comes with the extra gateway")

import asyncio
from urllib.parse import quote

import httpx
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from justitia.engines.serving import Claim, http
from justitia.engines.serving.http import LARGEST_BODY, Refresh, Routes
from justitia.engines.serving.metrics import Scrape
from tests.engines.serving.test_desk import Office


class House:
    """A server in front of some schedulers."""

    def __init__(self, *offices: Office, key: str | None = None) -> None:
        self.offices = offices
        self.key = key
        self.asked: list[str] = []
        self.now = 0.0
        self.dead = self.busy = False
        self.scrape = Scrape(lambda: self.now)
        routes = Routes(self.ask, self.allowed, self.scrape)
        app = Starlette(routes=[*routes.list(), Route("/metrics", self.metrics)])
        self.app = Refresh(app, routes.refresh)

    async def ask(
        self, verb: str, given: Mapping[str, Any]
    ) -> Sequence[dict[str, Any]]:
        self.asked.append(verb)
        if self.dead:
            raise RuntimeError("the engine is gone")
        if self.busy:
            await asyncio.sleep(3600)
        return [office.ask(verb, **given) for office in self.offices]

    def allowed(self, request: Request) -> bool:
        return self.key is None or request.headers.get("Authorization") == self.key

    def metrics(self, request: Request) -> PlainTextResponse:
        return PlainTextResponse(self.scrape.text())

    def send(self, method: str, path: str, **more: Any) -> httpx.Response:  # noqa: ANN401
        async def run() -> httpx.Response:
            transport = httpx.ASGITransport(app=self.app)
            async with httpx.AsyncClient(
                transport=transport, base_url="http://here"
            ) as client:
                return await client.request(method, path, **more)

        return asyncio.run(run())


@pytest.mark.parametrize(
    "agent", ["plain", "a/b//c", "ä ü", "?#&%2F", "日本語", "../x"]
)
def test_an_agent_of_any_name(agent: str) -> None:
    house = House(Office())
    path = f"/justitia/agents/{quote(agent, safe='')}"
    told = house.send("POST", "/justitia/agents", json={"id": agent, "cost": 100})
    assert (told.status_code, told.json()) == (201, {"id": agent, "tag": 100.0})
    again = house.send("POST", "/justitia/agents", json={"id": agent, "cost": 100})
    assert again.status_code == 409
    assert house.send("PATCH", path, json={"cost": 30}).json()["tag"] == 30.0
    assert house.send("DELETE", path).json() == {"id": agent, "aborted": 0}
    assert house.send("DELETE", path).status_code == 404


def test_what_is_wrong_never_reaches_the_engine() -> None:
    house = House(Office())
    bodies: list[bytes] = [
        b"", b"{", b"[]", b"\xff\xfe", b"[" * 10**5, b'{"id": "x", "cost": NaN}',
        b'{"id": "x", "cost": 1e400}', b'{"id": "", "cost": 1}',
        b'{"id": "x", "cost": ' + b"9" * 5_000 + b"}", b'{"id": "\\ud800", "cost": 1}',
    ]  # fmt: skip
    for body in bodies:
        answer = house.send("POST", "/justitia/agents", content=body)
        assert answer.status_code == 400, body[:40]
        assert answer.json()["error"]["message"]
    large = json.dumps({"id": "x", "cost": 1, "kind": "k" * LARGEST_BODY})
    answer = house.send("POST", "/justitia/agents", content=large)
    assert answer.status_code == 413
    assert house.asked == []


def test_a_revision_is_of_the_agent_in_the_path() -> None:
    house = House(Office())
    house.send("POST", "/justitia/agents", json={"id": "a", "cost": 1})
    for given in ({"id": "b", "cost": 1}, {}, {"cost": -1}, {"cost": 1, "weight": 2}):
        assert house.send("PATCH", "/justitia/agents/a", json=given).status_code == 400
    same = house.send("PATCH", "/justitia/agents/a", json={"id": "a", "cost": 2})
    assert same.status_code == 200
    assert (
        house.send("PATCH", "/justitia/agents/b", json={"cost": 2}).status_code == 404
    )


def test_an_agent_is_one_on_several_schedulers() -> None:
    first, second = Office(), Office()
    house = House(first, second)
    assert house.send("GET", "/justitia/agents/a%2Fb").status_code == 404
    house.send("POST", "/justitia/agents", json={"id": "a/b", "cost": 100})
    second.agents.submit("other", Claim("other", cost=300), 5, 5)
    second.agents.submit("1", Claim("a/b"), 5, 5)
    second.agents.start("1")
    second.agents.serve({}, {"1": 2})
    first.agents.submit("2", Claim("late", cost=1), 5, 5)
    told = house.send("GET", "/justitia/agents/a%2Fb")
    assert told.status_code == 200
    assert told.json() == {
        "id": "a/b", "kind": "", "weight": 1, "cost": 100, "tag": 100.0,
        "waiting": 0, "running": 1, "delivered": 13, "active": True,
    }  # fmt: skip
    first.ask("dismiss", id="a/b")
    assert house.send("GET", "/justitia/agents/a%2Fb").json()["running"] == 1


def test_an_empty_name_is_nobodys_b25() -> None:
    house = House(Office())
    house.send("POST", "/justitia/agents", json={"id": "a", "cost": 1})
    assert house.send("DELETE", "/justitia/agents/").status_code == 400
    assert house.send("DELETE", "/justitia/agents").status_code == 405
    assert house.send("GET", "/justitia/state").json()["ranks"][0]["agents"] == 1


def test_with_a_key_nothing_is_open() -> None:
    house = House(Office(), key="sesame")
    for method, path in (
        ("GET", "/justitia/state"),
        ("GET", "/justitia/metrics"),
        ("POST", "/justitia/agents"),
        ("GET", "/justitia/agents/a"),
        ("PATCH", "/justitia/agents/a"),
        ("DELETE", "/justitia/agents/a"),
    ):
        answer = house.send(method, path)
        assert (answer.status_code, answer.json()) == (401, {"error": "Unauthorized"})
    assert house.asked == []
    mine = {"Authorization": "sesame"}
    assert house.send("GET", "/justitia/state", headers=mine).status_code == 200


def test_several_schedulers_answer_as_one() -> None:
    first, second = Office(), Office()
    house = House(first, second)
    house.send("POST", "/justitia/agents", json={"id": "a", "cost": 1})
    assert [len(office.agents) for office in (first, second)] == [1, 1]
    second.ask("dismiss", id="a")  # it had no request there for too long, say
    again = house.send("POST", "/justitia/agents", json={"id": "a", "cost": 1})
    assert again.status_code == 409
    first.ask("dismiss", id="a")
    assert house.send("DELETE", "/justitia/agents/a").status_code == 200
    assert house.send("DELETE", "/justitia/agents/a").status_code == 404
    assert len(house.send("GET", "/justitia/state").json()["ranks"]) == 2


def test_metrics_are_asked_for_when_they_are_scraped() -> None:
    house = House(Office())
    house.send("GET", "/justitia/state")
    assert "justitia_adapter_info" in house.send("GET", "/metrics").text
    house.send("GET", "/metrics")
    assert house.asked == ["state", "measures"]
    house.now = 1.0
    assert "justitia_adapter_info" in house.send("GET", "/justitia/metrics").text
    assert house.asked == ["state", "measures", "measures"]


def test_a_scrape_does_not_wait_for_a_long_step(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(http, "PATIENCE_SECONDS", 0.01)
    house = House(Office())
    before = house.send("GET", "/metrics").text
    house.busy, house.now = True, 1.0
    assert house.send("GET", "/metrics").text == before != ""


def test_of_an_engine_that_is_gone_there_are_no_metrics() -> None:
    house = House(Office())
    house.send("GET", "/metrics")
    house.dead, house.now = True, 1.0
    answer = house.send("GET", "/metrics")
    assert (answer.status_code, answer.text) == (200, "")
