"""The probe of a stock server, on servers that a real vLLM cannot be made to be.

``tests/engines/vllm/test_stock.py`` has it on the real one, in both of its modes.
"""

import asyncio
import json
from collections.abc import AsyncIterator

import pytest

pytest.importorskip("httpx", reason="comes with the extra gateway")

import httpx

from justitia.engines.serving.probe import PriorityIgnored, probe


class Fake(httpx.AsyncBaseTransport):
    """A server of a few places that makes a token for each a step.

    Parameters
    ----------
    mode
        What it does with priorities: ``priority``, ``fcfs``, ``reverse``, ``refuse``.
    """

    def __init__(self, mode: str, places: int = 48) -> None:
        self.mode = mode
        self.places = places
        self.line: list[tuple[int, int, asyncio.Event]] = []
        self.running = 0
        self.came = 0
        self.keys: set[str | None] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.keys.add(request.headers.get("authorization"))
        if request.url.path.endswith("models"):
            return httpx.Response(200, json={"data": [{"id": "fake"}]})
        body = json.loads(await request.aread())
        if self.mode == "refuse" and body["priority"]:
            return httpx.Response(400, json={"error": {"message": "no priorities"}})
        sign = {"priority": 1, "reverse": -1}.get(self.mode, 0)
        self.came += 1
        ticket = (sign * body["priority"], self.came, asyncio.Event())
        self.line.append(ticket)
        self._admit()
        if body.get("stream"):
            stream = _Stream(self._tokens(ticket, body["max_tokens"]))
            return httpx.Response(200, stream=stream)
        async for _ in self._tokens(ticket, body["max_tokens"]):
            pass
        return httpx.Response(200, json={"choices": [{}]})

    def _admit(self) -> None:
        self.line.sort(key=lambda ticket: ticket[:2])
        while self.line and self.running < self.places:
            self.running += 1
            self.line.pop(0)[2].set()

    async def _tokens(
        self, ticket: tuple[int, int, asyncio.Event], count: int
    ) -> AsyncIterator[bytes]:
        try:
            await ticket[2].wait()
            for _ in range(count):
                await asyncio.sleep(0)
                yield b'data: {"choices": [{"text": "a"}]}\n\n'
        finally:
            if ticket in self.line:
                self.line.remove(ticket)
            else:
                self.running -= 1
                self._admit()
        yield b"data: [DONE]\n\n"


class _Stream(httpx.AsyncByteStream):
    def __init__(self, parts: AsyncIterator[bytes]) -> None:
        self._parts = parts

    def __aiter__(self) -> AsyncIterator[bytes]:
        return self._parts


def run(server: Fake, **more: object) -> None:
    asyncio.run(probe("http://fake/v1/", transport=server, **more))  # type: ignore[arg-type]


def test_a_server_that_honours_priorities_passes_and_is_left_alone() -> None:
    server = Fake("priority")
    run(server, api_key="sesame")
    assert server.keys == {"Bearer sesame"}
    assert server.running == 0
    assert server.line == []


@pytest.mark.parametrize("mode", ["fcfs", "reverse"])
def test_one_that_ignores_them_or_has_another_direction_does_not_b17(mode: str) -> None:
    with pytest.raises(PriorityIgnored, match="ignores them"):
        run(Fake(mode))


def test_one_that_refuses_them_does_not_b17() -> None:
    with pytest.raises(PriorityIgnored, match=r"refuses a priority \(400\)"):
        run(Fake("refuse"))


def test_one_that_cannot_be_filled_does_not_b17() -> None:
    with pytest.raises(PriorityIgnored, match="cannot be told"):
        run(Fake("priority", places=10**6), most=256)


def test_more_requests_are_sent_where_a_few_do_not_fill_it() -> None:
    server = Fake("priority", places=300)
    run(server)
    assert server.came > 300


def test_one_that_does_nothing_does_not() -> None:
    with pytest.raises(PriorityIgnored, match="seconds the server has not shown"):
        run(Fake("priority", places=0), seconds=0.2)


@pytest.mark.parametrize("answer", [b"{}", b"nonsense", b'{"data": []}'])
def test_what_is_no_such_server_does_not(answer: bytes) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=answer))
    with pytest.raises(PriorityIgnored, match="no such server"):
        asyncio.run(probe("http://fake/v1", transport=transport))
