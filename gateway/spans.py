"""Where a request is traced, and what there is where none is: nothing.

`justitia.gateway.tracing` has what OpenTelemetry makes of it, and is imported when the
settings ask for it, and not before.
"""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

from justitia.gateway.settings import GatewaySettings
from justitia.policy import PolicyError

if TYPE_CHECKING:
    from justitia.engines.serving import Agents
    from justitia.gateway.dispatcher import Call
    from justitia.gateway.exchange import Outcome
    from justitia.gateway.upstream import Upstream

Headers = Mapping[str, str]


class TracingNotInstalled(PolicyError):
    """The extra ``otel`` is missing."""


_NONE: Headers = {}


class Span(Protocol):
    """One request that is traced; all of it may be called in any phase."""

    def about(self, call: "Call", most: int | None, choices: int) -> None:
        """Take note of what is asked for, as soon as it is understood."""

    def waiting(self, agents: "Agents", call: "Call") -> AbstractContextManager[None]:
        """Trace the time in line."""

    def sending(
        self, upstream: "Upstream", call: "Call"
    ) -> AbstractContextManager[Headers]:
        """Trace an engine's answer; give the headers that tell the engine of it."""

    def answered(self, status: int) -> None:
        """Take note of the status of the engine's answer."""

    def end(self, tenant: str, outcome: "Outcome") -> None:
        """Take note that the request has ended, and how."""


class Tracer(Protocol):
    """Begins spans."""

    def begin(self, scope: Mapping[str, object], operation: str) -> Span:
        """Return the span of a request, whose parent the client may have named."""

    def close(self) -> None:
        """Send what is left; it may take some seconds."""


class Untraced:
    """A span, and a tracer, of which nothing is kept."""

    def begin(self, scope: Mapping[str, object], operation: str) -> "Untraced":
        """Return itself."""
        return self

    def about(self, call: "Call", most: int | None, choices: int) -> None:
        """Pass."""

    def waiting(self, agents: "Agents", call: "Call") -> AbstractContextManager[None]:
        """Pass."""
        return nullcontext()

    def sending(
        self, upstream: "Upstream", call: "Call"
    ) -> AbstractContextManager[Headers]:
        """Pass."""
        return nullcontext(_NONE)

    def answered(self, status: int) -> None:
        """Pass."""

    def end(self, tenant: str, outcome: "Outcome") -> None:
        """Pass."""

    def close(self) -> None:
        """Pass."""


UNTRACED = Untraced()


def tracer(settings: GatewaySettings) -> Tracer:
    """Return what the settings ask for.

    Raises
    ------
    TracingNotInstalled
        If they ask for spans, and the extra ``otel`` is missing.
    """
    if settings.tracing is None:
        return UNTRACED
    try:
        from justitia.gateway.tracing import exporting  # noqa: PLC0415 - an extra
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        raise TracingNotInstalled(
            f"tracing needs {error.name}, which is not installed; install it with: "
            "pip install 'justitia[otel]'"
        ) from None
    return exporting(settings.tracing)
