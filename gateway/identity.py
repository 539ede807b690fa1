"""Whose a request is: which of all that clients and routers send is believed.

The first of these that is there names the agent:

1. ``X-Justitia-Agent-Id``
2. ``agent`` in the object ``justitia`` of the body (``extra_body`` of OpenAI's client)
3. ``x-llm-d-inference-fairness-id``, then its old name
   ``x-gateway-inference-fairness-id``
4. ``X-Dynamo-Session-ID``
5. agents' own: ``x-claude-code-session-id``, ``session-id``, ``session_id`` (Codex),
   ``x-session-affinity``, ``x-session-id`` (OpenCode)

Without any a request is an agent of its own. What else is said of an agent is in
headers of ours (``X-Justitia-Kind``, …) or in the object; where both say something, the
header holds. A value that cannot be used is refused, so that nobody is served under
another name than they think. No header names a tenant: a key does.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from justitia.engines.serving.claims import (
    FIELDS,
    MOST_STAGES,
    Claim,
    ClaimError,
    read_claim,
)
from justitia.gateway.errors import GatewayError
from justitia.policy.exact import Number, shown

FIELD = "justitia"
"""Of a request's body."""
OURS = {
    "x-justitia-agent-id": "agent",
    "x-justitia-kind": "kind",
    "x-justitia-stage": "stage",
    "x-justitia-cost": "cost",
    "x-justitia-tokens": "tokens",
    "x-justitia-inferences": "inferences",
    "x-justitia-weight": "weight",
}
OTHERS = (
    "x-llm-d-inference-fairness-id",
    "x-gateway-inference-fairness-id",
    "x-dynamo-session-id",
    "x-claude-code-session-id",
    "session-id",
    "session_id",
    "x-session-affinity",
    "x-session-id",
)
MOST_COST = 10**30
"""Of an agent: all agents of a tenant together are then something to reckon with."""
MOST_STAGE_COST = MOST_COST // MOST_STAGES
_NUMBERS = ("stage", "cost", "tokens", "inferences", "weight")


def read_identity(
    headers: Iterable[tuple[bytes, bytes]], body: Mapping[str, Any]
) -> Claim:
    """Return what a request says of itself.

    Parameters
    ----------
    headers
        As ASGI has them: names in small letters.
    body
        The request's.

    Raises
    ------
    GatewayError
        400, naming the header or field, and what is allowed.
    """
    found: dict[str, str] = {}
    for raw, value in headers:
        name = raw.decode("latin-1")
        if name in OURS or name in OTHERS:
            if name in found:
                raise GatewayError(
                    400, "invalid_identity", f"{name} must be sent once", name
                )
            try:
                found[name] = value.decode()
            except UnicodeDecodeError:
                raise GatewayError(
                    400, "invalid_identity", f"{name} must be UTF-8", name
                ) from None
    given = body.get(FIELD)
    if given is not None and not isinstance(given, dict):
        raise GatewayError(400, "invalid_identity", f"{FIELD} must be an object", FIELD)
    values: dict[str, object] = {}
    named: dict[str, str] = {}
    for field, value in (given or {}).items():
        values[field] = value
        named[field] = f"{FIELD}.{field}"
    for header, field in OURS.items():
        if header in found:
            values[field] = _number(found[header], field)
            named[field] = header
    if values.get("agent") is None:
        for header in OTHERS:
            if header in found:
                values["agent"] = found[header]
                named["agent"] = header
                break
    try:
        claim = read_claim(values, strict=True)
        check_cost(claim)
    except ClaimError as error:
        where = named.get(error.field, FIELD)
        raise GatewayError(
            400, "invalid_identity", f"{where}: {error}", where[:80]
        ) from None
    return claim


def check_cost(claim: Claim) -> None:
    """Raise a ClaimError for a cost above `MOST_COST`, or one of a stage that is."""
    for cost in claim.stage_costs:
        if cost > MOST_STAGE_COST:
            raise _too_dear("stage_costs", MOST_STAGE_COST, cost)
    if claim.cost is not None and claim.cost > MOST_COST:
        raise _too_dear("cost", MOST_COST, claim.cost)


def _too_dear(field: str, most: int, cost: Number) -> ClaimError:
    return ClaimError(f"{field} must be at most {most:.0e}, not {shown(cost)}", field)


def _number(text: str, field: str) -> object:
    """Return what a header says: a number where one belongs."""
    if field not in _NUMBERS:
        return text
    try:
        return int(text)
    except ValueError:
        pass
    try:
        return float(text)
    except ValueError:
        return text  # which is refused, with what is allowed


def of_tenant(claim: Claim, tenant: str) -> Claim:
    """Return a claim whose agent no other tenant can name."""
    if claim.agent is None:
        return claim
    return replace(claim, agent=f"{tenant}/{claim.agent}")


assert set(OURS.values()) <= set(FIELDS)
