"""What `justitia gateway` does: it reads its settings and becomes the gateway."""

from collections.abc import Mapping

from justitia.gateway.loading import load
from justitia.policy import PolicyError

_EXTRA = ("httpx", "prometheus_client", "starlette", "uvicorn")


class GatewayNotInstalled(PolicyError):
    """The extra ``gateway`` is missing."""


def relay(flags: Mapping[str, object], file: str | None) -> None:
    """Serve until told to stop.

    Raises
    ------
    PolicyError
        For a setting that cannot be used, or without the extra ``gateway``.
    EngineError
        If nothing can listen at the address.
    """
    settings = load(flags, file=file)
    try:
        from justitia.gateway.serve import serve  # noqa: PLC0415 - it may be missing
    except ModuleNotFoundError as error:
        if error.name not in _EXTRA:
            raise
        raise GatewayNotInstalled(
            f"justitia gateway needs {error.name}, which is not installed; "
            "install it with: pip install 'justitia[gateway]'"
        ) from None
    serve(settings)
