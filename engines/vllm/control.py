"""The engine's side of what the front end asks: a utility method of vLLM's engine.

A front end reaches the engine's process by the name of a method of ``EngineCore`` (a
*utility call*). `take_control` gives it one more, `METHOD`, that asks the scheduler's
`Desk`. It is called between steps, in the scheduler's own thread.
"""

import logging
from collections.abc import Iterable
from time import monotonic
from typing import Any

from vllm import __version__ as vllm_version
from vllm.v1.engine.core import EngineCore
from vllm.v1.request import Request, RequestStatus

from justitia.engines.serving import Agents
from justitia.engines.serving.complaints import LOGGER
from justitia.engines.serving.desk import Desk
from justitia.engines.serving.watch import Watched

METHOD = "justitia"


def take_control(scheduler: Any) -> None:
    """Have a new scheduler's policy watched, and let the front end ask for it."""
    settings = scheduler.settings
    watched = Watched(settings.make(), now=monotonic)
    agents = Agents(
        watched,
        now=monotonic,
        linger=settings.linger,
        most=settings.most_agents,
        predict=settings.predict,
    )
    scheduler.use(agents)
    config = scheduler.vllm_config
    blocks = scheduler.kv_cache_manager.block_pool.num_gpu_blocks - 1
    facts = {
        "engine": "vllm",
        "engine_version": vllm_version,
        "scheduler": [kind.__name__ for kind in type(scheduler).__mro__[1:3]],
        "capacity_tokens": blocks * config.cache_config.block_size,
        "data_parallel_rank": config.parallel_config.data_parallel_rank,
    }
    scheduler.desk = Desk(agents, watched, settings, facts)
    setattr(EngineCore, METHOD, _answer)
    _join_the_log()


def _join_the_log() -> None:
    """Write what we log where vLLM writes, unless somebody has said where it goes."""
    if not LOGGER.hasHandlers():
        for handler in logging.getLogger("vllm").handlers:
            LOGGER.addHandler(handler)


def _answer(core: Any, verb: str, payload: str) -> str:
    """Ask the desk of an engine's scheduler; never raises."""
    aborted: list[Request] = []

    def abort(requests: Iterable[str]) -> None:
        ended = core.scheduler.finish_requests(requests, RequestStatus.FINISHED_ABORTED)
        aborted.extend(ended)

    told: str = core.scheduler.desk.answer(verb, payload, abort)
    if aborted and hasattr(core, "_send_abort_outputs"):  # clients in other processes
        core._send_abort_outputs(aborted)
    return told
