"""The agents of a live engine: they come with their first request, and end unannounced.

A workload that is run knows its agents; a server learns of one when a request names it.
`Agents` makes of such requests what a policy can be told, keeps what it must know to
tell it of every end, and forgets all of an agent when the agent is over.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import zip_longest
from typing import Any, Protocol

from justitia.engines.serving.claims import Claim
from justitia.engines.serving.complaints import Complaints
from justitia.engines.serving.idle import Idle
from justitia.policy import Agent, Inference, Policy, PolicyError, Step
from justitia.policy.exact import Number, shown

Predict = Callable[[str, int, int], int]
"""The tokens that a request will produce, from its agent's kind, the tokens of its
prompt, and the most that it may."""

MOST_MERGED = 8
"""Equal steps that are told as one at most: who looks at the policy by another way is
no further behind."""


class Witness(Protocol):
    """Somebody who looks on: a meter of the lag, a run's record."""

    def served(self, step: Step) -> None:
        """Take note of a step whose batch is fixed."""

    def requeued(self, request_id: str) -> None:
        """Take note of a request that is back in line, whether or not it ran."""


@dataclass(slots=True, eq=False)
class _Request:
    """A request in line or running; `work` is what it is predicted to cost."""

    id: str
    agent: "_Agent"
    prompt: int
    predicted: int
    work: Number
    running: bool = False


@dataclass(slots=True, eq=False)
class _Agent:
    """An agent that the policy knows.

    Attributes
    ----------
    told
        What the policy was told of it first.
    cost
        What somebody said that it costs in all; None: it costs what its requests do.
    inferences
        How many it will have, None where nobody said.
    own
        Whether it is a request without an agent.
    number
        Of its arrival, from 1.
    live, expected
        Its requests in line or running, and the work that they are predicted to cost.
    ended, delivered
        How many have ended, and the work that those were delivered.
    """

    id: str
    told: Agent
    cost: Number | None
    own: bool
    number: int
    live: dict[str, _Request] = field(default_factory=dict)
    expected: Number = 0
    ended: int = 0
    delivered: Number = 0

    @property
    def declared(self) -> bool:
        """Whether somebody said what it costs in all."""
        return self.cost is not None


