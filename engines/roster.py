"""The agents of a run between their arrival and their end, told to a policy.

Every engine needs the same of it: announce an agent when it arrives, put its inferences
in line as they become ready, and let the policy forget it when it is done. What really
happens is in the specs; the policy is told predictions.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Protocol

from justitia.policy import Agent, CostModel, Inference
from justitia.policy.exact import Number
from justitia.predictors import Predictor
from justitia.workloads import AgentSpec, InferenceSpec, Readiness


class Told(Protocol):
    """The verbs of `justitia.policy.Policy` that a roster uses."""

    @property
    def cost_model(self) -> CostModel:
        """What work is."""

    def arrive(self, agent: Agent) -> None:
        """Let an agent arrive."""

    def submit(self, inference: Inference) -> None:
        """Put an inference in line."""

    def finish(self, inference_id: str) -> bool:
        """Forget an inference that ended."""

    def tag(self, agent_id: str) -> Number | None:
        """Return an agent's tag."""

    def leave(self, agent_id: str) -> bool:
        """Let an agent leave."""


@dataclass(slots=True)
class Member:
    """An agent that is in the run.

    Attributes
    ----------
    seq
        Its number in order of arrival.
    live
        Inferences in line or running, by position in the spec.
    left
        How many inferences have not ended.
    tag
        The policy's last tag of it, once it has left.
    """

    spec: AgentSpec
    seq: int
    predicted: Agent
    told: tuple[Inference, ...]
    readiness: Readiness
    left: int
    live: set[int] = field(default_factory=set)
    tag: Number | None = None


@dataclass(frozen=True, slots=True)
class Task:
    """An inference of a member: its position in the spec, and what the policy knows."""

    member: Member
    position: int

    @property
    def spec(self) -> InferenceSpec:
        """What will really happen."""
        return self.member.spec.inferences[self.position]

    @property
    def told(self) -> Inference:
        """What the policy was told."""
        return self.member.told[self.position]


def inference_id(agent: AgentSpec, inference: InferenceSpec) -> str:
    """Return the id of an inference in the run, ``agent/inference``.

    A slash in the agent's id is written %2F, so that no two inferences have one id.
    """
    name = agent.id.replace("%", "%25").replace("/", "%2F")
    return f"{name}/{inference.id}"


class Roster:
    """Tells a policy of agents as they come, go on and go.

    Complexity: `arrive` O(inferences of the agent), `end` O(1) amortised, each plus the
    policy's own.
    """

    def __init__(self, policy: Told, predictor: Predictor) -> None:
        self._policy = policy
        self._predictor = predictor
        self._members: dict[str, Member] = {}
        self._seq = 0

    def __len__(self) -> int:
        return len(self._members)

    def __iter__(self) -> Iterator[Member]:
        return iter(self._members.values())

    def arrive(self, spec: AgentSpec) -> Member:
        """Announce an agent that has at least one inference; nothing is in line yet."""
        prediction = self._predictor.predict(spec, self._policy.cost_model)
        stages = spec.depths()
        told = tuple(
            Inference(inference_id(spec, i), spec.id, i.prompt_tokens, d, stage)
            for i, d, stage in zip(
                spec.inferences, prediction.decode_tokens, stages, strict=True
            )
        )
        agent = Agent(
            spec.id,
            prediction.cost,
            spec.weight,
            spec.kind,
            prediction.stage_costs,
            len(told),
        )
        self._policy.arrive(agent)
        self._seq += 1
        member = Member(spec, self._seq, agent, told, Readiness(spec), len(told))
        self._members[spec.id] = member
        return member

    def release(self, member: Member, positions: list[int] | None = None) -> list[Task]:
        """Put inferences in line: those given, or those that wait for nothing."""
        if positions is None:
            positions = member.readiness.ready()
        tasks = [Task(member, position) for position in positions]
        for task in tasks:
            member.live.add(task.position)
            self._policy.submit(task.told)
        return tasks

    def end(self, task: Task) -> list[Task]:
        """Take note that an inference ended; return those that it made ready.

        An agent whose last inference ended has left the policy and the roster, and the
        predictor may learn of it.
        """
        member = task.member
        member.live.remove(task.position)
        member.left -= 1
        self._policy.finish(task.told.id)
        if not member.left:
            self._leave(member)
            self._predictor.learn(member.spec, self._policy.cost_model)
            return []
        return self.release(member, member.readiness.done(task.position))

    def cancel(self, member: Member) -> list[Task]:
        """Let an agent leave before its end; return what was in line or running."""
        tasks = [Task(member, position) for position in sorted(member.live)]
        self._leave(member)
        return tasks

    def get(self, agent_id: str) -> Member | None:
        """Return the member of an id, None once it has left."""
        return self._members.get(agent_id)

    def _leave(self, member: Member) -> None:
        agent_id = member.spec.id
        del self._members[agent_id]
        member.tag = self._policy.tag(agent_id)
        self._policy.leave(agent_id)
