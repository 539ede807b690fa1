"""What a gateway is told before it starts: engines, tenants, policy, limits.

The same names are keys of the table ``[gateway]`` of a file. Keys of clients and of
engines are secrets: pydantic keeps them out of what is printed, and `Secret` values are
read in two places, where they are compared and where they are sent.
"""

import re
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretStr,
    field_validator,
    model_validator,
)

from justitia.engines.serving.settings import ServingSettings
from justitia.policy.exact import shown

DISPATCHES = ("gateway", "engine")
LOOPBACK = ("127.0.0.1", "::1", "localhost")
OPEN_TENANT = "everybody"
"""The only tenant where none is configured."""
MOST_ENGINES, MOST_TENANTS = 256, 1_000
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


def _no_slip(value: object) -> object:
    """Refuse what could only be a slip: TOML's true for a number, an empty text."""
    if isinstance(value, bool):
        raise ValueError(f"must not be {str(value).lower()}")  # noqa: TRY004
    if value == "":
        raise ValueError("must not be empty")
    return value


def _key(value: object) -> object:
    # pydantic's own message would show the value.
    if not isinstance(value, str | SecretStr) or not value:
        raise ValueError("must be a text that is not empty")
    text = value if isinstance(value, str) else value.get_secret_value()
    if not (text.isascii() and text.isprintable() and " " not in text):
        raise ValueError("must be printable ASCII without spaces")
    return value