class Agents:
    """Tells a policy of the agents and requests of a live engine.

    A request without an agent is an agent of its own, and ends with it. A named agent
    ends with the last of the requests that were declared for it, when it is dismissed,
    or when it has had no request for `linger` seconds. What an agent's first request
    (or its announcement) says of the agent holds; what later ones say is passed over.

    An agent whose cost nobody declared costs what its requests are predicted to, and
    each of them, once ended, what it was delivered. Its cost grows as its requests
    come, as a tag a stage would, so the stages that they name are passed over, too.

    Nothing that a client says stops a request. What cannot be used is left out; if the
    policy still refuses a claim (costs that add up to more than a cost may be, say),
    the request becomes an agent of its own.

    Parameters
    ----------
    policy
        Fresh.
    now
        The time in seconds; it need not have a meaning, nor go only forward.
    linger
        Seconds for which a named agent without a request is remembered; 0: not at all.
    most
        Named agents without a request that are remembered at most; those idle longest
        go first.
    predict
        Asked for requests that do not say how much they will produce; None: each
        produces the most that it may.

    Attributes
    ----------
    forgotten
        How many agents had no request for too long, or were too many without one: they
        were forgotten though nobody had said that they were over.
    faults
        How often what a client sent could not be used, by field of the claim;
        ``"claim"`` for those that the policy refused as a whole, ``"prediction"`` for
        what `predict` could not predict.
    witness
        Told of steps and of requests that go back in line.
    leaving
        Called with the policy's id of each agent that ends, before it is forgotten.
    moves
        A number that is another where the order of those in line may be: a request that
        starts in its turn leaves it, and so do steps where the policy says so.

    Notes
    -----
    Complexity: O(1) a verb beyond the policy's own, `serve` O(requests in the step),
    `dismiss` O(requests of the agent). Memory O(live requests + agents at rest).
    """

    def __init__(
        self,
        policy: Policy,
        *,
        now: Callable[[], float],
        linger: float = 300.0,
        most: int = 10_000,
        predict: Predict | None = None,
    ) -> None:
        self._policy = policy
        self._static = policy.static_order
        self._merges = policy.additive and policy.static_order
        self._held: Mapping[str, int] = {}
        self._times = 0
        self.faults: Counter[str] = Counter()
        self.forgotten = 0
        self._complaints = Complaints(now)
        self.witness: Witness | None = None
        self.leaving: Callable[[str], object] = _nobody
        self.moves = 0
        self._predict = predict
        self._agents: dict[str, _Agent] = {}
        self._arrivals = 0
        self._requests: dict[str, _Request] = {}
        # Of those served; beside them, so that a step touches no more than it must.
        self._produced: dict[str, int] = {}
        self._idle = Idle(now, linger, most)

    @property
    def policy(self) -> Policy:
        """The policy, which has been told of all that has happened."""
        self.catch_up()
        return self._policy

    def catch_up(self) -> None:
        """Tell the policy of the steps that were held back, if any; see `serve`."""
        if not self._times:
            return
        decode, times, self._times = self._held, self._times, 0
        if times > 1:
            decode = {request_id: count * times for request_id, count in decode.items()}
        self._policy.serve(Step({}, decode))
        self._count(decode)

    def __len__(self) -> int:
        """Return how many agents are known."""
        return len(self._agents)

    def __contains__(self, name: str) -> bool:
        """Return whether a named agent is known."""
        return named(name) in self._agents

    @property
    def ids(self) -> Collection[str]:
        """The policy's ids of all agents that are known, as they are at any time."""
        return self._agents.keys()

    @property
    def requests(self) -> Collection[str]:
        """The ids of those in line and running, as they are at any time."""
        return self._requests.keys()

    # Agents -----------------------------------------------------------------------

    def announce(self, claim: Claim) -> Agent:
        """Let an agent arrive before its first request; its cost must be declared.

        Raises
        ------
        PolicyError
            If it names no agent or no cost, the agent is known already, or agents
            without a request are not remembered.
        """
        if claim.agent is None or claim.cost is None:
            raise PolicyError("an agent is announced with its id and its cost")
        if not self._idle.remembers:
            raise PolicyError("agents without a request are not remembered here")
        agent_id = named(claim.agent)
        if agent_id in self._agents:
            raise PolicyError(f"agent {shown(claim.agent)} is known already")
        told = self._arrive(agent_id, claim, claim.cost)
        self._rest(self._agents[agent_id])
        return told

    def revise(self, name: str, cost: Number) -> None:
        """Replace the predicted cost of a named agent, which is declared from now on.

        Raises
        ------
        PolicyError
            If the agent is not known, or the cost is none.
        """
        agent = self._agents.get(named(name))
        if agent is None:
            raise PolicyError(f"agent {shown(name)} is not known")
        self.policy.revise(agent.id, cost)
        agent.cost = cost
        self.moves += 1

    def tag(self, name: str) -> Number | None:
        """Return the tag of a named agent, None where there is none."""
        return self.tag_of(named(name))

    def tag_of(self, agent_id: str) -> Number | None:
        """Return the tag of an agent by the policy's id of it; see `tag`."""
        return self.policy.tag(agent_id) if agent_id in self._agents else None

    def describe(self, name: str) -> dict[str, Any] | None:
        """Return what is known of a named agent, None where it is not known.

        Its ``kind`` and ``weight``; ``cost``, None where nobody said one; ``tag``, None
        under a policy without; the number of its requests ``waiting`` and ``running``;
        the work that was ``delivered`` to all of them so far.

        Complexity: O(requests of the agent).
        """
        told = self.outline(named(name))
        if told is not None:
            del told["predicted"]
        return told

    def outline(self, agent_id: str) -> dict[str, Any] | None:
        """Return what is known of an agent by the policy's id of it; see `describe`.

        Beside that what it is ``predicted`` to cost: what somebody said, or what its
        requests so far come to.
        """
        agent = self._agents.get(agent_id)
        if agent is None:
            return None
        live = agent.live.values()
        running = sum(request.running for request in live)
        so_far = agent.delivered + agent.expected
        return {
            "kind": agent.told.kind,
            "weight": agent.told.weight,
            "cost": agent.cost,
            "tag": self.policy.tag(agent.id),
            "waiting": len(live) - running,
            "running": running,
            "delivered": agent.delivered + sum(map(self._delivered, live)),
            "predicted": so_far if agent.cost is None else agent.cost,
        }

    def dismiss(self, name: str) -> tuple[str, ...] | None:
        """End a named agent; return the ids of its requests, None if it is not known.

        The engine still has to abort those. They are in line and running no more as far
        as the policy and this object know: verbs about them change nothing.
        """
        agent = self._agents.get(named(name))
        if agent is None:
            return None
        gone = tuple(agent.live)
        self._leave(agent)
        return gone

    def expire(self) -> None:
        """Let agents end that have had no request for too long; tell the time."""
        self._policy.advance(self._idle.tick())
        self._may_move()
        self._forget_the_idle()

    # Requests ---------------------------------------------------------------------

    def submit(
        self, request_id: str, claim: Claim, prompt_tokens: int, longest: int
    ) -> None:
        """Put a request in line, with its agent if that is new.

        Never raises for what a claim says; see `faults`.

        Parameters
        ----------
        request_id
            Not live.
        prompt_tokens, longest
            Tokens of its prompt, and the most that it may produce; 0 for a request that
            produces none.
        """
        if request_id in self._requests:
            raise PolicyError(f"request {shown(request_id)} is here already")
        for field_, reason in zip_longest(claim.faults, claim.reasons, fillvalue=""):
            self._fault(field_, reason)
        predicted = self._predicted(claim, prompt_tokens, longest)
        try:
            self._enter(request_id, claim, prompt_tokens, predicted)
        except PolicyError as error:
            self._fault("claim", str(error))
            self._enter(request_id, Claim(), prompt_tokens, predicted)

    def head(self) -> str | None:
        """Return the id of the request that is next."""
        head = self._policy.peek()  # what is held back does not reorder the line
        return None if head is None else head.id

    def order(self) -> Iterator[str]:
        """Return the ids of those in line, in order."""
        return (inference.id for inference in self.policy.order())

    def victims(self) -> Iterator[str]:
        """Return the ids of the running, the first to give way first."""
        return (inference.id for inference in self.policy.victims())

    def predicted(self, request_id: str) -> int:
        """Return how many tokens a request is predicted to produce, 0 if not known."""
        request = self._requests.get(request_id)
        return 0 if request is None else request.predicted

    def produced(self, request_id: str) -> int:
        """Return how many tokens a live request was told to have produced."""
        self.catch_up()
        return self._produced.get(request_id, 0)

    def waiting(self, request_id: str) -> bool:
        """Return whether a request is in line."""
        request = self._requests.get(request_id)
        return request is not None and not request.running

    def start(self, request_id: str) -> None:
        """Take note that a request that is in line enters the next step."""
        if not self._static or self.head() != request_id:
            self.moves += 1
        self.policy.start(request_id)
        self._requests[request_id].running = True

    def requeue(self, request_id: str) -> None:
        """Take note that a running request is back in line."""
        request = self._requests.get(request_id)
        if request is None or not request.running:
            return
        self.policy.requeue(request_id)
        self.moves += 1
        request.running = False
        if self.witness is not None:
            self.witness.requeued(request_id)

    def refuse(self, request_id: str) -> None:
        """Take note that a request in line does not fit."""
        if self.waiting(request_id):
            self._policy.refuse(request_id)
            self._may_move()

    def serve(self, prefill: Mapping[str, int], decode: Mapping[str, int]) -> None:
        """Take note of a step, as soon as its batch is fixed; see `Step`.

        Equal steps in a row are told to the policy as one, before anything else is,
        where it says that this changes nothing: a step costs less then than a look at
        every request in it.
        """
        if self._merges and not prefill and self.witness is None:
            if not self._times:
                self._held = decode
            elif self._times == MOST_MERGED or decode != self._held:
                self.catch_up()
                self._held = decode
            self._times += 1
            return
        step = Step(prefill, decode)
        self.policy.serve(step)
        self._may_move()
        self._count(decode)
        if self.witness is not None:
            self.witness.served(step)

    def charge(self, request_id: str, work: int) -> None:
        """Take note of work that a running request was delivered, and no step told of.

        Where the length of a prompt is known at its end only, say. The policy is told
        of it as of a request of the same agent that holds `work` tokens for one step.
        """
        request = self._requests.get(request_id)
        if request is None or work <= 0:
            return
        policy, more = self.policy, f"{request_id}/more"
        policy.submit(Inference(more, request.agent.id, work, 0))
        policy.start(more)
        policy.serve(Step({more: work}, {more: 0}))
        policy.finish(more)
        request.agent.delivered += policy.cost_model(work, 0)
        self.moves += 1

    def owner(self, request_id: str) -> str | None:
        """Return the policy's id of a live request's agent."""
        request = self._requests.get(request_id)
        return None if request is None else request.agent.id

    def whose(self, request_id: str) -> tuple[int, str] | None:
        """Return the number of arrival and the kind of a live request's agent."""
        request = self._requests.get(request_id)
        if request is None:
            return None
        return request.agent.number, request.agent.told.kind

    def request_tag(self, request_id: str) -> Number | None:
        """Return the tag of a live request's agent, None where there is none."""
        request = self._requests.get(request_id)
        return None if request is None else self.policy.tag(request.agent.id)

    def _may_move(self) -> None:
        """Take note of what leaves the line as it is under a static order only."""
        if not self._static:
            self.moves += 1

    def _count(self, decode: Mapping[str, int]) -> None:
        known, produced = self._requests, self._produced
        for request_id, count in decode.items():
            if request_id in known:
                produced[request_id] = produced.get(request_id, 0) + count

    def finish(self, request_id: str) -> bool:
        """Take note that a request ended, for whatever cause, waiting or running."""
        policy = self.policy
        request = self._requests.pop(request_id, None)
        if request is None:
            return False
        policy.finish(request_id)
        self.moves += 1
        agent = request.agent
        del agent.live[request_id]
        agent.expected = agent.expected - request.work if agent.live else 0
        agent.ended += 1
        agent.delivered += self._delivered(request)
        self._produced.pop(request_id, None)
        if not agent.live:
            most = agent.told.inferences
            done = most is not None and agent.ended >= most
            if agent.own or done or not self._idle.remembers:
                self._leave(agent)
                return True
        if not agent.declared:
            self._settle(agent)
        if not agent.live:
            self._rest(agent)
        return True

    # What only this class does ------------------------------------------------------

    def _enter(
        self, request_id: str, claim: Claim, prompt: int, predicted: int
    ) -> None:
        """Tell the policy of a request and, if it is new, its agent; or of nothing."""
        work = self.policy.cost_model(prompt, predicted)
        own = f"request/{request_id}"
        name = own if claim.agent is None else named(claim.agent)
        known = name in self._agents
        if not known:
            self._arrive(name, claim, work if claim.cost is None else claim.cost)
        agent = self._agents[name]
        try:
            if known and not agent.declared:
                self.policy.revise(name, agent.delivered + agent.expected + work)
            stage = claim.stage if agent.declared else 0
            self.policy.submit(Inference(request_id, name, prompt, predicted, stage))
        except PolicyError:
            if not known:
                self._leave(agent)
            raise
        request = _Request(request_id, agent, prompt, predicted, work)
        agent.live[request_id] = request
        agent.expected += work
        self._requests[request_id] = request
        self.moves += 1
        self._idle.wake(name)

    def _arrive(self, agent_id: str, claim: Claim, cost: Number) -> Agent:
        told = Agent(
            agent_id,
            cost,
            claim.weight,
            claim.kind,
            () if claim.cost is None else claim.stage_costs,
            claim.inferences,
        )
        self.policy.arrive(told)
        own = claim.agent is None
        self._arrivals += 1
        agent = _Agent(agent_id, told, claim.cost, own, self._arrivals)
        self._agents[agent_id] = agent
        return told

    def _delivered(self, request: _Request) -> Number:
        produced = self._produced.get(request.id)
        if produced is None:
            return 0
        return self.policy.cost_model.delivered(
            request.prompt, produced, request.predicted
        )

    def _fault(self, field_: str, reason: str) -> None:
        self.faults[field_] += 1
        self._complaints.take(field_, reason)

    def _predicted(self, claim: Claim, prompt: int, longest: int) -> int:
        """Return what a request will produce: something, and no more than it may."""
        tokens = claim.tokens
        if tokens is None and self._predict is not None:
            try:
                tokens = int(self._predict(claim.kind, prompt, longest))
            except Exception as error:  # whatever it does, the request goes on
                self._fault("prediction", f"the predictor fails: {error!r}"[:300])
            else:
                if tokens < 1:
                    self._fault("prediction", f"{tokens} tokens were predicted")
        if tokens is None:
            return longest
        return min(max(1, tokens), longest)

    def _settle(self, agent: _Agent) -> None:
        """Make an undeclared agent cost what it was delivered and may still be."""
        cost = agent.delivered + agent.expected
        if cost > 0:
            self.policy.revise(agent.id, cost)

    def _rest(self, agent: _Agent) -> None:
        self._idle.rest(agent.id)
        self._forget_the_idle()

    def _forget_the_idle(self) -> None:
        while (agent_id := self._idle.due()) is not None:
            self.forgotten += 1
            self._leave(self._agents[agent_id])

    def _leave(self, agent: _Agent) -> None:
        policy = self.policy
        self.leaving(agent.id)
        self.moves += 1
        del self._agents[agent.id]
        self._idle.wake(agent.id)
        for request_id in agent.live:
            del self._requests[request_id]
            self._produced.pop(request_id, None)
        policy.leave(agent.id)

    def _check(self) -> None:
        """Assert all invariants."""
        self.policy._check()
        self._idle._check()
        live = {r: a for a in self._agents.values() for r in a.live}
        assert live.keys() == self._requests.keys()
        assert self._produced.keys() <= self._requests.keys()
        for name, agent in self._agents.items():
            assert agent.id == name
            assert (name in self._idle) == (not agent.live)
            work: Number = sum((r.work for r in agent.live.values()), 0)
            off = abs(float(agent.expected) - float(work))
            assert off <= 1e-9 * float(work)  # a float may round
            assert agent.live or not agent.own
        for name, request in self._requests.items():
            assert request.id == name
            assert request.agent is live[name]
        assert len(self._idle) <= sum(not agent.own for agent in self._agents.values())
        in_line = [inference.id for inference in self.policy.order()]
        waiting = [r.id for r in self._requests.values() if not r.running]
        assert sorted(in_line) == sorted(waiting)


def _nobody(agent_id: str) -> None:
    """Let nobody know that an agent ends."""


def named(name: str) -> str:
    """Return the policy's id of an agent that a client named."""
    return f"agent/{name}"
