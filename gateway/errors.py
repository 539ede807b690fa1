"""What the gateway answers instead of an engine, in OpenAI's form of errors."""

from typing import Any

from justitia.policy import PolicyError

QUEUE_TIMEOUT = "queue_timeout"
CANCELLED = "agent_cancelled"
CLIENT_GONE = 499
"""The status, in logs and metrics, of a request whose client went away."""

CODES: dict[int, tuple[str, ...]] = {
    400: (
        "invalid_json", "invalid_value", "invalid_identity", "too_many_choices",
        "client_gone",
    ),
    401: ("invalid_api_key",),
    404: ("model_not_found", "agent_not_found", "not_found"),
    405: ("method_not_allowed",),
    408: ("body_timeout",),
    409: ("agent_exists",),
    413: ("body_too_large",),
    429: ("too_many_agents", "too_many_requests"),
    499: (CANCELLED,),
    500: ("internal_error",),
    502: ("engine_lost", "engine_refused", "answer_too_large"),
    503: (QUEUE_TIMEOUT,),
    504: ("engine_timeout",),
}  # fmt: skip
"""All codes, by status: the set is fixed, and the API's description has it."""
_TYPES = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
}


class GatewayError(PolicyError):
    """A request that is not, or no longer, served.

    Parameters
    ----------
    status
        Of HTTP.
    code
        A word for programs, of a fixed set.
    reason
        A sentence for people.
    param
        The field that is at fault, if one is.
    """

    def __init__(
        self, status: int, code: str, reason: str, param: str | None = None
    ) -> None:
        assert code in CODES[status], code
        super().__init__(reason)
        self.status = status
        self.code = code
        self.param = param

    def told(self) -> dict[str, Any]:
        """Return the body of the answer."""
        kind = "invalid_request_error" if self.status < 500 else "server_error"
        return {
            "error": {
                "message": str(self),
                "type": _TYPES.get(self.status, kind),
                "param": self.param,
                "code": self.code,
            }
        }
