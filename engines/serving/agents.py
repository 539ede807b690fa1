"""The agents of a live engine: they come with their first request, and end unannounced.

A workload that is run knows its agents; a server learns of one when a request names it.
`Agents` makes of such requests what a policy can be told, keeps what it must know to
tell it of every end, and forgets all of an agent when the agent is over.
"""

from collections import Counter, OrderedDict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from justitia.engines.serving.claims import Claim
from justitia.policy import Agent, Inference, Policy, PolicyError, Step
from justitia.policy.exact import Number, shown


class Witness(Protocol):
    """Somebody who looks on: a meter of the lag, a run's record."""

    def served(self, step: Step) -> None:
        """A step's batch is fixed."""

    def requeued(self, request_id: str) -> None:
        """A request is back in line, whether or not it ran."""


@dataclass(slots=True)
class _Request:
    id: str
    agent: "_Agent"
    prompt: int
    predicted: int
    produced: int = 0
    running: bool = False


@dataclass(slots=True)
class _Agent:
    """An agent that the policy knows.

    Attributes
    ----------
    declared
        Whether somebody said what it costs in all; else it costs what its requests do.
    inferences
        How many it will have, None where nobody said.
    ended
        How many have ended.
    delivered
        The work of those that have.
    own
        Whether it is a request without an agent.
    """

    id: str
    declared: bool
    inferences: int | None
    own: bool
    kind: str
    live: dict[str, _Request] = field(default_factory=dict)
    ended: int = 0
    delivered: Number = 0
    idle_since: float = 0.0


