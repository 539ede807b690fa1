"""The engines' side: requests go out, and an engine is asked how it is.

Nothing of a client's headers goes to an engine. What it gets is made here: what the
body is, what is wanted, and the engine's own key.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http.cookiejar import DefaultCookiePolicy
from typing import Any

import httpcore
import httpx
from prometheus_client.parser import text_string_to_metric_families

from justitia.gateway.connections import Answer, Connections
from justitia.gateway.dispatcher import Dispatcher
from justitia.gateway.fleet import Engine
from justitia.gateway.settings import EngineSettings, Limits

_log = logging.getLogger("justitia.gateway")
_GONE = (502, 503, 504)
_LAST_STATUS = 599
"""HTTP has none above it, and no server sends one on."""
_LOOKING_SECONDS = 0.5
"""For which a connection rests from one question to the next, not from look to look:
servers close them after 2 seconds or 5, in the moment perhaps in which it is used."""
_LOOK_SECONDS = 10.0
_LOST = (
    httpcore.TimeoutException,
    httpcore.NetworkError,
    httpcore.ProtocolError,
    httpcore.UnsupportedProtocol,
)


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
        What it is looked at through, the network where None.
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
        key = None if settings.key is None else settings.key.get_secret_value()
        self._client = self._asker(key)
        self.connections = Connections(settings.url, key, limits, self._trust)

    def _asker(self, key: str | None) -> httpx.AsyncClient:
        """Return what the engine is looked at with."""
        headers = {"accept-encoding": "identity", "user-agent": "justitia"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        client = httpx.AsyncClient(
            base_url=self.settings.url,
            headers=headers,
            transport=self._transport,
            verify=self._trust,
            trust_env=False,
            timeout=self.limits.idle_seconds,
            limits=httpx.Limits(keepalive_expiry=_LOOKING_SECONDS),
        )
        # An engine's cookies are some client's, and no other's.
        client.cookies.jar.set_policy(DefaultCookiePolicy(allowed_domains=()))
        return client

    async def close(self) -> None:
        """Close all connections."""
        await self._client.aclose()
        self.connections.close()

    @asynccontextmanager
    async def send(
        self, path: str, content: bytes, more: Mapping[str, str] | None = None
    ) -> AsyncIterator[Answer]:
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
        with _translated():
            async with self.connections.post(path, content, more) as answer:
                if answer.status in _GONE or answer.status > _LAST_STATUS:
                    raise EngineLost(f"it answers {answer.status}")
                yield answer

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
            raise EngineLost(_said(error)) from None

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


def _said(error: Exception) -> str:
    """Return what went wrong when an engine was looked at, in one line."""
    if isinstance(error, httpx.HTTPStatusError):
        status = error.response.status_code
        key = ": does it have another key?" if status in (401, 403) else ""
        return f"{error.request.url.path} is answered with {status}{key}"
    told = " ".join(f"{type(error).__name__}: {error}".split())
    return told.removesuffix(":")[:200]


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
    """Turns what httpcore raises into what is known here."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, _: object) -> None:
        if isinstance(error, httpcore.ReadTimeout | httpcore.WriteTimeout):
            raise EngineSilent from None
        if isinstance(error, _LOST):
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
        upstream.connections.tidy()
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
