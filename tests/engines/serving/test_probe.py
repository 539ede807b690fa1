"""The probe of a stock server, on servers that real ones cannot be made to be.

``test_stock.py`` of ``tests/engines/vllm`` and ``tests/engines/sglang`` have it on the
real ones, in all of their modes.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator

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
    flags
        Those that it says it was started with, None for an engine that does not say.
    """

    def __init__(
        self, mode: str, places: int = 48, flags: dict[str, object] | None = None
    ) -> None:
        self.mode = mode
        self.places = places
        self.flags = flags
        self.line: list[tuple[int, int, asyncio.Event]] = []
        self.running = 0
        self.came = 0
        self.deaf = 0  # for so many urgent requests, until nobody waits
        self.keys: set[str | None] = set()

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.keys.add(request.headers.get("authorization"))
        if request.url.path.endswith("models"):
            owner = "vllm" if self.flags is None else "sglang"
            return httpx.Response(
                200, json={"data": [{"id": "fake", "owned_by": owner}]}
            )
        if request.url.path == "/server_info":
            return httpx.Response(404 if not self.flags else 200, json=self.flags)
        body = json.loads(await request.aread())
        if self.mode == "refuse" and body["priority"]:
            return httpx.Response(400, json={"error": {"message": "no priorities"}})
        if body["priority"] < 0 and self.deaf:
            self.deaf -= 1
            while self.line:
                await asyncio.sleep(0)
        sign = {"priority": 1, "reverse": -1}.get(self.mode, 0)
        self.came += 1
        ticket = (sign * body["priority"], self.came, asyncio.Event())
        self.line.append(ticket)
        self._admit()
        if body.get("stream"):
            parts = self._tokens(ticket, body["max_tokens"])
            first = b""
            if self.flags is not None:  # SGLang answers with the first token
                sent = request.extensions["trace"]
                await sent("http11.send_request_body.complete", {})
                first = await anext(parts)
            return httpx.Response(200, stream=_Stream(first, parts))
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
    ) -> AsyncGenerator[bytes]:
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
    def __init__(self, first: bytes, parts: AsyncGenerator[bytes]) -> None:
        self._first = first
        self._parts = parts

    async def __aiter__(self) -> AsyncIterator[bytes]:
        yield self._first
        async for part in self._parts:
            yield part

    async def aclose(self) -> None:
        await self._parts.aclose()


def run(server: Fake, **more: object) -> None:
    asyncio.run(probe("http://fake/v1/", transport=server, **more))  # type: ignore[arg-type]


def test_a_server_that_honours_priorities_passes_and_is_left_alone() -> None:
    server = Fake("priority")
    run(server, api_key="sesame")
    assert server.keys == {"Bearer sesame"}
    assert server.running == 0
    assert server.line == []


def test_one_that_hears_of_the_urgent_too_late_is_tried_again() -> None:
    server = Fake("priority")
    server.deaf = 1
    run(server)
    assert server.deaf == 0
    with pytest.raises(PriorityIgnored, match="ignores them"):
        run(Fake("fcfs"), most=64)  # too few for another try: what was seen holds


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


RIGHT: dict[str, object] = {
    "enable_priority_scheduling": True,
    "schedule_low_priority_values_first": True,
    "disable_priority_preemption": True,
}


def test_an_sglang_that_was_started_right_passes_b15() -> None:
    server = Fake("priority", flags=RIGHT)
    run(server, api_key="sesame")
    assert server.running == 0
    assert server.keys == {"Bearer sesame"}


@pytest.mark.parametrize(
    ("flag", "otherwise"),
    [
        ("enable_priority_scheduling", "ignores them"),
        ("schedule_low_priority_values_first", "takes the larger priority first"),
        ("disable_priority_preemption", "lets what waits preempt what runs"),
    ],
)
def test_an_sglang_that_was_not_or_does_not_say_is_refused_b15(
    flag: str, otherwise: str
) -> None:
    for value, reason in (
        (False, otherwise),
        ("true", otherwise),
        (None, f"does not say whether {flag}"),
    ):
        flags = {**RIGHT, flag: value}
        if value is None:
            del flags[flag]
        server = Fake("priority", flags=flags)
        with pytest.raises(PriorityIgnored, match=reason) as it:
            run(server)
        assert "Start SGLang with --enable-priority-scheduling" in str(it.value)
        assert server.came == 0


def test_an_sglang_that_says_nothing_is_refused_b15() -> None:
    with pytest.raises(PriorityIgnored, match="does not say whether enable_priority"):
        run(Fake("priority", flags={}))


@pytest.mark.parametrize("mode", ["fcfs", "reverse"])
def test_an_sglang_that_does_other_than_it_says_is_refused_b15(mode: str) -> None:
    with pytest.raises(PriorityIgnored, match="ignores them"):
        run(Fake(mode, flags=RIGHT))


@pytest.mark.parametrize("answer", [b"{}", b"nonsense", b'{"data": []}'])
def test_what_is_no_such_server_does_not(answer: bytes) -> None:
    transport = httpx.MockTransport(lambda _: httpx.Response(200, content=answer))
    with pytest.raises(PriorityIgnored, match="no such server"):
        asyncio.run(probe("http://fake/v1", transport=transport))
