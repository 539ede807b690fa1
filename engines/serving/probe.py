"""Whether a stock server honours priorities, found out by asking it to.

A server that was not started for priorities may refuse them, or take and ignore them:
vLLM 0.32 with its default ``--scheduling-policy fcfs`` answers 200 to every priority
and goes on first come, first served, and so does SGLang 0.5. SGLang also has two
directions, and by default lets what waits preempt what runs. It tells how it was
started, which vLLM does not; what it tells is checked, and then both are put to the
test: `probe` fills the server with requests of low priority until some of them wait,
sends one of high priority, and looks whether it overtakes those that wait.

It costs the server some seconds of its time and is meant for a start, when nothing else
runs there.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from justitia.engines.base import EngineError

if TYPE_CHECKING:
    import httpx

URGENT, LOW = -1_000_000, 1_000_000
"""Smaller goes first."""
LONGEST = 512
"""Tokens of a request at most."""
_WAVE = 64
_SETTLED = 16
"""Tokens that somebody got while another got none: then that one waits."""
_WAITING = (16, 64, 64)
"""Requests that must wait before the urgent one is sent, try by try: a server that is
slow to hear of it starts many meanwhile."""
_OVERTAKEN = 4
"""One in so many of them must start after it. First come, first served, none does, but
for those whose first tokens are on their way when it has its own."""
_HOW = {
    "vllm": "Start vLLM with --scheduling-policy priority",
    "sglang": "Start SGLang with --enable-priority-scheduling "
    "--schedule-low-priority-values-first --disable-priority-preemption",
}
"""By the owner of its models, as it has it."""
_WITHOUT = {
    "enable_priority_scheduling": "takes priorities and ignores them",
    "schedule_low_priority_values_first": "takes the larger priority first",
    "disable_priority_preemption": "lets what waits preempt what runs",
}
"""What SGLang does where it was not started with one of its flags."""


class PriorityIgnored(EngineError):
    """A server that refuses priorities, ignores them, or could not be made to show."""


class _Filler:
    """A request of low priority that keeps the server busy."""

    def __init__(self) -> None:
        self.sent = False
        self.tokens = 0
        self.ended = False


class _Probe:
    def __init__(
        self, client: "httpx.AsyncClient", model: str, longest: int, how: str
    ) -> None:
        self._client = client
        self._model = model
        self._longest = longest
        self._how = how
        self._fillers: list[_Filler] = []
        self._changed = asyncio.Condition()
        self._failure: str | None = None

    async def run(self, most: int) -> None:
        await self._accepts()
        fault: PriorityIgnored | None = None
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = []
            try:
                for least in _WAITING:
                    waiting = await self._fill_up(group, tasks, least, most)
                    if len(waiting) < least and fault is not None:
                        break
                    if len(waiting) < least:
                        raise PriorityIgnored(
                            f"{most} requests at once left none waiting, so whether "
                            "the server honours priorities cannot be told"
                        )
                    await self._send(URGENT, 1)
                    fault = self._overtaken(waiting)
                    if fault is None:
                        break
            finally:
                for task in tasks:
                    task.cancel()
        if fault is not None:
            raise fault

    async def _fill_up(
        self,
        group: asyncio.TaskGroup,
        tasks: list[asyncio.Task[None]],
        least: int,
        most: int,
    ) -> list[_Filler]:
        """Send requests until so many wait, or it is enough; return those that wait."""
        waiting: list[_Filler] = []
        while len(waiting) < least and len(tasks) < most:
            wave = min(_WAVE, most - len(tasks))
            tasks += [group.create_task(self._fill()) for _ in range(wave)]
            waiting = await self._settle(len(tasks))
        return waiting

    def _overtaken(self, waiting: list[_Filler]) -> PriorityIgnored | None:
        """Return what is wrong if too many that waited went before the urgent one."""
        late = sum(not filler.tokens for filler in waiting)
        if late * _OVERTAKEN >= len(waiting):
            return None
        return PriorityIgnored(
            "the server takes priorities and ignores them: "
            f"{len(waiting) - late} of {len(waiting)} requests of low priority "
            f"that waited started before one of high priority. {self._how}"
        )

    async def _accepts(self) -> None:
        answer = await self._send(LOW, 1)
        if answer.status_code >= 400:
            raise PriorityIgnored(
                f"the server refuses a priority ({answer.status_code}): "
                f"{answer.text[:300]}. {self._how}"
            )

    async def _send(self, priority: int, tokens: int) -> "httpx.Response":
        return await self._client.post("completions", json=self._body(priority, tokens))

    def _body(self, priority: int, tokens: int, **more: object) -> dict[str, Any]:
        return {
            "model": self._model,
            "prompt": "a",
            "max_tokens": tokens,
            "ignore_eos": True,
            "temperature": 0,
            "priority": priority,
            **more,
        }

    async def _fill(self) -> None:
        filler = _Filler()
        # No two of a wave end at once, so that places become free one by one.
        ends = self._longest // 2 + len(self._fillers) * 7 % (self._longest // 2)
        self._fillers.append(filler)
        body = self._body(LOW, ends, stream=True)

        async def trace(event: str, _: object) -> None:
            # SGLang answers with the first token only.
            if event.endswith("send_request_body.complete"):
                await self._tell(filler, sent=True)

        async with self._client.stream(
            "POST", "completions", json=body, extensions={"trace": trace}
        ) as answer:
            if answer.status_code >= 400:
                self._failure = f"the server answered {answer.status_code}"
            await self._tell(filler, sent=True)
            async for line in answer.aiter_lines():
                if line.startswith("data: {") and json.loads(line[6:]).get("choices"):
                    await self._tell(filler, token=True)
        await self._tell(filler, ended=True)

    async def _tell(
        self,
        filler: _Filler,
        *,
        sent: bool = False,
        token: bool = False,
        ended: bool = False,
    ) -> None:
        async with self._changed:
            filler.sent |= sent
            filler.tokens += token
            filler.ended |= ended
            self._changed.notify_all()

    async def _settle(self, sent: int) -> list[_Filler]:
        """Wait until it shows which of the requests sent so far wait; return those."""
        async with self._changed:
            await self._changed.wait_for(
                lambda: (
                    self._failure
                    or (
                        len(self._fillers) == sent
                        and all(filler.sent for filler in self._fillers)
                    )
                )
            )
            before = {id(filler): filler.tokens for filler in self._fillers}
            await self._changed.wait_for(
                lambda: (
                    self._failure
                    or all(filler.ended for filler in self._fillers)
                    or any(
                        filler.tokens >= before[id(filler)] + _SETTLED
                        for filler in self._fillers
                    )
                )
            )
        if self._failure:
            raise PriorityIgnored(self._failure)
        return [filler for filler in self._fillers if not filler.tokens]


async def probe(
    url: str,
    *,
    api_key: str | None = None,
    most: int = 4096,
    seconds: float = 300.0,
    transport: "httpx.AsyncBaseTransport | None" = None,
) -> None:
    """Return if a server honours priorities, smaller first.

    Parameters
    ----------
    url
        The base of its API, ending in ``/v1``.
    api_key
        Sent as a bearer token.
    most
        Requests of low priority that it is sent at most.
    seconds
        For which the server may take.
    transport
        What the requests go through, the network where None.

    Raises
    ------
    PriorityIgnored
        If it refuses priorities or ignores them, has another direction, or lets what
        waits preempt what runs; or it cannot be told.
    """
    import httpx  # noqa: PLC0415 - of the extra "gateway"

    async with _connected(url, api_key, transport) as client:
        try:
            async with asyncio.timeout(seconds):
                models = (await client.get("models")).raise_for_status().json()["data"]
                how = _HOW.get(
                    str(models[0].get("owned_by")), " or ".join(_HOW.values())
                )
                if how == _HOW["sglang"]:
                    await _started_right(client)
                context = models[0].get("max_model_len") or 512
                longest = max(64, min(context - 16, LONGEST))
                await _Probe(client, models[0]["id"], longest, how).run(most)
        except PriorityIgnored:
            raise
        except TimeoutError:
            raise PriorityIgnored(
                f"after {seconds:g} seconds the server has not shown whether it "
                "honours priorities"
            ) from None
        except (httpx.HTTPError, LookupError, ValueError) as error:
            raise PriorityIgnored(f"{url} is no such server: {error!r}") from None
        except BaseExceptionGroup as group:
            first = group.exceptions[0]
            if isinstance(first, PriorityIgnored):
                raise first from None
            raise PriorityIgnored(f"{url} failed: {first!r}") from None


async def _started_right(client: "httpx.AsyncClient") -> None:
    """Return if an SGLang says that it was started for priorities, smaller first."""
    answer = await client.get(client.base_url.join("../server_info"))
    told = answer.json() if answer.status_code == 200 else {}
    for flag, otherwise in _WITHOUT.items():
        if told.get(flag) is not True:
            does = otherwise if flag in told else f"does not say whether {flag}"
            raise PriorityIgnored(f"the server {does}. {_HOW['sglang']}")


@asynccontextmanager
async def _connected(
    url: str, api_key: str | None, transport: "httpx.AsyncBaseTransport | None"
) -> "AsyncIterator[httpx.AsyncClient]":
    import httpx  # noqa: PLC0415 - of the extra "gateway"

    headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
    async with httpx.AsyncClient(
        base_url=url,
        headers=headers,
        transport=transport,
        timeout=None,
        # A server may close a connection at rest just as it is used again.
        limits=httpx.Limits(max_connections=None, max_keepalive_connections=0),
    ) as client:
        yield client
