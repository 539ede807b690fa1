"""The gateway as an ASGI application."""

import asyncio
import contextlib
import json
import logging
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Any

import httpx
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from justitia import __version__
from justitia.engines.serving import Agents
from justitia.engines.serving.desk import Desk
from justitia.engines.serving.metrics import Scrape
from justitia.engines.serving.priorities import SGLANG, VLLM, Priorities
from justitia.engines.serving.watch import Watched
from justitia.gateway import page
from justitia.gateway.agents import AgentsDesk
from justitia.gateway.description import describe
from justitia.gateway.dispatcher import Call, Dispatcher, predicting
from justitia.gateway.errors import CLIENT_GONE, GatewayError
from justitia.gateway.estimates import Pace
from justitia.gateway.exchange import Exchange, Outcome, new_call_id
from justitia.gateway.fleet import Engine, Fleet
from justitia.gateway.identity import of_tenant, read_identity
from justitia.gateway.lengths import Ratios, read_lengths
from justitia.gateway.measures import Measures
from justitia.gateway.memory import Memory
from justitia.gateway.overview import Overview
from justitia.gateway.requests import (
    ClientGone,
    outgoing,
    read_body,
    read_object,
    too_deep,
)
from justitia.gateway.settings import GatewaySettings
from justitia.gateway.shares import Shares
from justitia.gateway.spans import Span, tracer
from justitia.gateway.tenants import Tenants
from justitia.gateway.upstream import Upstream, keep_looking

_UNBOUNDED = 32_768
"""Tokens that a request may produce where neither it nor an engine says."""
_EXPIRE_SECONDS = 1.0
_log = logging.getLogger("justitia.gateway")

Answer = Callable[[str, Request], Awaitable[dict[str, Any]]]


