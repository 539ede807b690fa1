"""The front end's side: the proof at the start, routes and metrics of SGLang's server.

`launched` is called in SGLang's main process when its schedulers are ready, before the
server listens. Each scheduler has said then whether the policy is in it (`control`).
What SGLang checks of requests it checks of ours, too: its API key guards every route.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from itertools import count
from time import monotonic
from typing import TYPE_CHECKING, Any

from justitia.engines.serving.desk import in_force
from justitia.engines.sglang.control import KEY, question

if TYPE_CHECKING:
    from fastapi import FastAPI

HTTP_SERVER = "sglang.srt.entrypoints.http_server"


class FrontEnd:
    """Asks the desks of all schedulers, one for each rank of data parallelism.

    Parameters
    ----------
    manager
        SGLang's ``TokenizerManager``.
    """

    def __init__(self, manager: Any) -> None:
        self._manager = manager
        self._calls = count()
        self._measuring: asyncio.Task[list[dict[str, Any]]] | None = None

    async def ask(self, verb: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        """Return what the desks say.

        SGLang gives an answer to whoever waits when it comes, so one who asked and went
        away would leave it to the next: who asks here is waited for to the end, whoever
        cancels. A question for the measures that is still open is not asked again.
        """
        if verb != "measures":
            return await asyncio.shield(asyncio.ensure_future(self._ask(verb, given)))
        if self._measuring is None or self._measuring.done():
            self._measuring = asyncio.ensure_future(self._ask(verb, given))
        return await asyncio.shield(self._measuring)

    async def _ask(self, verb: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        call = next(self._calls)
        self._manager.auto_create_handle_loop()
        outputs = await self._manager.get_internal_state_communicator(
            question(call, verb, given)
        )
        answers = [output.internal_state.get(KEY) or {} for output in outputs]
        if any(answer.get("call") != call for answer in answers):
            raise RuntimeError("a scheduler did not answer, or another question")
        return [answer["told"] for answer in answers]


def launched(
    result: tuple[Any, ...], engine: type, server_args: Any, *args: Any, **kwargs: Any
) -> None:
    """Prove that the policy is in force, and give SGLang's server our routes.

    Called after ``Engine._launch_subprocesses``, whose `result` begins with the front
    end's manager, two others, what the schedulers said, and who watches over them.

    Raises
    ------
    SystemExit
        With the reason, if it is not in force; the schedulers are ended.
    """
    manager, schedulers = result[0], result[3]
    several = server_args.dp_size > 1
    if not several:  # else a controller keeps to itself what they said
        for told in schedulers.scheduler_infos:
            if KEY not in told:
                if result[4] is not None:
                    result[4].stop()  # it would end this process for their end
                _end(schedulers.all_child_pids)
                raise SystemExit(_NOT_IN_FORCE)
        if schedulers.scheduler_infos:
            _say(schedulers.scheduler_infos[0][KEY])
    server = sys.modules.get(HTTP_SERVER)
    if server is None or manager is None:
        return
    if server_args.tokenizer_worker_num > 1:
        print(
            "justitia: with several tokenizer workers there are no routes and metrics "
            "of the policy; its state is in /server_info",
            flush=True,
        )
        return
    front = FrontEnd(manager)
    attach(server.app, front, metrics=server_args.enable_metrics)
    if several:
        prove_first(server.app, front, lambda: _end(schedulers.all_child_pids))


def attach(app: "FastAPI", front: FrontEnd, *, metrics: bool) -> None:
    """Add the routes to a server's application, and the metrics to its own."""
    from starlette.routing import Route  # noqa: PLC0415 - SGLang brings these

    from justitia.engines.serving.http import Refresh, Routes  # noqa: PLC0415
    from justitia.engines.serving.metrics import Scrape  # noqa: PLC0415

    scrape = Scrape(monotonic)
    routes = Routes(front.ask, lambda _: True, scrape)
    app.router.routes.extend(routes.list())
    if metrics:
        # Before prometheus_client is imported it must know where processes write:
        # SGLang has said so by now. Its own route comes later, and would say the same
        # without ours.
        from prometheus_client import (  # noqa: PLC0415
            CollectorRegistry,
            make_asgi_app,
            multiprocess,
        )

        registry = CollectorRegistry()
        multiprocess.MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
        registry.register(scrape)
        answer = Refresh(make_asgi_app(registry=registry), routes.refresh)
        app.router.routes.append(Route("/metrics", answer))


def prove_first(app: "FastAPI", front: FrontEnd, end: Callable[[], object]) -> None:
    """Have a server ask all its schedulers before it listens, and stop if it must."""
    inner = app.router.lifespan_context

    @asynccontextmanager
    async def lifespan(app: "FastAPI") -> AsyncIterator[Any]:
        async with inner(app) as state:
            try:
                for told in await front.ask("state", {}):
                    _say(told)
            except Exception as error:
                print(f"{_NOT_IN_FORCE} ({error!r})", file=sys.stderr, flush=True)
                end()
                os._exit(1)  # whoever catches SystemExit would go on
            yield state

    app.router.lifespan_context = lifespan


_NOT_IN_FORCE = (
    "justitia: not in force, so this server stops: a scheduler is without the policy. "
    "SGLang's log says which plugins it loaded there"
)


def _say(told: Mapping[str, Any]) -> None:
    print(in_force(told, "SGLang"), flush=True)


def _end(children: list[int]) -> None:
    for child in children:
        with suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
