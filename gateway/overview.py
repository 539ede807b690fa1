"""What the page at ``/`` shows: how things are, for people to see.

One `Overview` answers for all who look: what it said a moment ago is said again, so
that viewers cost what one does. It is put together in short parts with others' turns
between them, and each part looks at no more than a bounded number of things: the
requests first in line, a thousand agents, the last that ended.

Who sees what: the operator, or everybody where there are no keys, all of it; a tenant
its own agents, kinds and share, and of the others the engines and sums.
"""

import asyncio
import json
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from math import ceil, exp
from typing import Any, TypeVar

from justitia import __version__
from justitia.engines.serving.agents import Agents
from justitia.engines.serving.watch import OTHER, REQUEST, UNNAMED, Watched
from justitia.gateway.agents import AgentsDesk
from justitia.gateway.dispatcher import Dispatcher
from justitia.gateway.estimates import MEMORY_SECONDS, Pace
from justitia.gateway.fleet import Engine
from justitia.gateway.outlook import Outlook
from justitia.gateway.shares import Shares, tenant_of_agent
from justitia.gateway.tenants import Tenants
from justitia.gateway.upstream import Upstream
from justitia.policy.exact import Number

T = TypeVar("T")

MOST_SHOWN = 1_000
"""Agents."""
LOOK_SECONDS = 0.01
"""Of work, for which agents are looked for in the line: it stands still meanwhile."""
MOST_LOOKED_AT = 20_000
"""Requests that run among which agents are looked for."""
MOST_KINDS = 32
"""Kinds of agents that are told apart; the others are together."""
MOST_ENDED = 10_000
"""Agents that have ended, of all tenants; at least 50 of each are remembered."""
MOST_MODELS = 10
"""Of an engine."""
_VIEWS = 16
_FRESH_SECONDS = 1.0
_PART = 20
"""A view that took a second to make is fresh for so many."""
_REST = 4
"""After a view that took a second no other is made for so many: tenants that look, each
at its own, take a fifth of the time at most, however many there are."""
_AT_ONCE = 100
"""Agents told of in one turn."""
_GATHERED_AT_ONCE = 300
"""Agents whose standing is gathered in one turn."""


@dataclass(slots=True)
class _View:
    told: bytes
    until: float


