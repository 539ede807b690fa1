"""What a server's front end can ask and tell the scheduler in its engine.

A front end often lives in another process than the scheduler, so a question is a verb
and a JSON object, and an answer is a JSON object with a ``status``, as in HTTP. What
cannot be done is an answer, too: nothing here raises, since an exception in the
engine's process can end the engine.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from justitia import __version__
from justitia.engines.limits import without_displacing
from justitia.engines.serving.agents import Agents, named
from justitia.engines.serving.claims import (
    FIELDS,
    UNKNOWN,
    Claim,
    ClaimError,
    read_claim,
)
from justitia.engines.serving.settings import ServingSettings
from justitia.engines.serving.watch import MeteredClock, Watched
from justitia.policy import PolicyError
from justitia.policy.exact import Number, positive, shown

Abort = Callable[[tuple[str, ...]], object]
"""Ends requests in the engine."""
_ANNOUNCED = ("id", "cost", "kind", "weight", "stage_costs", "inferences")
_REVISED = ("cost",)
_WHOLE = (UNKNOWN, "claim", "prediction")
"""Faults that are of no single field; see `Agents`."""


class Desk:
    """Answers for one scheduler.

    Parameters
    ----------
    agents
        Whose policy is `watched`.
    settings
        That the policy was made from.
    facts
        What else there is to say of the engine, by name: its ``engine``,
        ``engine_version``, ``scheduler``, ``capacity_tokens``, …
    """

    def __init__(
        self,
        agents: Agents,
        watched: Watched,
        settings: ServingSettings,
        facts: Mapping[str, Any],
    ) -> None:
        self._agents = agents
        self._watched = watched
        self._settings = settings
        self._facts = dict(facts)
        self._verbs: dict[str, Callable[[dict[str, Any], Abort], dict[str, Any]]] = {
            "announce": self._announce,
            "revise": self._revise,
            "dismiss": self._dismiss,
            "describe": self._describe,
            "state": lambda given, abort: {"status": 200, **self.state()},
            "measures": lambda given, abort: {
                "status": 200,
                **self.state(),
                "histograms": self.histograms(),
            },
        }

    def answer(self, verb: str, payload: str, abort: Abort) -> str:
        """Do what a verb says; see the module.

        Parameters
        ----------
        verb
            ``announce``, ``revise``, ``dismiss``, ``describe``, ``state`` or
            ``measures``.
        payload
            A JSON object: of an agent, its ``id``, ``cost``, ``kind``, ``weight``,
            ``stage_costs`` and ``inferences``.
        abort
            Called with the requests of an agent that is dismissed.
        """
        try:
            self._agents.expire()  # an engine without work does not ask it to
            self._agents.catch_up()  # its numbers are those of now
            given = json.loads(payload)
            done = self._verbs[verb](given if isinstance(given, dict) else {}, abort)
            return json.dumps(done)
        except Refusal as refusal:
            return json.dumps(refusal.told())
        except Exception as error:
            return json.dumps(Refusal(500, f"{verb}: {error!r}", None).told())

    def state(self) -> dict[str, Any]:
        """Return how things are: as many numbers for a million agents as for one."""
        watched, agents = self._watched, self._agents
        clock = watched.clock
        return {
            "version": __version__,
            **self._facts,
            "policy": self._settings.policy,
            "options": dict(self._settings.options),
            "limits": without_displacing(watched),
            "admission": self._settings.admission,
            "virtual_time": None if clock is None else float(clock.value),
            "agents": len(agents),
            "agents_active": None if clock is None else clock.active,
            "agents_forgotten": agents.forgotten,
            "oldest_agent_seconds": watched.oldest_age,
            "waiting": watched.waiting,
            "running": watched.running,
            "preemptions": watched.preemptions,
            "unmeasured": 0 if clock is None else clock.unmeasured,
            "faults": dict.fromkeys((*FIELDS, *_WHOLE), 0) | dict(agents.faults),
        }

    def histograms(self) -> dict[str, Any]:
        """Return the histograms, as data."""
        watched = self._watched
        clock = watched.clock or MeteredClock()
        return {
            "completion": {k: h.told() for k, h in watched.completions.items()},
            "slack": clock.slack.told(),
            "lag": clock.lag.told(),
        }

    def _announce(self, given: dict[str, Any], abort: Abort) -> dict[str, Any]:
        claim = read_announcement(given)
        if _name(given) in self._agents:
            raise Refusal(
                409,
                f"agent {shown(claim.agent)} is known already: revise it, or dismiss "
                "it first",
                "id",
            )
        self._agents.announce(claim)
        return {"status": 201, **self._told(str(claim.agent))}

    def _revise(self, given: dict[str, Any], abort: Abort) -> dict[str, Any]:
        name, cost = read_revision(given)
        self._known(name)
        self._agents.revise(name, cost)
        return {"status": 200, **self._told(name)}

    def _dismiss(self, given: dict[str, Any], abort: Abort) -> dict[str, Any]:
        name = _name(given)
        self._known(name)
        gone = self._agents.dismiss(name) or ()
        if gone:
            abort(gone)
        return {"status": 200, "id": name, "aborted": len(gone)}

    def _describe(self, given: dict[str, Any], abort: Abort) -> dict[str, Any]:
        name = _name(given)
        self._known(name)
        known = self._agents.describe(name) or {}
        told = {
            field: float(value) if isinstance(value, Fraction) else value
            for field, value in known.items()
        }
        active = self._watched.active(named(name))
        return {"status": 200, "id": name, **told, **self._told(name), "active": active}

    def _known(self, name: str) -> None:
        if name not in self._agents:
            raise Refusal(404, f"no agent {shown(name)} is known", "id")

    def _told(self, name: str) -> dict[str, Any]:
        tag = self._agents.tag(name)
        return {"id": name, "tag": None if tag is None else float(tag)}


class Refusal(PolicyError):
    """Something that is not done; `told` is the answer, in OpenAI's form of errors."""

    def __init__(self, status: int, reason: str, field: str | None) -> None:
        super().__init__(reason)
        self.status = status
        self.field = field

    def told(self) -> dict[str, Any]:
        """Return it as an answer."""
        kinds = {404: "not_found_error", 500: "server_error"}
        error = {
            "message": str(self),
            "type": kinds.get(self.status, "invalid_request_error"),
            "param": self.field,
            "code": self.status,
        }
        return {"status": self.status, "error": error}


