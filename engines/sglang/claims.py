"""What a request of SGLang's says of itself.

A client says it in ``custom_params``: at the top of the body of an OpenAI endpoint,
inside ``sampling_params`` for ``/generate`` and the Engine. There is no check of it
before the scheduler, so what cannot be used is counted and passed over.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from justitia.engines.serving import Claim, read_claim
from justitia.policy.exact import shown

KEY = "justitia"
"""The key of a claim in a request's ``custom_params``."""


def claim_of(req: Any) -> Claim:
    """Return what a request says: its claim, else the session that SGLang knows.

    That is the field ``session_id``, else the id in ``session_params``, else the
    routing key (the header ``x-smg-routing-key``).
    """
    params = getattr(req.sampling_params, "custom_params", None)
    given = params.get(KEY) if isinstance(params, Mapping) else None
    if given is None or isinstance(given, Mapping):
        return read_claim(given or {}, session=_session(req))
    claim = read_claim({}, session=_session(req))
    reason = f"{KEY} must be an object, not {shown(given)}"
    return replace(
        claim, faults=(*claim.faults, "claim"), reasons=(*claim.reasons, reason)
    )


def _session(req: Any) -> str | None:
    """Return the first name that SGLang forwards with a request."""
    session = getattr(req, "session", None)
    found = (
        getattr(req, "session_id", None),
        getattr(session, "session_id", None),
        getattr(req, "routing_key", None),
    )
    return next((name for name in found if name), None)