class Overview:
    """See the module.

    Parameters
    ----------
    watched
        The policy of the dispatcher's agents.
    upstreams
        By engine.
    policy
        Its name.
    """

    def __init__(
        self,
        dispatcher: Dispatcher,
        watched: Watched,
        *,
        desk: AgentsDesk,
        pace: Pace,
        tenants: Tenants,
        upstreams: Mapping[str, Upstream],
        policy: str,
    ) -> None:
        self._dispatcher = dispatcher
        self._watched = watched
        self._desk = desk
        self._pace = pace
        self._tenants = tenants
        self._upstreams = upstreams
        self._policy = policy
        self._since = time.monotonic()
        self._views: OrderedDict[str | None, _View] = OrderedDict()
        self._lock = asyncio.Lock()
        self._rests_until = 0.0
        self._most_ended = max(50, MOST_ENDED // len(tenants.names))
        self._ended: dict[str, deque[tuple[str, float]]] = {}
        self._seen: dict[str, Number] = {}
        self._recent: dict[str, float] = {}  # work by tenant, the last minute's most
        self._agents.leaving = self._leaving

    @property
    def _agents(self) -> Agents:
        return self._dispatcher.agents

    # What is kept -------------------------------------------------------------------

    def sample(self, seconds: float) -> None:
        """Let so much time pass for what tenants got lately."""
        keep = exp(-seconds / MEMORY_SECONDS)
        for tenant, delivered in self._dispatcher.delivered_to.items():
            work = float(delivered - self._seen.get(tenant, 0))
            self._seen[tenant] = delivered
            self._recent[tenant] = self._recent.get(tenant, 0.0) * keep + work

    def _leaving(self, agent_id: str) -> None:
        done = self._watched.completion(agent_id)
        if done is not None:
            tenant = tenant_of_agent(agent_id)
            ended = self._ended.get(tenant)
            if ended is None:
                ended = self._ended[tenant] = deque(maxlen=self._most_ended)
            ended.append(done)

    # What is told -------------------------------------------------------------------

    async def told(self, viewer: str | None) -> bytes:
        """Return how things are, as JSON, no older than a second.

        Parameters
        ----------
        viewer
            The tenant that looks; None for who may see all.
        """
        async with self._lock:
            view, now = self._views.get(viewer), time.monotonic()
            if view is None or now >= view.until:
                if now < self._rests_until:
                    await asyncio.sleep(self._rests_until - now)
                    now = time.monotonic()
                told = await self._made(viewer)
                ended = time.monotonic()
                self._rests_until = ended + _REST * (ended - now)
                fresh = max(_FRESH_SECONDS, _PART * (ended - now))
                view = self._views[viewer] = _View(told, now + fresh)
                if len(self._views) > _VIEWS:
                    self._views.popitem(last=False)
            self._views.move_to_end(viewer)
            return view.told

    async def _made(self, viewer: str | None) -> bytes:
        dispatcher, watched = self._dispatcher, self._watched
        agents, lag = await self._agents_told(viewer)
        await asyncio.sleep(0)
        rest = {
            "version": __version__,
            "policy": self._policy,
            "dispatch": "gateway" if dispatcher.holds else "engine",
            "seconds": time.monotonic() - self._since,
            "viewer": viewer,
            "engines": [self._engine(one) for one in dispatcher.fleet.engines],
            "totals": {
                "agents": len(self._agents),
                "agents_active": dispatcher.active_agents(),
                "waiting": watched.waiting,
                "running": watched.running,
                "oldest_seconds": watched.oldest_age,
                "work_a_second": self._pace.work_a_second,
            },
            "reference": self._reference(lag),
            "agents_left_out": max(0, dispatcher.active_agents(viewer) - len(agents)),
            "completions": self._completions(viewer),
            "tenants": self._shares(viewer),
        }
        # The rows are text already: together they would be a long turn.
        return f'{{"agents":[{",".join(agents)}],{_text(rest)[1:]}'.encode()

    def _engine(self, engine: Engine) -> dict[str, Any]:
        return {
            "url": engine.name,
            "kind": self._upstreams[engine.name].kind,
            "up": engine.up,
            "models": list(islice(engine.models, MOST_MODELS)),
            "capacity": engine.capacity,
            "slots": engine.slots,
            "used": engine.used,
            "running": engine.running,
        }

    # Agents -------------------------------------------------------------------------

    async def _agents_told(self, viewer: str | None) -> tuple[list[str], float]:
        """Tell of agents with requests, each as text: those that only run, the line.

        Beside that the largest lag of any of them.
        """
        places = self._places(viewer)
        await asyncio.sleep(0)
        until = await self._untils(places)
        told: list[str] = []
        largest = 0.0
        async for agent_id in _in_turns(places, _AT_ONCE):
            row = self._agent(agent_id, until.get(agent_id))
            if row is not None:
                largest = max(largest, row["lag"] or 0.0)
                told.append(_text({"place": places[agent_id], **row}))
        return told, largest

    def _agent(self, agent_id: str, until: float | None) -> dict[str, Any] | None:
        known = self._agents.outline(agent_id)
        if known is None:  # it has ended meanwhile
            return None
        form, tenant, name = agent_id.split("/", 2)
        bound = self._bound
        latest = None if until is None or bound is None else until + bound
        return {
            "id": name if form == "agent" else None,
            "request": name.rpartition(".")[0] if form == "request" else None,
            "tenant": tenant if self._tenants.several else None,
            "kind": known["kind"],
            "weight": _plain(known["weight"]),
            "predicted": _plain(known["predicted"]),
            "tag": _plain(known["tag"]),
            "delivered": _plain(known["delivered"]),
            "waiting": known["waiting"],
            "running": known["running"],
            "age": self._watched.age(agent_id),
            "lag": _plain(self._watched.lag(agent_id)),
            "latest": latest,
            "latest_seconds": self._seconds(latest),
        }

    def _places(self, viewer: str | None) -> dict[str, int | None]:
        """Return agents with requests, by the policy's id, with their place in line.

        First those of which nothing was found in line, by their tags; they have None.
        """
        policy, owner = self._watched.inner, self._agents.owner
        if viewer is None:
            line = self._agents.order()
        elif isinstance(policy, Shares):
            line = (one.id for one in policy.order_of(viewer))
        else:
            line = iter(())
        in_line: dict[str, int | None] = {}
        ends = time.thread_time() + LOOK_SECONDS
        for number, request_id in enumerate(line, 1):
            agent_id = owner(request_id)
            if agent_id is not None and agent_id not in in_line:
                if len(in_line) >= MOST_SHOWN:
                    break
                in_line[agent_id] = len(in_line) + 1
            if number % 100 == 0 and time.thread_time() > ends:
                break
        running: set[str] = set()
        for request_id in islice(self._watched.started, MOST_LOOKED_AT):
            agent_id = owner(request_id)
            if agent_id is not None and agent_id not in in_line:
                running.add(agent_id)
        if viewer is not None:
            running = {one for one in running if tenant_of_agent(one) == viewer}
        few = max(MOST_SHOWN // 2, MOST_SHOWN - len(in_line))
        found: dict[str, int | None] = dict.fromkeys(
            islice(sorted(running, key=self._key), few)
        )
        found.update(in_line)
        return dict(islice(found.items(), MOST_SHOWN))

    def _key(self, agent_id: str) -> tuple[Number, str]:
        tag = self._watched.tag(agent_id)
        return (0 if tag is None else tag, agent_id)

    # The reference ------------------------------------------------------------------

    @property
    def _bound(self) -> int | None:
        """What Theorem B allows, M·D; see `justitia.gateway.estimates`."""
        capacity = self._dispatcher.fleet.capacity
        return None if capacity is None else capacity * self._desk.steps

    async def _untils(self, agents: Iterable[str]) -> dict[str, float]:
        """Return the work until the reference is through with agents."""
        self._agents.catch_up()
        policy, clock = self._watched.inner, self._watched.clock
        found: dict[str, float] = {}
        if isinstance(policy, Shares):
            outlook = Outlook(float(policy.among.value), policy.among.places())
            line = await self._standings(policy, {*map(tenant_of_agent, agents)})
            before: dict[str, float] = {}
            async for _, _, left, agent_id in _in_turns(line, _GATHERED_AT_ONCE):
                tenant = tenant_of_agent(agent_id)
                before[tenant] = before.get(tenant, 0.0) + left
                position, weight = policy.position(tenant)
                found[agent_id] = outlook.until(position + before[tenant] / weight)
        elif clock is not None:
            async for agent_id in _in_turns(agents, _GATHERED_AT_ONCE):
                tag = self._agents.tag_of(agent_id)
                if tag is not None:
                    found[agent_id] = float(tag)
            largest = max(found.values(), default=0.0)
            outlook = Outlook(float(clock.value), clock.places(), largest)
            found = {one: outlook.until(tag) for one, tag in found.items()}
        return found

    async def _standings(
        self, policy: Shares, tenants: set[str]
    ) -> list[tuple[float, int, float, str]]:
        """Return the standing of all agents of some tenants, by tag."""
        found: list[tuple[float, int, float, str]] = []
        async for agent_id in _in_turns(list(self._agents.ids), _GATHERED_AT_ONCE):
            if tenant_of_agent(agent_id) in tenants:
                standing = policy.standing(agent_id)
                if standing is not None:
                    found.append((*standing, agent_id))
        found.sort()
        return found

    def _reference(self, behind: float) -> dict[str, Any] | None:
        """Tell how far behind the fair reference things are; None without one clock."""
        clock = self._watched.clock
        if clock is None:
            return None
        lag, early = clock.lag, sum(clock.slack.counts)
        late = sum(lag.counts)
        return {
            "virtual_time": float(clock.value),
            "active": clock.active,
            "lag": behind,
            "allowed": self._bound,
            "starts": early + late,
            "late": late,
            "late_mean": lag.total / late if late else None,
            "late_at_most": lag.largest if late else None,
        }

    def _seconds(self, work: float | None) -> float | None:
        pace = self._pace.work_a_second
        return None if work is None or pace is None else work / pace

    # What has been ------------------------------------------------------------------

    def _completions(self, viewer: str | None) -> list[dict[str, Any]]:
        """Tell of the JCT of those that ended last, by kind, most first."""
        rings = (
            self._ended.values() if viewer is None else [self._ended.get(viewer, ())]
        )
        by_kind: dict[str, list[float]] = {}
        for ring in rings:
            for kind, seconds in ring:
                by_kind.setdefault(kind, []).append(seconds)
        most = sorted(by_kind.items(), key=lambda one: (-len(one[1]), one[0]))
        rest = [seconds for _, found in most[MOST_KINDS:] for seconds in found]
        if rest:
            most = [*most[:MOST_KINDS], (OTHER, rest)]
        return [_spread(kind, sorted(found)) for kind, found in most]

    def _shares(self, viewer: str | None) -> list[dict[str, Any]]:
        """Tell what each tenant is due and got lately; others than a viewer as one.

        Due is a share among the tenants that have something here.
        """
        if not self._tenants.several:
            return []
        rows = list(self._tenant_rows())
        due = sum(row["weight"] for row in rows if row["waiting"] + row["running"])
        got = sum(row["got"] for row in rows)
        if viewer is not None:
            own = [row for row in rows if row["name"] == viewer]
            others = [row for row in rows if row["name"] != viewer]
            rows = [*own, _together(others)] if others else own
        for row in rows:
            weight = row.pop("due")
            row["due"] = weight / due if due else None
            row["got"] = row["got"] / got if got else None
        return rows

    def _tenant_rows(self) -> Iterator[dict[str, Any]]:
        for name in self._tenants.names:
            waiting, running = self._dispatcher.calls(name)
            weight = self._tenants.weights.get(name, 1)
            yield {
                "name": name,
                "weight": weight,
                "due": weight if waiting + running else 0,
                "agents": self._dispatcher.active_agents(name),
                "waiting": waiting,
                "running": running,
                "got": self._recent.get(name, 0.0),
            }


def _together(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the row of several tenants as one, without a name."""
    fields = ("weight", "due", "agents", "waiting", "running", "got")
    return {"name": None, **{f: sum(row[f] for row in rows) for f in fields}}


def _spread(kind: str, seconds: list[float]) -> dict[str, Any]:
    """Return what there is to say of sorted times."""
    count = len(seconds)
    return {
        "kind": None if kind in (UNNAMED, REQUEST) else kind,
        "requests": kind == REQUEST,
        "count": count,
        "mean": sum(seconds) / count,
        "p50": seconds[ceil(count * 0.5) - 1],
        "p99": seconds[ceil(count * 0.99) - 1],
    }


async def _in_turns(things: Iterable[T], at_once: int) -> AsyncIterator[T]:
    """Yield things, and let others have their turn in between."""
    for index, thing in enumerate(things):
        if index % at_once == at_once - 1:
            await asyncio.sleep(0)
        yield thing


def _text(told: Mapping[str, Any]) -> str:
    return json.dumps(told, separators=(",", ":"))


def _plain(value: Any) -> float | None:  # noqa: ANN401 - a policy's number
    return None if value is None else float(value)
