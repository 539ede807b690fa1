"""The engines' side: requests go out, and an engine is asked how it is.

Nothing of a client's headers goes to an engine. What it gets is made here: what the
body is, what is wanted, and the engine's own key.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import httpx
from prometheus_client.parser import text_string_to_metric_families

from justitia.gateway.dispatcher import Dispatcher
from justitia.gateway.fleet import Engine
from justitia.gateway.settings import EngineSettings, Limits

_log = logging.getLogger("justitia.gateway")
_GONE = (502, 503, 504)
_LOOK_SECONDS = 10.0
_POOL = 16
"""Requests of one pool of connections at once."""
_CLOSE_SECONDS = 4.0
"""After which a connection at rest is not used again: servers close them after 5."""


class EngineLost(Exception):
    """An engine that cannot be reached, broke off, or says that it cannot serve."""


class EngineSilent(Exception):
    """An engine that sent nothing for too long."""


@dataclass(frozen=True, slots=True)
class Facts:
    """What an engine says of itself."""

    kind: str
    models: dict[str, int | None]
    capacity: int | None


class Upstream:
    """One engine, spoken to over HTTP.

    Parameters
    ----------
    engine
        Its place in the books.
    transport
        What requests go through, the network where None.
    """

    def __init__(
        self,
        engine: Engine,
        settings: EngineSettings,
        limits: Limits,
        transport: httpx.AsyncBaseTransport | None = None,
    ) -> None:
        self.engine = engine
        self.settings = settings
        self.kind: str = settings.kind
        self.worried = asyncio.Event()
        self.limits = limits
        self._transport = transport
        self._trust = httpx.create_ssl_context()
        self._client = self._connections()  # for looking at it
        self._pools: list[tuple[httpx.AsyncClient, set[object]]] = []

    def _connections(self) -> httpx.AsyncClient:
        """Return a client of the engine with connections of its own."""
        limits, key = self.limits, self.settings.key
        headers = {"accept-encoding": "identity", "user-agent": "justitia"}
        if key is not None:
            headers["authorization"] = f"Bearer {key.get_secret_value()}"
        client = httpx.AsyncClient(
            base_url=self.settings.url,
            headers=headers,
            transport=self._transport,
            verify=self._trust,
            trust_env=False,
            timeout=httpx.Timeout(
                limits.idle_seconds, connect=limits.connect_seconds, pool=None
            ),
            limits=httpx.Limits(
                max_connections=None,
                max_keepalive_connections=_POOL,
                keepalive_expiry=_CLOSE_SECONDS,
            ),
        )
        # An engine's cookies are some client's, and no other's.
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
        return client

    @contextmanager
    def _pool(self) -> Iterator[httpx.AsyncClient]:
        """Give a client for one request.

        A pool looks through all its connections for each request and each end of one:
        some hundred in one pool cost more than all the rest. So each has a few.
        """
        roomy = (pool for pool in self._pools if len(pool[1]) < _POOL)
        found = next(roomy, None)
        if found is None:
            found = (self._connections(), set())
            self._pools.append(found)
        client, users = found
        user = object()
        users.add(user)
        try:
            yield client
        finally:
            users.discard(user)

    async def close(self) -> None:
        """Close all connections."""
        for client in (self._client, *(client for client, _ in self._pools)):
            await client.aclose()

    @asynccontextmanager
    async def send(
        self, path: str, content: bytes, more: Mapping[str, str] | None = None
    ) -> AsyncIterator[httpx.Response]:
        """Send a request; give its answer, not read yet, and close it at the end.

        Parameters
        ----------
        more
            Headers of ours beside those of every request.

        Raises
        ------
        EngineLost, EngineSilent
            Here, and where the answer is read.
        """
        told = {"content-type": "application/json", **(more or {})}
        with _translated(), self._pool() as client:
            request = client.build_request("POST", path, content=content, headers=told)
            answer = await client.send(request, stream=True)
            try:
                if answer.status_code in _GONE:
                    raise EngineLost(f"it answers {answer.status_code}")
                yield answer
            finally:
                await answer.aclose()

    async def look(self, *, fresh: bool) -> Facts:
        """Return what the engine says of itself, if it is well.

        Parameters
        ----------
        fresh
            Whether its capacity is asked for again.

        Raises
        ------
        EngineLost
            If it is not.
        """
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                return await self._look(fresh)
        except TimeoutError:
            raise EngineLost("it does not say how it is") from None
        except Exception as error:  # whatever it says, the watch goes on
            raise EngineLost(f"{type(error).__name__}: {error}"[:200]) from None

    async def _look(self, fresh: bool) -> Facts:
        answer = await self._client.get("/v1/models")
        listed = answer.raise_for_status().json()["data"]
        models = {
            str(one["id"]): _positive(one.get("max_model_len")) for one in listed[:1000]
        }
        kind = self.settings.kind
        if kind == "auto":
            owners = {str(one.get("owned_by")) for one in listed}
            kind = next((k for k in ("vllm", "sglang") if k in owners), "openai")
        if kind != "openai":
            (await self._client.get("/health")).raise_for_status()
        given = self.settings.capacity
        capacity = None if given == "auto" else given
        if capacity is None:
            capacity = await self._capacity(kind) if fresh else self.engine.capacity
        return Facts(kind, models, capacity)

    async def version(self) -> str | None:
        """Return which vLLM or SGLang it says it is; None where it says nothing.

        Never raises for what an engine does.
        """
        path = {"vllm": "/version", "sglang": "/server_info"}.get(self.kind)
        if path is None:
            return None
        try:
            async with asyncio.timeout(_LOOK_SECONDS):
                answer = await self._client.get(path)
                told = answer.raise_for_status().json().get("version")
        except Exception:  # whatever it says
            return None
        return told[:64] if isinstance(told, str) and told.isprintable() else None

    async def _capacity(self, kind: str) -> int | None:
        """Return how many KV tokens its cache has, None where it does not say."""
        if kind == "vllm":
            answer = (await self._client.get("/metrics")).raise_for_status()
            return vllm_capacity(answer.text)
        if kind == "sglang":
            answer = await self._client.get("/server_info")
            return sglang_capacity(answer.raise_for_status().json())
        return None


def vllm_capacity(metrics: str) -> int | None:
    """Return the KV tokens that vLLM's metrics tell of, all its engines together.

    One block of each is kept by vLLM itself.
    """
    total = 0
    for family in text_string_to_metric_families(metrics):
        if family.name.startswith("vllm:cache_config"):
            for sample in family.samples:
                blocks = _positive(sample.labels.get("num_gpu_blocks"))
                size = _positive(sample.labels.get("block_size"))
                if blocks and size:
                    total += (blocks - 1) * size
    return total or None


def sglang_capacity(told: Mapping[str, Any]) -> int | None:
    """Return the KV tokens that SGLang's state tells of, all its ranks together."""
    states = told.get("internal_states")
    places = states if isinstance(states, list) and states else [told]
    counts = [_positive(place.get("max_total_num_tokens")) for place in places]
    total = sum(count or 0 for count in counts)
    return total or _positive(told.get("max_total_num_tokens"))


