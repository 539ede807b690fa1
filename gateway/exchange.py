"""One request of a client, from its body to the last byte of its answer.

`Exchange.run` waits for the turn, sends, and passes on what comes; beside it somebody
watches whether the client is still there. However it ends (an answer, an error, a
client that goes away, an engine that dies, an agent that is cancelled), the call is
taken out of the dispatcher once, before anything else is awaited.
"""

import asyncio
import json
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any
from uuid import uuid4

import httpx
from starlette.types import Receive, Send

from justitia.gateway.dispatcher import Call, Dispatcher, Phase
from justitia.gateway.errors import CLIENT_GONE, QUEUE_TIMEOUT, GatewayError
from justitia.gateway.events import Splitter, Tally
from justitia.gateway.lengths import Lengths, Ratios
from justitia.gateway.requests import Outgoing
from justitia.gateway.settings import Limits
from justitia.gateway.spans import UNTRACED, Span
from justitia.gateway.upstream import (
    EngineLost,
    EngineSilent,
    Upstream,
    order_fields,
)

LARGEST_ANSWER = 64 * 1024 * 1024
"""Bytes of an answer that is not streamed."""
_PASSED_ON = ("content-type", "content-encoding", "retry-after")
_KEY_REFUSED = (401, 403)

_log = logging.getLogger("justitia.gateway")


Record = Callable[[Call, Sequence[int]], Awaitable[None]]
"""Keeps a call that is finished, with the tokens of its prompts."""


class Stalled(Exception):
    """A client that reads nothing of what there is for it."""


@dataclass(slots=True)
class Outcome:
    """How a request ended, for logs and metrics.

    Attributes
    ----------
    status
        That the client was sent, or would have been.
    code
        Of the error, empty without one.
    queued
        Seconds in line.
    first
        Seconds until the first byte of an answer, None without one.
    """

    status: int = 0
    code: str = ""
    queued: float = 0.0
    first: float | None = None
    prompt_tokens: int | None = None
    tokens: int | None = None


