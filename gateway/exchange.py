"""One request of a client, from its body to the last byte of its answer.

`Exchange.run` waits for the turn, sends, and passes on what comes; beside it a task
watches whether the client is still there. However it ends (an answer, an error, a
client that goes away, an engine that dies, an agent that is cancelled), the call is
taken out of the dispatcher once, before anything else is awaited.
"""

import asyncio
import json
import logging
import re
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import partial
from typing import Any
from uuid import uuid4

from starlette.types import Receive, Send

from justitia.gateway.connections import Answer
from justitia.gateway.dispatcher import Call, Dispatcher, Phase
from justitia.gateway.errors import CLIENT_GONE, QUEUE_TIMEOUT, GatewayError
from justitia.gateway.events import Splitter, Tally
from justitia.gateway.lengths import Lengths, Ratios
from justitia.gateway.patience import Patience
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
_PASSED_ON = (b"content-type", b"content-encoding", b"retry-after")
_PLAIN = re.compile(rb"[\t\x20-\x7e\x80-\xff]*")
"""What may be in a header; some parsers let more in."""
_KEY_REFUSED = (401, 403)
_MOST_GATHERED = 64 * 1024
"""Bytes that are passed on together, about."""

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
        self._task: asyncio.Task[None] | None = None  # that may be stopped
        self._started = False  # the answer to the client
        self._events = False  # it is a stream of events
        self._tally = Tally()
        self._counted: dict[int, int] = {}  # tokens that are not booked yet
        self._gathered: list[bytes] = []  # events that are not passed on yet
        self._gathered_bytes = 0
        self._patience = Patience(limits.stall_seconds)
        self.outcome = Outcome()
        call.on_turn = self._turn.set
        call.on_cancel = self._stop

    async def run(self, receive: Receive) -> Outcome:
        """Serve the request; never raises for what clients and engines do."""
        self._task = asyncio.current_task()
        watch = asyncio.create_task(self._watch(receive))
        try:
            await self._work()
        except asyncio.CancelledError:
            if self._task is not None:
                raise  # nobody here did that: the server is told to stop
            asyncio.current_task().uncancel()  # type: ignore[union-attr]
            if self._call.error is not None:
                await self._fail(self._call.error)
            else:
                self.outcome.status, self.outcome.code = CLIENT_GONE, "client_gone"
        finally:
            self._task = None
            self._end()
            watch.cancel()
            self._patience.close()
        return self.outcome

    async def _watch(self, receive: Receive) -> None:
        """Stop when the client goes away."""
        while (await receive())["type"] != "http.disconnect":
            pass
        self._stop()

    def _stop(self) -> None:
        """Take the call out and let the work end, unless it has ended."""
        task, self._task = self._task, None
        if task is not None:
            self._end()
            task.cancel()

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
                await self._wait()
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

    async def _wait(self) -> None:
        """Wait for the turn of the call."""
        if self._turn.is_set():
            return
        left = self._came + self._limits.queue_seconds - time.monotonic()
        try:
            async with asyncio.timeout(max(0.0, left)):
                await self._turn.wait()
        except TimeoutError:
            if self._call.phase is Phase.RUNNING:  # in the same moment
                return
            self.outcome.queued = time.monotonic() - self._came
            reason = f"not started within {self._limits.queue_seconds:g} seconds"
            raise GatewayError(503, QUEUE_TIMEOUT, reason) from None

    async def _forward(self, upstream: Upstream, headers: Mapping[str, str]) -> None:
        more: dict[str, Any] = {}
        if not self._dispatcher.holds:
            more = order_fields(upstream, self._call.priority, _told(self._call))
        content = self._out.content(more)
        self._tally = Tally()
        self._gathered, self._gathered_bytes, self._counted = [], 0, {}
        async with upstream.send(self._path, content, headers) as answer:
            self._span.answered(answer.status)
            if answer.status in _KEY_REFUSED:
                _log.error("engine %s refuses its key", upstream.engine.name)
                raise GatewayError(
                    502, "engine_refused", "the engine does not let the gateway in"
                )
            if 300 <= answer.status < 400:
                _log.error("engine %s sends elsewhere", upstream.engine.name)
                raise GatewayError(
                    502, "engine_refused", "the engine sends the gateway elsewhere"
                )
            kind = answer.headers.get(b"content-type", b"")
            if answer.status == 200 and kind.startswith(b"text/event-stream"):
                last, length = await self._stream(answer), None
            else:
                last = await self._whole(answer)
                length = len(last)
        # The engine is done with, and whoever reads slowly keeps nothing of it.
        self._end()
        if not self._started:
            await self._start(answer, length)
        await self._send(last, more=False)

    async def _stream(self, answer: Answer) -> bytes:
        """Pass a stream on, and count what is in it; return the end of it.

        What has come is passed on when the engine has no more to say at the moment: who
        is behind catches up by larger parts.
        """
        splitter = Splitter()
        answer.wire.before_waiting = partial(self._pass_on, answer)
        async for part in answer.parts:
            for event in splitter.feed(part):
                self._count(event)
            if self._tally.ended:
                await self._settle(None)  # before the client can know that it is done
            if self._gathered_bytes > _MOST_GATHERED:
                await self._pass_on(answer)
        self._count(splitter.rest())
        await self._settle(None)
        if self._gathered and not self._started:
            await self._begin_events(answer)
        return b"".join(self._gathered)

    async def _pass_on(self, answer: Answer) -> None:
        """Pass on what was gathered; the answer begins with it, and not before."""
        self._book()
        if not self._gathered:
            return
        passed = b"".join(self._gathered)
        self._gathered.clear()
        self._gathered_bytes = 0
        if not self._started:
            await self._begin_events(answer)
        await self._send(passed)

    async def _begin_events(self, answer: Answer) -> None:
        self._events = True
        await self._start(answer)
        self.outcome.first = time.monotonic() - self._came

    def _count(self, event: bytes) -> None:
        """Count the tokens of an event, and keep it if it is for the client."""
        tokens, usage_alone = self._tally.event(event)
        for choice in tokens:
            index = choice if 0 <= choice < len(self._call.prompts) else 0
            self._counted[index] = self._counted.get(index, 0) + 1
        if event and not (usage_alone and self._out.hides_usage):
            self._gathered.append(event)
            self._gathered_bytes += len(event)

    def _book(self) -> None:
        """Book the tokens that were counted."""
        for index, tokens in self._counted.items():
            self._dispatcher.produced(self._call, index, tokens)
        self._counted.clear()

    async def _whole(self, answer: Answer) -> bytes:
        """Return an answer that comes in one piece, when all of it is there."""
        parts: list[bytes] = []
        length = 0
        async for part in answer.parts:
            length += len(part)
            if length > LARGEST_ANSWER:
                raise GatewayError(
                    502, "answer_too_large", "the engine's answer is too large"
                )
            parts.append(part)
        body = b"".join(parts)
        if answer.status == 200:
            await self._settle(self._tally.whole(body))
        return body

    async def _settle(self, characters: int | None) -> None:
        """Tell what the engine counted, or what can be guessed of it, and keep it."""
        if self._settled:
            return
        self._settled = True
        self._book()
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
                kind = (b"content-type", b"application/json")
                await self._begin(error.status, [kind], len(body))
                await self._send(body, more=False)
            elif self._events:  # a blank line ends what the engine may have begun
                await self._send(b"\n\ndata: " + body + b"\n\n", more=False)
        except Stalled:
            return

    async def _start(self, answer: Answer, length: int | None = None) -> None:
        told = answer.headers
        headers = [
            (n, told[n]) for n in _PASSED_ON if n in told and _PLAIN.fullmatch(told[n])
        ]
        self.outcome.status = answer.status
        await self._begin(answer.status, headers, length)

    async def _begin(
        self, status: int, headers: list[tuple[bytes, bytes]], length: int | None
    ) -> None:
        self._started = True
        if length is not None:
            headers.append((b"content-length", b"%d" % length))
        shown = self._call.id.rpartition("/")[2]
        headers.append((b"x-request-id", shown.encode()))
        await self._hand_over(
            {"type": "http.response.start", "status": status, "headers": headers}
        )

    async def _send(self, body: bytes, *, more: bool = True) -> None:
        await self._hand_over(
            {"type": "http.response.body", "body": body, "more_body": more}
        )

    async def _hand_over(self, message: dict[str, Any]) -> None:
        """Give something to the client; it waits while the client does not read."""
        try:
            with self._patience:
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