class Gateway:
    """All parts of a gateway, and the routes to them.

    Parameters
    ----------
    transport
        What engines are looked at through, the network where None.

    Attributes
    ----------
    app
        For an ASGI server.
    """

    def __init__(
        self,
        settings: GatewaySettings,
        *,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.settings = settings
        self.tenants = Tenants(settings.tenants, settings.operator_key)
        adapter = settings.adapter
        policy = (
            Shares(adapter.make, self.tenants.weights)
            if settings.tenants
            else adapter.make()
        )
        watched = Watched(policy, now=time.monotonic)
        self.memory: Memory | None = None
        if settings.store is not None:
            self.memory = Memory(settings.store, settings)
            watched = self.memory.watched or watched
            agents: Agents = self.memory.agents(watched)
        else:
            agents = Agents(
                watched,
                now=time.monotonic,
                linger=adapter.linger,
                most=adapter.most_agents,
                predict=adapter.predict,
            )
        engines = [
            Engine(
                one.url,
                capacity=None if one.capacity == "auto" else one.capacity,
                slots=one.slots,
            )
            for one in settings.engines
        ]
        holds = settings.dispatch == "gateway"
        self.dispatcher = Dispatcher(
            agents,
            Fleet(engines),
            caps=self.tenants.caps,
            holds=holds,
            priorities={} if holds else _priorities(settings),
        )
        self.upstreams = {
            engine.name: Upstream(engine, one, settings.limits, transport)
            for engine, one in zip(engines, settings.engines, strict=True)
        }
        self.ratios = Ratios()
        self.pace = Pace()
        self.desk = AgentsDesk(
            self.dispatcher,
            self.ratios,
            self.pace,
            settings.default_tokens,
            adapter.predict,
        )
        facts = {
            "engine": "gateway",
            "engine_version": __version__,
            "capacity_tokens": None,
        }
        self.overview = Overview(
            self.dispatcher,
            watched,
            desk=self.desk,
            pace=self.pace,
            tenants=self.tenants,
            upstreams=self.upstreams,
            policy=adapter.policy,
        )
        self._policy_desk = Desk(agents, watched, adapter, facts)
        self.tracer = tracer(settings)
        self._registry = CollectorRegistry()
        self._scrape = Scrape(time.monotonic)
        self._registry.register(self._scrape)
        self._measures = Measures(self._registry, self.dispatcher)
        self._description = describe(
            keys=self.tenants.several, state_key=self.tenants.keyed
        )
        self.app = Starlette(
            routes=self._routes(),
            lifespan=self._life,
            exception_handlers={HTTPException: _no_route, Exception: _failed},
        )
        # To where a client's own header ``Host`` says nobody is sent.
        self.app.router.redirect_slashes = False

    def _routes(self) -> list[Route]:
        return [
            Route("/v1/chat/completions", _Post(self._serve, chat=True)),
            Route("/v1/completions", _Post(self._serve, chat=False)),
            Route("/v1/models", self._guarded(self._models), methods=["GET"]),
            Route("/v1/models/{id:path}", self._guarded(self._model), methods=["GET"]),
            Route("/v1/agents", self._guarded(self._announce, 201), methods=["POST"]),
            Route(
                "/v1/agents/{id:path}",
                self._guarded(self._agent),
                methods=["GET", "DELETE"],
            ),
            Route("/openapi.json", self._described, methods=["GET"]),
            Route("/healthz", _alive, methods=["GET"]),
            Route("/readyz", self._ready, methods=["GET"]),
            Route("/metrics", self._metrics, methods=["GET"]),
            Route("/v1/state", self._state, methods=["GET"]),
            *page.routes(keyed=self.tenants.keyed),
        ]

    @contextlib.asynccontextmanager
    async def _life(self, app: Starlette) -> AsyncIterator[None]:
        tasks = [
            asyncio.create_task(keep_looking(one, self.dispatcher))
            for one in self.upstreams.values()
        ]
        tasks.append(asyncio.create_task(self._tick()))
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            for upstream in self.upstreams.values():
                await upstream.close()
            if self.memory is not None:
                self.memory.close()
            await asyncio.to_thread(self.tracer.close)

    async def _tick(self) -> None:
        """Let time pass for the policy and the pace."""
        last = time.monotonic()
        while True:
            await asyncio.sleep(_EXPIRE_SECONDS)
            now = time.monotonic()
            busy = any(engine.running for engine in self.dispatcher.fleet)
            self.pace.sample(self.dispatcher.delivered, now - last, busy=busy)
            self.overview.sample(now - last)
            last = now
            self.dispatcher.expire()
            if self.memory is not None:
                self.memory.keep_if_due()

    # Requests ---------------------------------------------------------------------

    async def _serve(
        self, scope: Scope, receive: Receive, send: Send, chat: bool
    ) -> None:
        came = time.monotonic()
        endpoint = "chat" if chat else "completions"
        tenant = "none"
        outcome = Outcome()
        call: Call | None = None
        operation = "chat" if chat else "text_completion"
        span = self.tracer.begin(scope, operation)
        try:
            tenant = self.tenants.of(scope["headers"])
            raw = await self._body(receive)
            try:
                exchange, call = self._exchange(
                    tenant, scope, raw, send, span, chat=chat
                )
            except RecursionError:
                raise too_deep() from None
        except GatewayError as error:
            outcome.status, outcome.code = error.status, error.code
            await _refused(error)(scope, receive, send)
        except ClientGone:
            outcome.status, outcome.code = CLIENT_GONE, "client_gone"
        else:
            outcome = exchange.outcome
            await exchange.run(receive)
        finally:
            span.end(tenant, outcome)
            self._measures.count(tenant, endpoint, outcome)
            _log.info(
                "request",
                extra={"fields": _line(call, tenant, endpoint, outcome, came)},
            )

    async def _body(self, receive: Receive) -> bytes:
        limits = self.settings.limits
        try:
            async with asyncio.timeout(limits.stall_seconds):
                return await read_body(receive, limits.body_bytes)
        except TimeoutError:
            raise GatewayError(
                408, "body_timeout", "the body did not come in time"
            ) from None

    def _exchange(
        self,
        tenant: str,
        scope: Scope,
        raw: bytes,
        send: Send,
        span: Span,
        *,
        chat: bool,
    ) -> tuple[Exchange, Call]:
        body = read_object(raw)
        claim = read_identity(scope["headers"], body)
        lengths = read_lengths(body, chat=chat)
        out = outgoing(body, raw)
        model = body.get("model")
        if model is not None and not isinstance(model, str):
            raise GatewayError(400, "invalid_value", "model must be a text", "model")
        prompts = tuple(
            self.ratios.tokens(model or "", prompt)
            for prompt in lengths.each
            for _ in range(lengths.choices)
        )
        most = lengths.most
        if most is None:
            context = self.dispatcher.fleet.context(model) or _UNBOUNDED
            most = max(1, context - max(prompts))
        claim = predicting(claim, self.desk.claim_predicting(claim, lengths.most))
        self.desk.note_steps(most, model)
        call = Call(
            new_call_id(tenant),
            tenant,
            of_tenant(claim, tenant),
            prompts,
            most,
            model,
            lengths.marks,
        )
        span.about(call, lengths.most, lengths.choices)
        exchange = Exchange(
            self.dispatcher,
            self.upstreams,
            self.settings.limits,
            self.ratios,
            call=call,
            lengths=lengths,
            path=scope["path"],
            out=out,
            send=send,
            record=None
            if self.memory is None
            else self.memory.recorder(lengths.text, lengths.most),
            span=span,
        )
        return exchange, call

    # The rest -----------------------------------------------------------------------

    def _guarded(
        self, answer: Answer, status: int = 200
    ) -> Callable[[Request], Awaitable[Response]]:
        async def guarded(request: Request) -> Response:
            try:
                tenant = self.tenants.of(request.scope["headers"])
                return _Ascii(await answer(tenant, request), status)
            except GatewayError as error:
                return _refused(error)

        return guarded

    async def _models(self, tenant: str, request: Request) -> dict[str, Any]:
        models = self.dispatcher.fleet.models.items()
        return {"object": "list", "data": [_model(*one) for one in models]}

    async def _model(self, tenant: str, request: Request) -> dict[str, Any]:
        name = request.path_params["id"]
        models = self.dispatcher.fleet.models
        if name not in models:
            raise GatewayError(
                404, "model_not_found", "no engine serves such a model", "model"
            )
        return _model(name, models[name])

    async def _announce(self, tenant: str, request: Request) -> dict[str, Any]:
        try:
            raw = await self._body(request.receive)
        except ClientGone:
            raise GatewayError(400, "client_gone", "the client went away") from None
        told = self.desk.announce(tenant, read_object(raw))
        if self.memory is not None:
            await self.memory.store.flushed()
        return told

    async def _agent(self, tenant: str, request: Request) -> dict[str, Any]:
        name = request.path_params["id"]
        if request.method != "DELETE":
            return self.desk.describe(tenant, name)
        told = self.desk.dismiss(tenant, name)
        if self.memory is not None:
            await self.memory.store.flushed()
        return told

    async def _described(self, request: Request) -> Response:
        return _Ascii(self._description)

    async def _ready(self, request: Request) -> Response:
        engines = {one.name: one.up for one in self.dispatcher.fleet}
        ready = any(engines.values())
        return _Ascii({"ready": ready, "engines": engines}, 200 if ready else 503)

    async def _metrics(self, request: Request) -> Response:
        if not self._scrape.fresh:
            state, histograms = (
                self._policy_desk.state(),
                self._policy_desk.histograms(),
            )
            self._scrape.put([{**state, "histograms": histograms}])
        return Response(generate_latest(self._registry), media_type=CONTENT_TYPE_LATEST)

    async def _state(self, request: Request) -> Response:
        try:
            viewer = self.tenants.viewer(request.scope["headers"])
        except GatewayError as error:
            return _refused(error)
        told = await self.overview.told(viewer)
        headers = {"cache-control": "no-store", "x-content-type-options": "nosniff"}
        return Response(told, media_type="application/json", headers=headers)


class _Ascii(JSONResponse):
    """JSON in ASCII: what clients and engines send need not be text that UTF-8 has."""

    def render(self, content: object) -> bytes:
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode()


class _Post:
    """An endpoint that is given the connection itself, for POST alone."""

    def __init__(
        self,
        serve: Callable[[Scope, Receive, Send, bool], Awaitable[None]],
        *,
        chat: bool,
    ) -> None:
        self._serve = serve
        self._chat = chat

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] != "POST":
            raise HTTPException(405, headers={"Allow": "POST"})
        await self._serve(scope, receive, send, self._chat)


