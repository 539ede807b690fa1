"""How a gateway finds itself again: what is kept, when, and whether it still fits.

The state belongs to the policy, its options and the tenants' weights that it was made
with. With others the gateway begins anew; finished inferences stay where they are.
"""

import json
import logging
import time
from collections.abc import Sequence

from justitia.engines.serving.watch import Watched
from justitia.gateway.dispatcher import Call
from justitia.gateway.exchange import Record
from justitia.gateway.freezing import FrozenError
from justitia.gateway.journal import Recorded, read_frozen
from justitia.gateway.settings import GatewaySettings
from justitia.gateway.shares import tenant_of_agent
from justitia.gateway.store import Finished, Store

MOST_VERBS = 100_000
"""After so many the state is written whole, which takes a moment, and they are not
needed any more."""

_log = logging.getLogger("justitia.gateway")


class Memory:
    """The store of a gateway, and what it had in it.

    Attributes
    ----------
    watched
        The policy as it was kept, None without one that fits.

    Raises
    ------
    StoreError
        If the file is no store, or in use.
    """

    def __init__(self, path: str, settings: GatewaySettings) -> None:
        self._settings = settings
        self.store = Store(path)
        adapter = settings.adapter
        self._functions = {
            "now": time.monotonic,
            "make": adapter.make,
            "tenant_of": tenant_of_agent,
        }
        weights = {tenant.name: tenant.weight for tenant in settings.tenants}
        told = {"policy": adapter.policy, "options": adapter.options}
        self._fingerprint = json.dumps({**told, "weights": weights}, sort_keys=True)
        self.watched: Watched | None = None
        fingerprint, frozen, self._verbs = self.store.kept()
        self._kept = None
        if frozen is not None and fingerprint == self._fingerprint:
            try:
                self._kept = read_frozen(frozen, self._functions)
            except FrozenError as error:
                _log.error("the state in %s cannot be used: %s", path, error)
        elif frozen is not None:
            _log.warning(
                "the state in %s is of another policy, of other options or other "
                "tenants: it begins anew",
                path,
            )
        if self._kept is not None and isinstance(self._kept["policy"], Watched):
            self.watched = self._kept["policy"]
        self._agents: Recorded | None = None

    def agents(self, watched: Watched) -> Recorded:
        """Return the agents, with what was known of them if it is `watched` here."""
        adapter = self._settings.adapter
        agents = Recorded(
            watched,
            now=time.monotonic,
            write=self.store.write,
            linger=adapter.linger,
            most=adapter.most_agents,
            predict=adapter.predict,
        )
        self._agents = agents
        if self._kept is not None and self.watched is watched:
            lost = agents.recall(self._kept, self._verbs)
            agents._check()
            fields = {"agents": len(agents), "verbs": len(self._verbs), "lost": lost}
            _log.info("recalled", extra={"fields": fields})
        self._verbs, self._kept = [], None
        self.keep()
        return agents

    def keep(self) -> None:
        """Write the state whole."""
        if self._agents is not None:
            frozen = self._agents.frozen(self._functions)
            self.store.keep(self._fingerprint, frozen)

    def keep_if_due(self) -> None:
        """Write it if many verbs have come since it was."""
        if self.store.verbs_since >= MOST_VERBS:
            self.keep()

    def close(self) -> None:
        """Write it and close the file."""
        self.keep()
        self.store.close()

    def recorder(self, text: str, most: int | None) -> Record:
        """Return what keeps a request's inferences when they are finished."""
        kept = None
        if self._settings.keep_prompts:  # half a surrogate is no text to a file
            kept = text.encode(errors="replace").decode()

        async def record(call: Call, prompts: Sequence[int]) -> None:
            agents = self._agents
            whose = None if agents is None else agents.whose(call.names[0])
            if agents is None or whose is None:
                return
            number, kind = whose
            name = call.claim.agent or call.id
            ended = time.time()
            rows = [
                Finished(
                    call.tenant,
                    f"{name}/{agents.epoch}-{number}",
                    kind,
                    call.claim.stage,
                    prompt,
                    produced,
                    None if most is None else max(most, produced),
                    kept,
                    ended,
                )
                for prompt, produced in zip(prompts, call.counted, strict=True)
            ]
            await self.store.finish(rows)

        return record