def in_force(state: Mapping[str, Any], engine: str) -> str:
    """Return what a server says when its policy is in force."""
    return (
        f"justitia {state['version']} is in force: policy {state['policy']}, "
        f"admission {state['admission']}, {state['capacity_tokens']:,} KV tokens, "
        f"{engine} {state['engine_version']}"
    )


def read_announcement(
    given: Mapping[str, Any], *, further: tuple[str, ...] = ()
) -> Claim:
    """Return the claim that an announcement makes.

    Parameters
    ----------
    further
        Fields that the caller takes and has read already; the first of them stands for
        a cost.

    Raises
    ------
    Refusal
        Naming the field, its value and what is allowed.
    """
    _only(given, _ANNOUNCED, further)
    _name(given)
    values = {("agent" if f == "id" else f): value for f, value in given.items()}
    try:
        claim = read_claim(values, strict=True)
    except ClaimError as error:
        raise Refusal(400, str(error), error.field) from None
    if claim.cost is None:
        reason = "cost or stage_costs must be given: finite positive numbers"
        if further:
            reason += f"; or {further[0]}"
        raise Refusal(400, reason, "cost")
    return claim


def read_revision(given: Mapping[str, Any]) -> tuple[str, Number]:
    """Return the agent and the cost that a revision says; see `read_announcement`."""
    _only([field for field in given if field != "id"], _REVISED)
    try:
        return _name(given), positive(given.get("cost"), "cost")
    except Refusal:
        raise
    except PolicyError as error:
        raise Refusal(400, str(error), "cost") from None


def _name(given: Mapping[str, Any]) -> str:
    """Return whose id it is; an empty one is nobody's, not everybody's."""
    try:
        claim = read_claim({"agent": given.get("id", "")}, strict=True)
    except ClaimError as error:
        raise Refusal(400, str(error).replace("agent", "id", 1), "id") from None
    if claim.agent is None:
        raise Refusal(400, "id must be given", "id")
    return claim.agent


def _only(
    given: Iterable[str], fields: tuple[str, ...], further: tuple[str, ...] = ()
) -> None:
    for field in given:
        if field not in fields:
            raise Refusal(
                400,
                f"no field {shown(field)}; there are: {', '.join(fields + further)}",
                field[:80],
            )