async def _alive(request: Request) -> Response:
    return _Ascii({"status": "ok", "version": __version__})


async def _no_route(request: Request, error: Exception) -> Response:
    """Answer where there is no such route, or none for such a method."""
    assert isinstance(error, HTTPException)
    headers = error.headers or {}
    if error.status_code != 405:
        return _refused(GatewayError(404, "not_found", "there is no such route"))
    allowed = ", ".join(sorted(headers["Allow"].split(", ")))
    told = GatewayError(405, "method_not_allowed", f"allowed is {allowed}")
    return _refused(told, {"Allow": allowed})


async def _failed(request: Request, error: Exception) -> Response:
    """Answer where the gateway itself is at fault; what was wrong is logged."""
    return _refused(GatewayError(500, "internal_error", "the gateway has failed"))


def _refused(error: GatewayError, headers: Mapping[str, str] | None = None) -> Response:
    return _Ascii(error.told(), error.status, headers)


def _model(name: str, context: int | None) -> dict[str, Any]:
    return {
        "id": name,
        "object": "model",
        "created": 0,
        "owned_by": "justitia",
        "max_model_len": context,
    }


def _priorities(settings: GatewaySettings) -> dict[str, Priorities]:
    return {
        one.url: Priorities(SGLANG if one.kind == "sglang" else VLLM)
        for one in settings.engines
        if one.orders == "priority"
    }


def _line(
    call: Call | None, tenant: str, endpoint: str, outcome: Outcome, came: float
) -> Mapping[str, object]:
    """Return what is logged of a request."""
    told: dict[str, object] = {
        "tenant": tenant,
        "endpoint": endpoint,
        "status": outcome.status,
        "seconds": round(time.monotonic() - came, 4),
        "queued": round(outcome.queued, 4),
    }
    if outcome.code:
        told["code"] = outcome.code
    if call is not None:
        agent = call.claim.agent
        told |= {
            "id": call.id.rpartition("/")[2],
            "agent": None if agent is None else agent.partition("/")[2],
            "kind": call.claim.kind or None,
            "prompt_tokens": outcome.prompt_tokens,
            "tokens": outcome.tokens,
        }
    return told