Secret = Annotated[SecretStr, BeforeValidator(_key)]
Seconds = Annotated[float, Field(gt=0, le=1e7), BeforeValidator(_no_slip)]
Count = Annotated[int, Field(ge=1, le=10**9), BeforeValidator(_no_slip)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EngineSettings(_Table):
    """An engine behind the gateway.

    Attributes
    ----------
    url
        The base of its API: http://127.0.0.1:8000, with or without ``/v1``.
    kind
        ``vllm``, ``sglang``, ``openai`` (anything else), or ``auto``: it is asked.
    key, key_env
        Its API key, or the variable that holds it. Nothing of a client's is ever sent
        in its place.
    capacity
        KV tokens of its cache; ``auto``: read from its ``/metrics`` or
        ``/server_info``, where it is vLLM or SGLang.
    slots
        Inferences that it runs at once at most; None: as many as its cache has room
        for.
    orders
        With ``dispatch = "engine"``, how it is told whose turn it is: by ``priority``,
        or by the fields that a ``justitia`` scheduler inside it reads.
    """

    url: str
    kind: Literal["auto", "vllm", "sglang", "openai"] = "auto"
    key: Secret | None = None
    key_env: str | None = None
    capacity: Annotated[Count | Literal["auto"], Field(union_mode="left_to_right")] = (
        "auto"
    )
    slots: Count | None = None
    orders: Literal["priority", "justitia"] = "priority"

    @field_validator("url")
    @classmethod
    def _base(cls, value: str) -> str:
        return base_url(value)

    @model_validator(mode="after")
    def _one_key(self) -> "EngineSettings":
        if self.key is not None and self.key_env is not None:
            raise ValueError("key and key_env are the same: give one")
        return self


class TenantSettings(_Table):
    """Somebody whose agents share one weight.

    Attributes
    ----------
    name
        In logs and metrics.
    keys, keys_env
        Its API keys, or the variable that holds them, separated by commas.
    weight
        Its share of the engines, relative to other tenants'.
    most_agents
        Agents of it that are known at once at most.
    most_waiting
        Requests of it in line at most.
    """

    name: str
    keys: tuple[Secret, ...] = ()
    keys_env: str | None = None
    weight: Annotated[float, Field(ge=0.01, le=100), BeforeValidator(_no_slip)] = 1
    most_agents: Count = 1_000
    most_waiting: Count = 10_000

    @field_validator("name")
    @classmethod
    def _plain(cls, value: str) -> str:
        if not _NAME.fullmatch(value):
            raise ValueError(
                "must be 1 to 64 letters, digits, dots, dashes and underscores, "
                f"not {shown(value)}"
            )
        return value


class Limits(_Table):
    """What nobody may pass.

    Attributes
    ----------
    body_bytes
        Of a request.
    queue_seconds
        In line; then 503 with the code ``queue_timeout``.
    connect_seconds
        To reach an engine.
    idle_seconds
        That an engine may be silent in an answer; then 504.
    stall_seconds
        That a client may read nothing of a stream that has something for it; then the
        stream ends, and its memory is free.
    health_seconds
        Between two looks at an engine.
    stop_seconds
        For which a gateway that is told to stop lets requests end.
    """

    body_bytes: Count = 32 * 1024 * 1024
    queue_seconds: Seconds = 600
    connect_seconds: Seconds = 5
    idle_seconds: Seconds = 300
    stall_seconds: Seconds = 60
    health_seconds: Seconds = 2
    stop_seconds: Seconds = 30


class TracingSettings(_Table):
    """Where spans of requests go, by OTLP over HTTP.

    Attributes
    ----------
    endpoint
        Of a collector, http://127.0.0.1:4318 say; None: as OpenTelemetry's own
        variables say, which hold for all else, too.
    """

    endpoint: str | None = None

    @field_validator("endpoint")
    @classmethod
    def _of_a_server(cls, value: str | None) -> str | None:
        if value is not None:
            base_url(value)
        return value


class GatewaySettings(_Table):
    """A gateway.

    Attributes
    ----------
    engines
        At least one.
    tenants
        None: whoever reaches the gateway is one tenant, and needs no key.
    host, port
        Where it listens.
    open
        Whether it may listen on an address that others can reach without keys.
    dispatch
        ``gateway``: it holds the line, and sends what fits. ``engine``: it sends at
        once, and the engine is told the order.
    default_tokens
        What a request is thought to produce that says neither that nor ``max_tokens``,
        where there is no predictor.
    logs
        ``text``, or ``json``: an object a line.
    store
        The file in which agents' state and finished inferences are kept; None: nothing
        is.
    keep_prompts
        Whether what prompts begin with is kept, too, as predictors learn from it.
    operator_key, operator_key_env
        A key with which the page at ``/`` shows all tenants' agents, or the variable
        that holds it. It is good for nothing else.
    tracing
        Where spans go; None: there are none.
    adapter
        The policy, its options, and for how long agents are remembered.
    """

    engines: tuple[EngineSettings, ...] = Field(min_length=1, max_length=MOST_ENGINES)
    tenants: tuple[TenantSettings, ...] = Field((), max_length=MOST_TENANTS)
    host: str = "127.0.0.1"
    port: Annotated[int, Field(ge=0, le=65_535), BeforeValidator(_no_slip)] = 8080
    open: bool = False
    dispatch: Literal["gateway", "engine"] = "gateway"
    default_tokens: Count = 256
    logs: Literal["text", "json"] = "text"
    store: str | None = None
    keep_prompts: bool = False
    operator_key: Secret | None = None
    operator_key_env: str | None = None
    limits: Limits = Field(default_factory=Limits)
    tracing: TracingSettings | None = None
    adapter: ServingSettings = Field(default_factory=ServingSettings)

    @field_validator("store")
    @classmethod
    def _in_a_folder(cls, value: str | None) -> str | None:
        if value is not None and (
            Path(value).is_dir() or not Path(value).absolute().parent.is_dir()
        ):
            raise ValueError(
                f"must be a file in a folder that is there, not {shown(value)}"
            )
        return value

    @model_validator(mode="after")
    def _guarded(self) -> "GatewaySettings":
        if self.host not in LOOPBACK and not self.tenants and not self.open:
            raise ValueError(
                f"host {shown(self.host)} can be reached by others, and there are no "
                "tenants with keys: configure some, or say open = true"
            )
        return self

    @model_validator(mode="after")
    def _kept_somewhere(self) -> "GatewaySettings":
        if self.keep_prompts and self.store is None:
            raise ValueError("keep_prompts keeps them in a store: give one, too")
        return self

    @model_validator(mode="after")
    def _one_key(self) -> "GatewaySettings":
        if self.operator_key is not None and self.operator_key_env is not None:
            raise ValueError("operator_key and operator_key_env are the same: give one")
        return self

    @model_validator(mode="after")
    def _comparable(self) -> "GatewaySettings":
        if self.dispatch == "engine" and self.tenants:
            raise ValueError(
                'dispatch "engine" sends tags as priorities, which are fixed when a '
                "request is sent and so are no shares among tenants: use "
                '"gateway" with tenants'
            )
        return self

    def check_told_apart(self) -> None:
        """Raise a ValueError where names, addresses or keys are not each one's own."""
        names = [tenant.name for tenant in self.tenants]
        if len(set(names)) < len(names):
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"two tenants are named {shown(twice)}")
        urls = [engine.url for engine in self.engines]
        if len(set(urls)) < len(urls):
            twice = next(url for url in urls if urls.count(url) > 1)
            raise ValueError(f"two engines have the url {shown(twice)}")
        operator = self.operator_key
        keys = set() if operator is None else {operator.get_secret_value()}
        for tenant in self.tenants:
            if not tenant.keys:
                raise ValueError(f"tenant {shown(tenant.name)} has no key")
            own = {key.get_secret_value() for key in tenant.keys}
            if keys & own:
                raise ValueError(
                    f"tenant {shown(tenant.name)} has a key that another has, too"
                )
            keys |= own


def base_url(value: str) -> str:
    """Return the base of a server's API, without ``/v1`` and a slash at its end.

    >>> base_url("http://127.0.0.1:8000/v1/")
    'http://127.0.0.1:8000'
    """
    parts = urlsplit(value)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or not value.isprintable()
    ):
        raise ValueError(
            f"must be a server's, http://127.0.0.1:8000 say, not {shown(value)}"
        )
    try:
        _ = parts.port
    except ValueError:
        raise ValueError(
            f"must have a port from 0 to 65535 or none, not {shown(value)}"
        ) from None
    if parts.username or parts.password:
        raise ValueError("must have no user and password in it: give a key")
    if parts.query or parts.fragment:
        raise ValueError(f"must have nothing behind the path, not {shown(value)}")
    return value.rstrip("/").removesuffix("/v1").rstrip("/")