class Exchange:
    """See the module.

    Parameters
    ----------
    path
        Of the engine's API.
    call, lengths
        The call, and what its prompts were estimated from.
    record
        Awaited before the client is told that it is done.
    span
        Traces it.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        upstreams: Mapping[str, Upstream],
        limits: Limits,
        ratios: Ratios,
        *,
        call: Call,
        lengths: Lengths,
        path: str,
        out: Outgoing,
        send: Send,
        record: Record | None = None,
        span: Span = UNTRACED,
    ) -> None:
        self._dispatcher = dispatcher
        self._upstreams = upstreams
        self._limits = limits
        self._ratios = ratios
        self._call = call
        self._lengths = lengths
        self._path = path
        self._out = out
        self._send_message = send
        self._record = record
        self._span = span
        self._settled = False
        self._came = time.monotonic()
        self._turn = asyncio.Event()
        self._cancelled = asyncio.Event()
        self._started = False  # the answer to the client
        self._events = False  # it is a stream of events
        self._tally = Tally()
        self.outcome = Outcome()
        call.on_turn = self._turn.set
        call.on_cancel = self._cancelled.set

    async def run(self, receive: Receive) -> Outcome:
        """Serve the request; never raises for what clients and engines do."""
        work = asyncio.create_task(self._work())
        others = [
            asyncio.create_task(_disconnected(receive)),
            asyncio.create_task(self._cancelled.wait()),
        ]
        try:
            await asyncio.wait([work, *others], return_when="FIRST_COMPLETED")
            if not work.done():
                self._end()
                work.cancel()
                if self._cancelled.is_set() and self._call.error is not None:
                    await asyncio.wait([work])
                    await self._fail(self._call.error)
                else:
                    self.outcome.status = CLIENT_GONE
                    self.outcome.code = "client_gone"
            await asyncio.wait([work])
            if not work.cancelled():
                work.result()
        finally:
            self._end()
            for task in (work, *others):
                task.cancel()
            await asyncio.gather(work, *others, return_exceptions=True)
        return self.outcome

    def _end(self) -> None:
        """Take the call out; once or many times."""
        if self._dispatcher.finish(self._call):
            self.outcome.tokens = sum(self._call.counted)
            self.outcome.prompt_tokens = self._tally.count("prompt_tokens")

    async def _work(self) -> None:
        try:
            self._dispatcher.submit(self._call)
            await self._serve()
        except GatewayError as error:
            self._end()
            await self._fail(error)
        except Stalled:
            self._end()
            self.outcome.status, self.outcome.code = CLIENT_GONE, "client_stalled"
        finally:
            self._end()

    async def _serve(self) -> None:
        while True:
            with self._span.waiting(self._dispatcher.agents, self._call):
                await self._wait(self._came)
            self.outcome.queued = time.monotonic() - self._came
            engine = self._call.engine
            assert engine is not None
            upstream = self._upstreams[engine.name]
            self._turn.clear()
            try:
                with self._span.sending(upstream, self._call) as headers:
                    await self._forward(upstream, headers)
            except EngineSilent:
                raise GatewayError(
                    504,
                    "engine_timeout",
                    f"the engine was silent for {self._limits.idle_seconds:g} seconds",
                ) from None
            except EngineLost as error:
                _log.warning("engine %s is lost: %s", engine.name, error)
                again = self._dispatcher.lost(self._call, streamed=self._started)
                upstream.worried.set()
                if again:
                    continue
                raise GatewayError(
                    502,
                    "engine_lost",
                    "the engine is gone, and what it had sent cannot be taken back"
                    if self._started
                    else "two engines in a row were gone before they had answered",
                ) from None
            return

    async def _wait(self, came: float) -> None:
        """Wait for the turn of the call."""
        left = came + self._limits.queue_seconds - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, left)):
                await self._turn.wait()
        except TimeoutError:
            if self._call.phase is Phase.RUNNING:  # in the same moment
                return
            self.outcome.queued = time.monotonic() - came
            reason = f"not started within {self._limits.queue_seconds:g} seconds"
            raise GatewayError(503, QUEUE_TIMEOUT, reason) from None

    async def _forward(self, upstream: Upstream, headers: Mapping[str, str]) -> None:
        more: dict[str, Any] = {}
        if not self._dispatcher.holds:
            more = order_fields(upstream, self._call.priority, _told(self._call))
        content = self._out.content(more)
        self._tally = Tally()
        async with upstream.send(self._path, content, headers) as answer:
            self._span.answered(answer.status_code)
            if answer.status_code in _KEY_REFUSED:
                _log.error("engine %s refuses its key", upstream.engine.name)
                raise GatewayError(
                    502, "engine_refused", "the engine does not let the gateway in"
                )
            if 300 <= answer.status_code < 400:
                _log.error("engine %s sends elsewhere", upstream.engine.name)
                raise GatewayError(
                    502, "engine_refused", "the engine sends the gateway elsewhere"
                )
            kind = answer.headers.get("content-type", "")
            if answer.status_code == 200 and kind.startswith("text/event-stream"):
                await self._stream(answer)
            else:
                await self._whole(answer)

    async def _stream(self, answer: httpx.Response) -> None:
        """Pass a stream on, event by event, and count what is in it."""
        splitter = Splitter()
        async for part in answer.aiter_raw():
            await self._pass_on(answer, splitter.feed(part))
        await self._pass_on(answer, [splitter.rest()])
        await self._settle(None)
        self._end()
        if not self._started:
            await self._start(answer, {})
        await self._send(b"", more=False)

    async def _pass_on(self, answer: httpx.Response, events: Iterable[bytes]) -> None:
        """Pass events on; the answer begins with the first, and not before."""
        passed = b"".join([event for event in events if self._count(event)])
        if self._tally.ended:
            await self._settle(None)  # before the client can know that it is done
        if not passed:
            return
        if not self._started:
            self._events = True
            await self._start(answer, {})
            self.outcome.first = time.monotonic() - self._came
        await self._send(passed)

    def _count(self, event: bytes) -> bool:
        """Book the tokens of an event; return whether it is for the client."""
        tokens, usage_alone = self._tally.event(event)
        for index, count in tokens.items():
            self._dispatcher.produced(self._call, self._inference(index), count)
        return not (usage_alone and self._out.hides_usage)

    def _inference(self, index: int) -> int:
        return index if 0 <= index < len(self._call.prompts) else 0

    async def _whole(self, answer: httpx.Response) -> None:
        """Pass on an answer that comes in one piece, when all of it is there."""
        parts: list[bytes] = []
        length = 0
        async for part in answer.aiter_raw():
            length += len(part)
            if length > LARGEST_ANSWER:
                raise GatewayError(
                    502, "answer_too_large", "the engine's answer is too large"
                )
            parts.append(part)
        body = b"".join(parts)
        if answer.status_code == 200:
            await self._settle(self._tally.whole(body))
        self._end()
        await self._start(answer, {"content-length": str(len(body))})
        await self._send(body, more=False)

    async def _settle(self, characters: int | None) -> None:
        """Tell what the engine counted, or what can be guessed of it, and keep it."""
        if self._settled:
            return
        self._settled = True
        call, model = self._call, self._call.model or ""
        tokens = self._tally.count("completion_tokens")
        if tokens is None and characters is not None:
            tokens = round(characters * self._ratios.ratio(model)) or 1
        total = self._tally.count("prompt_tokens")
        prompts: list[int] | None = None
        if total is not None:
            self._ratios.learn(model, self._lengths.each, total)
            thought = sum(call.prompts[:: self._lengths.choices])
            prompts = [round(prompt * total / thought) for prompt in call.prompts]
        self._dispatcher.settle(call, prompts, tokens)
        if self._record is not None:
            await self._record(call, prompts or call.prompts)

    async def _fail(self, error: GatewayError) -> None:
        """Answer with an error, as far as that can still be done."""
        self.outcome.status, self.outcome.code = error.status, error.code
        body = json.dumps(error.told()).encode()
        try:
            if not self._started:
                headers = {
                    "content-type": "application/json",
                    "content-length": str(len(body)),
                }
                await self._begin(error.status, headers)
                await self._send(body, more=False)
            elif self._events:  # a blank line ends what the engine may have begun
                await self._send(b"\n\ndata: " + body + b"\n\n", more=False)
        except Stalled:
            return

    async def _start(self, answer: httpx.Response, more: Mapping[str, str]) -> None:
        headers = {
            name: answer.headers[name] for name in _PASSED_ON if name in answer.headers
        }
        self.outcome.status = answer.status_code
        await self._begin(answer.status_code, {**headers, **more})

    async def _begin(self, status: int, headers: Mapping[str, str]) -> None:
        self._started = True
        pairs = {**headers, "x-request-id": self._call.id.rpartition("/")[2]}
        await self._hand_over(
            {
                "type": "http.response.start",
                "status": status,
                "headers": [
                    (k.encode(), v.encode("latin-1")) for k, v in pairs.items()
                ],
            }
        )

    async def _send(self, body: bytes, *, more: bool = True) -> None:
        await self._hand_over(
            {"type": "http.response.body", "body": body, "more_body": more}
        )

    async def _hand_over(self, message: dict[str, Any]) -> None:
        """Give something to the client; it waits while the client does not read."""
        try:
            async with asyncio.timeout(self._limits.stall_seconds):
                await self._send_message(message)
        except (TimeoutError, OSError):
            raise Stalled from None


def new_call_id(tenant: str) -> str:
    """Return an id for a call."""
    return f"{tenant}/{uuid4().hex}"


def _told(call: Call) -> dict[str, object]:
    """Return what a call says of its agent, as its client said it."""
    told = {
        each.name: getattr(call.claim, each.name)
        for each in fields(call.claim)
        if each.name not in ("faults", "reasons")
    }
    if call.claim.agent is not None:
        told["agent"] = call.claim.agent.partition("/")[2]
    return told


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
