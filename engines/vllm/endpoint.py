"""The front end's side: routes and metrics in vLLM's own OpenAI server.

vLLM loads this from the entry point ``justitia`` in ``vllm.endpoint_plugins``, and only
where ``VLLM_PLUGINS`` names it. vLLM guards paths that begin with ``/v1`` and a few
others with its API key, and no plugin's; so the routes here check the key themselves,
in the way of vLLM's own middleware and with its own keys.
"""

import json
import os
from argparse import Namespace
from collections.abc import Mapping
from time import monotonic
from typing import TYPE_CHECKING, Any

from justitia.engines.serving.desk import in_force
from justitia.engines.vllm.version import check_version

if TYPE_CHECKING:
    from fastapi import FastAPI
    from starlette.datastructures import State
    from starlette.requests import Request
    from vllm.engine.protocol import EngineClient

HOW = "start it with: justitia serve --engine vllm, or with --scheduler-cls "
HOW += "justitia.engines.vllm.Scheduler"


class Endpoint:
    """vLLM's ``EndpointPlugin``."""

    name = "justitia"
    required_tasks = ("generate",)

    def __init__(self) -> None:
        self._client: EngineClient | None = None
        self._tokens: Any = None  # vLLM's middleware, for its check of a token

    def attach_router(self, app: "FastAPI") -> None:
        """Add the routes, and the metrics to vLLM's own."""
        from prometheus_client import REGISTRY  # noqa: PLC0415 - vLLM brings these

        from justitia.engines.serving.http import Refresh, Routes  # noqa: PLC0415
        from justitia.engines.serving.metrics import Scrape  # noqa: PLC0415

        scrape = Scrape(monotonic)
        routes = Routes(self._ask, self._allowed, scrape)
        app.router.routes.extend(routes.list())
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            REGISTRY.register(scrape)
            app.add_middleware(Refresh, refresh=routes.refresh)

    async def init_state(
        self, engine_client: "EngineClient | None", state: "State", args: Namespace
    ) -> None:
        """Stop the server, with the reason, unless the policy is in force.

        Raises
        ------
        SystemExit
            With the reason.
        """
        from vllm import envs  # noqa: PLC0415 - the server has it
        from vllm.entrypoints.serve.middleware.authenticate import (  # noqa: PLC0415
            AuthenticationMiddleware,
        )

        check_version()
        keys = [key for key in (args.api_key or [envs.VLLM_API_KEY]) if key]
        if keys:
            self._tokens = AuthenticationMiddleware(_nowhere, keys)
        self._client = engine_client
        try:
            told = await self._ask("state", {})
        except Exception as error:
            raise SystemExit(
                f"justitia: not in force, so this server stops: {error}. VLLM_PLUGINS "
                f"names justitia but the engine has another scheduler; {HOW}"
            ) from None
        for one in told:
            if one["status"] != 200:
                raise SystemExit(f"justitia: the scheduler fails: {one}")
            print(in_force(one, f"{one['scheduler'][-1]} of vLLM"), flush=True)

    async def _ask(self, verb: str, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        core = getattr(self._client, "engine_core", None)
        if core is None:
            raise RuntimeError("this server has no engine")
        answers = await core.call_utility_all_async(
            self.name, verb, json.dumps(dict(given))
        )
        return [json.loads(answer) for answer in answers]

    def _allowed(self, request: "Request") -> bool:
        return self._tokens is None or bool(self._tokens.verify_token(request.headers))


async def _nowhere(*_: object) -> None:
    """Be the application behind a middleware that is only asked about tokens."""
