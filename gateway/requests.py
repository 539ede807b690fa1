"""A client's body, read with care, and as it goes to an engine."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from starlette.types import Receive

from justitia.gateway.errors import GatewayError
from justitia.gateway.identity import FIELD
from justitia.policy.exact import shown
from justitia.workloads.files.lines import keyed


class ClientGone(Exception):
    """The client went away before it had said all."""


async def read_body(receive: Receive, most: int) -> bytes:
    """Return a request's body.

    Raises
    ------
    GatewayError
        413, if it is longer; no more than that is kept.
    ClientGone
        If the client went away.
    """
    parts: list[bytes] = []
    length = 0
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientGone
        part = message.get("body", b"")
        length += len(part)
        if length > most:
            raise GatewayError(
                413, "body_too_large", f"the body must have at most {most} bytes"
            )
        parts.append(part)
        if not message.get("more_body", False):
            return b"".join(parts)


def read_object(body: bytes) -> dict[str, Any]:
    """Return the JSON object that a body is.

    A name that is there twice is refused: an engine that takes the other one than this
    gateway would do what was not counted.

    Raises
    ------
    GatewayError
        400, if it is none.
    """
    try:
        told = json.loads(
            body.decode(), parse_constant=_refuse, object_pairs_hook=_once
        )
    except (ValueError, RecursionError) as error:  # UTF-8 that is none, too
        raise GatewayError(
            400, "invalid_json", f"the body must be a JSON object: {error}"[:300]
        ) from None
    if not isinstance(told, dict):
        raise GatewayError(400, "invalid_json", "the body must be a JSON object")
    return told


def too_deep() -> GatewayError:
    """Return the error of a body that could be read, and no more."""
    return GatewayError(400, "invalid_json", "the body is too deeply nested")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is no JSON")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    named, name = keyed(pairs)
    if name is not None:
        raise ValueError(f"{shown(name)} is in an object twice")
    return named


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A body on its way to an engine.

    Attributes
    ----------
    streamed
        Whether the answer is to come in parts.
    hides_usage
        Whether the usage at the end of the stream was not asked for by the client.
    """

    body: dict[str, Any]
    raw: bytes
    streamed: bool
    hides_usage: bool

    def content(self, more: Mapping[str, Any] | None = None) -> bytes:
        """Return the bytes to send: the client's own, if nothing in them is another."""
        if not more and not self.hides_usage and FIELD not in self.body:
            return self.raw
        body = {k: v for k, v in self.body.items() if k != FIELD}
        if self.hides_usage:
            options = dict(body.get("stream_options") or {})
            if options.get("continuous_usage_stats"):  # nothing without the other
                options["continuous_usage_stats"] = False
            body["stream_options"] = {**options, "include_usage": True}
        for field, value in (more or {}).items():
            given = body.get(field)
            if isinstance(given, dict) and isinstance(value, dict):
                body[field] = {**given, **value}
            else:
                body[field] = value
        try:
            return json.dumps(body, allow_nan=False).encode()
        except ValueError:
            raise GatewayError(
                400, "invalid_json", "a number in the body is too large"
            ) from None
        except RecursionError:
            raise too_deep() from None


def outgoing(body: dict[str, Any], raw: bytes) -> Outgoing:
    """Return a body as it will be sent.

    Usage is asked for wherever there is a stream: service is counted by it.
    """
    stream = body.get("stream")
    if stream is not None and not isinstance(stream, bool):
        raise GatewayError(
            400, "invalid_value", "stream must be true or false", "stream"
        )
    options = body.get("stream_options")
    hides = bool(stream) and (
        options is None
        or (isinstance(options, dict) and not options.get("include_usage"))
    )
    return Outgoing(body, raw, bool(stream), hides)