def _positive(value: object) -> int | None:
    try:
        count = int(value)  # type: ignore[call-overload]
    except (TypeError, ValueError):
        return None
    return count if 0 < count < 10**12 else None


class _translated:
    """Turns what httpx raises into what is known here."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, httpx.ReadTimeout | httpx.WriteTimeout):
            raise EngineSilent from None
        if isinstance(error, httpx.TransportError | httpx.StreamError):
            raise EngineLost(f"{type(error).__name__}: {error}"[:200]) from None


async def keep_looking(upstream: Upstream, dispatcher: Dispatcher) -> None:
    """Look at an engine for ever, and take it out and in as it goes and comes."""
    engine, told = upstream.engine, ""
    while True:
        try:
            facts = await upstream.look(fresh=not engine.up)
        except EngineLost as error:
            if told != str(error):
                told = str(error)
                _log.warning("engine %s is not well: %s", engine.name, told)
            dispatcher.down(engine)
        else:
            told = _take_in(upstream, dispatcher, facts, told)
        upstream.worried.clear()
        try:
            async with asyncio.timeout(upstream.limits.health_seconds):
                await upstream.worried.wait()
        except TimeoutError:
            continue


def _take_in(
    upstream: Upstream, dispatcher: Dispatcher, facts: Facts, told: str
) -> str:
    """Take note of what an engine says; return what is wrong with it, if anything."""
    engine = upstream.engine
    upstream.kind = facts.kind
    engine.models, engine.capacity = facts.models, facts.capacity
    if engine.capacity is None and engine.slots is None:
        wrong = "it does not say what its cache holds: give capacity or slots"
        if told != wrong:
            _log.error("engine %s is not used: %s", engine.name, wrong)
        dispatcher.down(engine)
        return wrong
    dispatcher.up(engine)
    return ""


def order_fields(
    upstream: Upstream, priority: int | None, told: Mapping[str, object]
) -> dict[str, Any]:
    """Return what of a body tells an engine that keeps the order whose turn it is.

    Parameters
    ----------
    priority
        Smaller first.
    told
        What the request says of its agent, for a scheduler of ours in the engine.
    """
    if upstream.settings.orders == "priority":
        return {} if priority is None else {"priority": priority}
    said = {field: value for field, value in told.items() if value not in (None, ())}
    if upstream.kind == "sglang":
        return {"custom_params": {"justitia": said}}
    flat = {
        f"justitia_{field}": list(value) if isinstance(value, tuple) else value
        for field, value in said.items()
    }
    return {"vllm_xargs": flat}
