"""Servers that speak OpenAI's API as an engine of `justitia run`."""

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack

from justitia.engines.base import Engine, EngineError, conserved
from justitia.engines.records import RunRecord
from justitia.engines.registry import PRESETS
from justitia.engines.scaling import Fitted, scaled_to
from justitia.engines.serving.backend import lasting
from justitia.engines.sim.preset import Preset, load_preset
from justitia.gateway import fleet
from justitia.gateway.dispatcher import Dispatcher
from justitia.gateway.openai.prompts import first_number
from justitia.gateway.openai.requests import EXACT, Requests
from justitia.gateway.openai.run import ServedRun
from justitia.gateway.openai.servers import Servers, look_at
from justitia.gateway.settings import EngineSettings, Limits
from justitia.gateway.upstream import Upstream
from justitia.policy import Policy
from justitia.policy.exact import shown
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec


class OpenAIEngine(Engine):
    """Runs workloads on servers, one after the other, through a gateway's dispatcher.

    The servers are asked what they are with the first call that needs to know. Their
    schedulers are as they are: the policy's order is that in which inferences are sent,
    each as soon as a server has room for what it is predicted to need.

    Parameters
    ----------
    servers
        At least one; where each is, its key, capacity and slots.
    model
        None: the only one that the servers serve.
    preset
        The machine whose capacity and step time a scenario's load is measured in.
    limits
        How long a server may take to be reached, and be silent.
    """

    name = "openai"
    alone = True

    def __init__(
        self,
        servers: Sequence[EngineSettings],
        *,
        model: str | None = None,
        preset: Preset | None = None,
        limits: Limits | None = None,
    ) -> None:
        self.preset = preset or load_preset(PRESETS[self.name])
        self._settings = tuple(servers)
        self._asked = model
        self.limits = limits or Limits()
        self._servers: Servers | None = None
        self._number = first_number()

    def fit(self, agents: Sequence[AgentSpec]) -> Fitted | None:
        """Return agents that fit into the model's context and the servers' caches."""
        room = self._open().room
        return None if room is None else scaled_to(agents, room)

    def about(self) -> dict[str, object]:
        """Return what the results say of the servers; they are asked for that."""
        servers = self._open()
        kinds = dict.fromkeys(one.kind for one in servers.each)
        versions = dict.fromkeys(one.version for one in servers.each if one.version)
        slots = [one.settings.slots for one in servers.each]
        return {
            "name": self.name,
            "url": ",".join(one.settings.url for one in servers.each),
            "server": ", ".join(kinds),
            "version": ", ".join(versions) or None,
            "model": servers.model,
            "preset": self.preset.name,
            "capacity_tokens": servers.capacity,
            "context_tokens": servers.context,
            "slots": sum(one for one in slots if one is not None) or None,
            "admission": "predicted",
            "preemption": "recompute" if all(k in EXACT for k in kinds) else None,
        }

    def run(
        self,
        agents: Sequence[AgentSpec],
        policy: Policy,
        predictor: Predictor,
        *,
        tags: str = "agent",
        progress: Callable[[int], None] | None = None,
    ) -> RunRecord:
        """Run all agents to their end; see `Engine.run`.

        Raises
        ------
        EngineError
            Also if a server cannot be used, or fails in the run; nothing runs on then.
        """
        if tags not in ("agent", "stage"):
            raise EngineError(f"tags must be agent or stage, not {shown(tags)}")
        servers = self._open()

        async def doing() -> RunRecord:
            async with AsyncExitStack() as stack:
                upstreams = {}
                for one in servers.each:
                    settings = one.settings
                    engine = fleet.Engine(
                        settings.url, capacity=one.capacity, slots=settings.slots
                    )
                    engine.up = True
                    upstream = Upstream(engine, settings, self.limits)
                    upstream.kind = one.kind
                    stack.push_async_callback(upstream.close)
                    upstreams[settings.url] = upstream
                dispatcher = Dispatcher(
                    lasting(policy),
                    fleet.Fleet([each.engine for each in upstreams.values()]),
                )
                return await ServedRun(
                    agents,
                    dispatcher,
                    predictor,
                    upstreams,
                    Requests(servers.model, servers.prompts, self._number),
                    room=servers.room,
                    by_stage=tags == "stage",
                    progress=progress,
                ).run()

        self._number += sum(len(spec.inferences) for spec in agents)
        return conserved(asyncio.run(doing()), agents)

    def _open(self) -> Servers:
        if self._servers is None:
            self._servers = asyncio.run(
                look_at(self._settings, self._asked, self.limits)
            )
        return self._servers
