"""What `justitia gateway` does: it serves until it is told to stop."""

import gc
import logging

import uvicorn

from justitia import __version__
from justitia.engines.base import EngineError
from justitia.gateway import logs
from justitia.gateway.app import Gateway
from justitia.gateway.heads import protocol
from justitia.gateway.settings import GatewaySettings

_log = logging.getLogger("justitia.gateway")


def server(gateway: Gateway) -> uvicorn.Server:
    """Return an HTTP server for a gateway."""
    settings = gateway.settings
    return uvicorn.Server(
        uvicorn.Config(
            gateway.app,
            host=settings.host,
            port=settings.port,
            http=protocol(),
            ws="none",
            lifespan="on",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=max(1, round(settings.limits.stop_seconds)),
        )
    )


def serve(settings: GatewaySettings) -> None:
    """Serve until told to stop.

    Raises
    ------
    EngineError
        If the address cannot be listened on.
    """
    logs.set_up(settings.logs)
    one = server(Gateway(settings))
    _log.info(
        "gateway",
        extra={
            "fields": {
                "version": __version__,
                "address": f"http://{settings.host}:{settings.port}",
                "policy": settings.adapter.policy,
                "dispatch": settings.dispatch,
                "engines": [engine.url for engine in settings.engines],
                "tenants": [tenant.name for tenant in settings.tenants],
            }
        },
    )
    gc.collect()
    gc.freeze()  # what is there now stays: no collection has to look through it
    try:
        one.run()
    except SystemExit as error:  # as uvicorn says that it cannot begin
        raise EngineError(
            f"nothing can listen on {settings.host}:{settings.port}; is it in use?"
        ) from error
