"""Routes by which agents are announced, revised and dismissed, and the state is read.

They are plain ASGI for any server built on Starlette; what they ask is a `Desk`, in
whichever process it is.

================================  ======================================  =============
route                             does                                    answers
================================  ======================================  =============
``POST /justitia/agents``         announces an agent: ``id``, ``cost``    201, 400, 409
                                  or ``stage_costs``, and, if known,
                                  ``kind``, ``weight``, ``inferences``
``GET /justitia/agents/{id}``     tells how it is with it                 200, 400, 404
``PATCH /justitia/agents/{id}``   makes its ``cost`` another              200, 400, 404
``DELETE /justitia/agents/{id}``  ends it and aborts its requests         200, 400, 404
``GET /justitia/state``           tells how things are                    200
``GET /justitia/metrics``         has the metrics alone, for servers of   200
                                  several front ends
================================  ======================================  =============

An id is percent-encoded in a path, slashes and all. Errors have OpenAI's form. All are
behind the server's API key where it has one.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from justitia.engines.serving.desk import Refusal, read_announcement, read_revision
from justitia.engines.serving.metrics import Scrape

PATH = "/justitia"
LARGEST_BODY = 256 * 1024
"""Bytes."""
PATIENCE_SECONDS = 2.0
"""For which a scrape waits for an engine that is busy; it may be in a long step."""

Ask = Callable[[str, Mapping[str, Any]], Awaitable[Sequence[dict[str, Any]]]]
"""Takes a verb and its object to the desk of every scheduler; returns their answers."""
Allowed = Callable[[Request], bool]
_SUMMED = ("aborted", "waiting", "running", "delivered")


class Routes:
    """The routes of one server.

    Parameters
    ----------
    ask
        How to reach the desks.
    allowed
        Whether a request may be answered.
    scrape
        What of the metrics is kept.
    """

    def __init__(self, ask: Ask, allowed: Allowed, scrape: Scrape) -> None:
        self._ask = ask
        self._allowed = allowed
        self._scrape = scrape

    def list(self) -> list[Route]:
        """Return the routes, for a router."""
        agents, agent = f"{PATH}/agents", f"{PATH}/agents/{{id:path}}"
        return [
            Route(agents, self._guarded(self._announce), methods=["POST"]),
            Route(agent, self._guarded(self._describe), methods=["GET"]),
            Route(agent, self._guarded(self._revise), methods=["PATCH"]),
            Route(agent, self._guarded(self._dismiss), methods=["DELETE"]),
            Route(f"{PATH}/state", self._guarded(self._state), methods=["GET"]),
            Route(f"{PATH}/metrics", self._guarded(self._metrics), methods=["GET"]),
        ]

    async def refresh(self) -> None:
        """Ask the desks for their measures, unless what is known is still fresh."""
        if self._scrape.fresh:
            return
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                told = await self._ask("measures", {})
        except TimeoutError:  # in a long step: what was known must do
            return
        except Exception:  # of an engine that is gone there is nothing to say
            told = ()
        self._scrape.put(told if all(one["status"] == 200 for one in told) else ())

    def _guarded(
        self, answer: Callable[[Request], Awaitable[Response]]
    ) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            if not self._allowed(request):
                return JSONResponse({"error": "Unauthorized"}, 401)
            try:
                return await answer(request)
            except Refusal as refusal:
                return _response([refusal.told()])

        return guarded

    async def _announce(self, request: Request) -> Response:
        given = await _read(request)
        read_announcement(given)
        return _response(await self._ask("announce", given))

    async def _revise(self, request: Request) -> Response:
        given = {"id": request.path_params["id"], **await _read(request)}
        if given["id"] != request.path_params["id"]:
            raise Refusal(400, "id must be the one in the path, if given", "id")
        read_revision(given)
        return _response(await self._ask("revise", given))

    async def _dismiss(self, request: Request) -> Response:
        return _response(await self._ask("dismiss", {"id": request.path_params["id"]}))

    async def _describe(self, request: Request) -> Response:
        return _response(await self._ask("describe", {"id": request.path_params["id"]}))

    async def _state(self, request: Request) -> Response:
        told = await self._ask("state", {})
        return JSONResponse({"ranks": [_without_status(one) for one in told]})

    async def _metrics(self, request: Request) -> Response:
        await self.refresh()
        return Response(self._scrape.text(), media_type=CONTENT_TYPE_LATEST)


class Refresh:
    """ASGI middleware that has the metrics asked for before they are scraped."""

    def __init__(self, app: ASGIApp, refresh: Callable[[], Awaitable[None]]) -> None:
        self._app = app
        self._refresh = refresh

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the server does."""
        if scope["type"] == "http":
            path = scope["path"].removeprefix(scope.get("root_path", ""))
            if path.rstrip("/") == "/metrics":
                await self._refresh()
        await self._app(scope, receive, send)


async def _read(request: Request) -> dict[str, Any]:
    """Return the JSON object in a request's body."""
    body = b""
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_BODY:
            raise Refusal(413, f"the body must have at most {LARGEST_BODY} bytes", None)
    try:
        given = json.loads(body)
    except (ValueError, RecursionError) as error:  # UTF-8 that is none, too
        raise Refusal(400, f"the body must be a JSON object: {error}", None) from None
    if not isinstance(given, dict):
        raise Refusal(400, "the body must be a JSON object", None)
    return given


def _response(answers: Sequence[dict[str, Any]]) -> Response:
    """Return what one scheduler says, or what several say as one.

    An agent is everywhere or nowhere as far as a client is told: what is not known is
    known nowhere, and any other error of one is an error. What cannot be summed, as a
    tag, is that of the scheduler which has most of the agent's requests.
    """
    well = [one for one in answers if one["status"] < 400]
    wrong = [one for one in answers if one["status"] >= 400]
    if well and all(one["status"] == 404 for one in wrong):
        busiest = max(well, key=_busy)
        told = dict(busiest)
        for field in _SUMMED:
            if field in told:
                told[field] = sum(one[field] for one in well)
    else:
        told = dict(max(wrong, key=lambda one: one["status"] != 404))
    return JSONResponse(_without_status(told), told["status"])


def _busy(answer: Mapping[str, Any]) -> int:
    return int(answer.get("waiting", 0) + answer.get("running", 0))


def _without_status(answer: Mapping[str, Any]) -> dict[str, Any]:
    return {field: value for field, value in answer.items() if field != "status"}
