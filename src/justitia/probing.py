"""What `justitia probe` does: find out whether a stock server honours priorities."""

import asyncio
import os
from dataclasses import dataclass
from typing import TYPE_CHECKING

from justitia.policy import PolicyError
from justitia.policy.exact import shown

if TYPE_CHECKING:
    import httpx

KEY = "JUSTITIA_API_KEY"
MOST = 4_096
_HIGHEST_MOST = 100_000


class ProbeError(PolicyError):
    """Something that cannot be probed; says what, and why."""


@dataclass(frozen=True, slots=True)
class ProbeSettings:
    """What is probed.

    Attributes
    ----------
    url
        The base of the server's API, ending in ``/v1``.
    api_key
        Sent as a bearer token, None for none.
    most
        Requests of low priority that it is sent at most.
    """

    url: str
    api_key: str | None
    most: int


def load(url: str, api_key: str | None, most: str | None) -> ProbeSettings:
    """Return the settings, from what was typed and the variable of the key.

    Raises
    ------
    ProbeError
        Naming the value and what is allowed.
    """
    scheme, _, host = url.partition("://")
    if scheme not in ("http", "https") or not host or not url.isprintable():
        raise ProbeError(
            f"URL: must be a server's, http://127.0.0.1:8000 say, not {shown(url)}"
        )
    base = url.rstrip("/").removesuffix("/v1") + "/v1"
    key = api_key or os.environ.get(KEY) or None
    if key is not None and not (key.isascii() and key.isprintable()):
        raise ProbeError("--api-key: must be printable ASCII")
    if most is None:
        return ProbeSettings(base, key, MOST)
    if not (most.isascii() and most.isdecimal() and len(most) < 9):
        raise ProbeError(f"--most: must be a whole number, not {shown(most)}")
    if not 1 <= int(most) <= _HIGHEST_MOST:
        raise ProbeError(f"--most: must be from 1 to {_HIGHEST_MOST:,}, not {most}")
    return ProbeSettings(base, key, int(most))


def probe_settings(
    settings: ProbeSettings, transport: "httpx.AsyncBaseTransport | None" = None
) -> None:
    """Say what will be done, do it, and say that the server honours priorities.

    Parameters
    ----------
    transport
        What requests go through, the network where None.

    Raises
    ------
    EngineError
        If the server does not, or it cannot be told.
    ProbeError
        If there is nothing to probe with.
    """
    try:
        import httpx  # noqa: PLC0415 - it may be missing
    except ModuleNotFoundError as error:
        if error.name != "httpx":
            raise
        raise ProbeError(
            "justitia probe needs httpx, which is not installed; "
            "install it with: pip install 'justitia[gateway]'"
        ) from None
    from justitia.engines.serving.probe import LONGEST, probe  # noqa: PLC0415

    print(
        f"{settings.url} is sent requests of low priority, of at most {LONGEST} tokens "
        f"each, until some wait (at most {settings.most:,}), and then one of high "
        "priority. Whoever else uses the server waits meanwhile.",
        flush=True,
    )
    try:
        asyncio.run(
            probe(
                settings.url,
                api_key=settings.api_key,
                most=settings.most,
                transport=transport,
            )
        )
    except httpx.InvalidURL as error:
        raise ProbeError(f"URL: {error}") from None
    print("It honours priorities: that one went before those that waited.")