class Agents:
    """Tells a policy of the agents and requests of a live engine.

    A request without an agent is an agent of its own, and ends with it. A named agent
    ends with the last of the requests that were declared for it, when it is dismissed,
    or when it has had no request for `linger` seconds. An agent whose cost nobody
    declared costs what its requests are predicted to, and each of them, once ended,
    what it was delivered.

    Parameters
    ----------
    policy
        Fresh.
    now
        The time in seconds; it need not have a meaning, nor go only forward.
    linger
        Seconds for which a named agent without a request is remembered.
    most
        Named agents without a request that are remembered at most; those idle longest
        go first.
    predict
        The work and the tokens of a request that says neither, from its agent's kind,
        its prompt tokens and its longest output; None: it produces its longest.
    """

    def __init__(
        self,
        policy: Policy,
        *,
        now: Callable[[], float],
        linger: float = 60.0,
        most: int = 10_000,
        predict: Callable[[str, int, int], int] | None = None,
    ) -> None:
        self.policy = policy
        self.faults: Counter[str] = Counter()
        """How often what a client sent could not be used, by field."""
        self.witness: Witness | None = None
        self._now = now
        self._linger = linger
        self._most = most
        self._predict = predict
        self._agents: dict[str, _Agent] = {}
        self._requests: dict[str, _Request] = {}
        self._idle: OrderedDict[str, _Agent] = OrderedDict()  # longest first
        self._last = now()

    def __len__(self) -> int:
        """Return how many agents are known."""
        return len(self._agents)

    # Agents -----------------------------------------------------------------------

    def announce(self, claim: Claim) -> Agent:
        """Let an agent arrive before its first request; its cost must be declared.

        Raises
        ------
        PolicyError
            If it names no agent or no cost, or the agent is known already.
        """
        if claim.agent is None or claim.cost is None:
            raise PolicyError("an agent is announced with its id and its cost")
        agent_id = _named(claim.agent)
        if agent_id in self._agents:
            raise PolicyError(f"agent {shown(claim.agent)} is known already")
        told = Agent(
            agent_id,
            claim.cost,
            claim.weight,
            claim.kind,
            claim.stage_costs,
            claim.inferences,
        )
        self.policy.arrive(told)
        agent = _Agent(agent_id, True, claim.inferences, False, claim.kind)
        self._agents[agent_id] = agent
        self._rest(agent)
        return told

    def revise(self, name: str, cost: Number) -> None:
        """Replace the predicted cost of a named agent."""
        agent = self._agents.get(_named(name))
        if agent is None:
            raise PolicyError(f"agent {shown(name)} is not known")
        self.policy.revise(agent.id, cost)
        agent.declared = True

    def tag(self, name: str) -> Number | None:
        """Return the tag of a named agent, None where there is none."""
        agent_id = _named(name)
        return self.policy.tag(agent_id) if agent_id in self._agents else None

    def dismiss(self, name: str) -> tuple[str, ...] | None:
        """End a named agent; return the ids of its requests, None if it is not known.

        The engine still has to abort those. They are none of the policy's any more.
        """
        agent = self._agents.get(_named(name))
        if agent is None:
            return None
        gone = tuple(agent.live)
        self._leave(agent)
        return gone

    def expire(self) -> None:
        """Let agents end that have had no request for too long; tell the time."""
        now = self._now()
        self.policy.advance(now - self._last)
        self._last = now
        while self._idle:
            agent = next(iter(self._idle.values()))
            waited = now - agent.idle_since
            if waited < self._linger and len(self._idle) <= self._most:
                break
            self._leave(agent)

    # Requests ---------------------------------------------------------------------

    def submit(
        self, request_id: str, claim: Claim, prompt_tokens: int, longest: int
    ) -> None:
        """Put a request in line, with its agent if that is new.

        Never raises for what a claim says: what cannot be used is counted in `faults`.
        """
        self.faults.update(claim.faults)
        predicted = self._predicted(claim, prompt_tokens, longest)
        agent = self._agent_of(request_id, claim, prompt_tokens, predicted)
        request = _Request(request_id, agent, prompt_tokens, predicted)
        self.policy.submit(
            Inference(request_id, agent.id, prompt_tokens, predicted, claim.stage)
        )
        agent.live[request_id] = request
        self._requests[request_id] = request
        self._idle.pop(agent.id, None)

    def head(self) -> str | None:
        """Return the id of the request that is next."""
        head = self.policy.peek()
        return None if head is None else head.id

    def order(self) -> Iterator[str]:
        """Return the ids of those in line, in order."""
        return (inference.id for inference in self.policy.order())

    def victims(self) -> Iterator[str]:
        """Return the ids of the running, the first to give way first."""
        return (inference.id for inference in self.policy.victims())

    def predicted(self, request_id: str) -> int:
        """Return how many tokens a live request is predicted to produce."""
        return self._requests[request_id].predicted

    def waiting(self, request_id: str) -> bool:
        """Return whether a request is in line."""
        request = self._requests.get(request_id)
        return request is not None and not request.running

    def start(self, request_id: str) -> None:
        """Take note that a request enters the next step."""
        self.policy.start(request_id)
        self._requests[request_id].running = True

    def requeue(self, request_id: str) -> None:
        """Take note that a running request is back in line."""
        self.policy.requeue(request_id)
        self._requests[request_id].running = False
        if self.witness is not None:
            self.witness.requeued(request_id)

    def refuse(self, request_id: str) -> None:
        """Take note that the head does not fit."""
        self.policy.refuse(request_id)

    def serve(self, prefill: Mapping[str, int], decode: Mapping[str, int]) -> None:
        """Take note of a step, as soon as its batch is fixed."""
        step = Step(prefill, decode)
        self.policy.serve(step)
        for request_id, count in decode.items():
            request = self._requests.get(request_id)
            if request is not None:
                request.produced += count
        if self.witness is not None:
            self.witness.served(step)

    def finish(self, request_id: str) -> bool:
        """Take note that a request ended, for whatever cause, waiting or running."""
        request = self._requests.pop(request_id, None)
        if request is None:
            return False
        self.policy.finish(request_id)
        agent = request.agent
        del agent.live[request_id]
        agent.ended += 1
        if request.produced:
            agent.delivered += self.policy.cost_model.delivered(
                request.prompt, request.produced, request.predicted
            )
        done = agent.inferences is not None and agent.ended >= agent.inferences
        if agent.own or (done and not agent.live):
            self._leave(agent)
        elif not agent.live:
            self._rest(agent)
        if not agent.declared and agent.id in self._agents:
            self._settle(agent)
        return True

    # What only this class does ------------------------------------------------------

    def _agent_of(
        self, request_id: str, claim: Claim, prompt: int, predicted: int
    ) -> _Agent:
        model = self.policy.cost_model
        own = claim.agent is None
        name = f"request/{request_id}" if own else _named(claim.agent or "")
        agent = self._agents.get(name)
        if agent is None:
            declared = claim.cost is not None
            cost = claim.cost if claim.cost is not None else model(prompt, predicted)
            stages = claim.stage_costs if declared else ()
            self.policy.arrive(
                Agent(name, cost, claim.weight, claim.kind, stages, claim.inferences)
            )
            agent = _Agent(name, declared, claim.inferences, own, claim.kind)
            self._agents[name] = agent
        elif not agent.declared:
            # With a tag a stage the policy itself adds what a later stage costs.
            live = self._live_cost(agent) + model(prompt, predicted)
            self.policy.revise(name, agent.delivered + live)
        if agent.inferences is None:
            agent.inferences = claim.inferences
        return agent

    def _predicted(self, claim: Claim, prompt: int, longest: int) -> int:
        if claim.tokens is not None:
            return min(claim.tokens, longest)
        if self._predict is None:
            return longest
        return min(self._predict(claim.kind, prompt, longest), longest)

    def _live_cost(self, agent: _Agent) -> Number:
        model = self.policy.cost_model
        costs: Number = 0
        for request in agent.live.values():
            costs += model(request.prompt, request.predicted)
        return costs

    def _settle(self, agent: _Agent) -> None:
        """Make an undeclared agent cost what it was delivered and may still be."""
        cost = agent.delivered + self._live_cost(agent)
        if cost > 0:
            self.policy.revise(agent.id, cost)

    def _rest(self, agent: _Agent) -> None:
        if self._linger <= 0 or not self._most:
            self._leave(agent)
            return
        agent.idle_since = self._now()
        self._idle[agent.id] = agent

    def _leave(self, agent: _Agent) -> None:
        del self._agents[agent.id]
        self._idle.pop(agent.id, None)
        for request_id in agent.live:
            del self._requests[request_id]
        self.policy.leave(agent.id)

    def _check(self) -> None:
        """Assert all invariants."""
        self.policy._check()
        live = {r for agent in self._agents.values() for r in agent.live}
        assert live == set(self._requests)
        for name, agent in self._agents.items():
            assert agent.id == name
            assert (name in self._idle) == (not agent.live)
        assert len(self._idle) <= self._most or self._linger <= 0
        in_line = [inference.id for inference in self.policy.order()]
        assert sorted(in_line) == sorted(
            r.id for r in self._requests.values() if not r.running
        )


def _named(name: str) -> str:
    """Return the policy's id of an agent that a client named."""
    return f"agent/{name}"
