"""The verbs of a policy: what it is told, and what it is asked.

A policy decides which waiting inference an engine starts next. It reads no clock, does
no I/O and draws no random number: the same events give the same answers. It sees
predictions only; what an inference really decodes it learns from the steps.

A policy of your own can subclass `Policy` and write all verbs itself, or subclass
`justitia.policy.AgentOrder` or `InferenceOrder`, which keep the books, and give a key.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator

from justitia.policy.agents import Agent, Inference, Step
from justitia.policy.costs import CostModel, KVTokenTime
from justitia.policy.exact import Number


class Policy(ABC):
    """What every scheduler of this package can be told and asked.

    One life of an inference: ``submit``, ``start``, any number of steps in ``serve``,
    ``finish``; ``requeue`` takes it from running back to waiting. ``finish`` and
    ``leave`` of an id that is not there (any more) return False and change nothing, and
    the id may be used again. A live id in the wrong state, a second agent of the same
    id, an inference of an unknown agent raise `PolicyError` and change nothing.

    In an engine, call ``serve`` as soon as the batch of a step is fixed, before the
    next arrival: its tag depends on the service delivered so far.
    """

    name: str = ""
    """Its name in the registry."""

    cost_model: CostModel = KVTokenTime()
    """The unit of `Agent.cost`, of `revise`, and of the service it counts."""

    static_order: bool = False
    """Whether `serve`, `advance` and `refuse` leave the order of the line as it is."""

    additive: bool = False
    """Whether many steps told as one `Step` leave it as they would one by one."""

    # What happened ------------------------------------------------------------

    @abstractmethod
    def arrive(self, agent: Agent) -> None:
        """Take note of a new agent, with its predicted cost."""

    @abstractmethod
    def submit(self, inference: Inference) -> None:
        """Put an inference that is ready to run in line."""

    @abstractmethod
    def start(self, inference_id: str) -> Inference:
        """Take an inference out of the line, since the engine runs it, and return it.

        Mostly the head; an engine may pass over inferences that are not ready to run.
        """

    @abstractmethod
    def serve(self, step: Step) -> None:
        """Take note of one step: prompt tokens computed and tokens produced.

        Ids that are not running (cancelled meanwhile, say) are passed over.
        """

    @abstractmethod
    def requeue(self, inference_id: str) -> None:
        """Put an inference that was started back to its place in line.

        Nothing is charged twice when it starts again, and a start that was not served
        at all is undone.
        """

    @abstractmethod
    def finish(self, inference_id: str) -> bool:
        """Forget an inference that ended, for whatever cause, waiting or running."""

    @abstractmethod
    def leave(self, agent_id: str) -> bool:
        """Forget an agent that ended or was cancelled, and its inferences with it."""

    @abstractmethod
    def revise(self, agent_id: str, cost: Number) -> None:
        """Replace an agent's predicted total cost."""

    # What to do -----------------------------------------------------------------

    @abstractmethod
    def peek(self) -> Inference | None:
        """Return the head of the line, or None when nothing may start."""

    @abstractmethod
    def order(self) -> Iterator[Inference]:
        """Yield the whole line, lazily, in the order in which `pop` would give it.

        A verb that changes the line ends the walk with a RuntimeError.
        """

    @abstractmethod
    def victims(self) -> Iterator[Inference]:
        """Yield the running inferences, the first to give way first."""

    def pop(self) -> Inference | None:
        """Start the head of the line and return it; None when nothing may start."""
        head = self.peek()
        return None if head is None else self.start(head.id)

    # For those that need it -------------------------------------------------------

    def refuse(self, inference_id: str) -> None:  # noqa: B027 - a default, on purpose
        """Take note that the engine had no room for the head of the line."""

    def advance(self, seconds: Number) -> None:  # noqa: B027 - a default, on purpose
        """Take note that time passed since the last call.

        A clock that was set back gives a negative number, which counts as no time: the
        next reading is taken from there, so time stands still for a moment, not for as
        long as the clock was set back.
        """

    def preempts(self, waiting: Inference, running: Inference) -> bool:
        """Return whether the engine should take `running` out for `waiting`."""
        return False

    def tag(self, agent_id: str) -> Number | None:
        """Return an agent's virtual finish tag, None where there is no such thing."""
        return None

    def _check(self) -> None:  # noqa: B027 - a default, on purpose
        """Assert the invariants of the policy's state."""
