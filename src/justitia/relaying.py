"""What `justitia gateway` does: it reads its settings and becomes the gateway."""

from collections.abc import Mapping

from justitia.gateway.extra import SERVER, missing
from justitia.gateway.loading import load
from justitia.policy import PolicyError


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
    library = missing(SERVER)
    if library is not None:
        raise GatewayNotInstalled(
            f"justitia gateway needs {library}, which is not installed; "
            "install it with: pip install 'justitia[gateway]'"
        )
    from justitia.gateway.serve import serve  # noqa: PLC0415 - it needs the extra

    serve(settings)
