"""What a run asks of a real engine in this process: requests in, steps, names out."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from time import monotonic

from justitia.engines.serving.agents import Agents
from justitia.policy import Policy, create

_NEVER = 10**9
_WARMING = 32
"""Requests that warm an engine up."""


class Backend(ABC):
    """A real engine in this process, one step at a time.

    It tells `agents` of every event of its scheduler (a request in line, started, put
    back, served, ended), as the adapter does when it serves.

    Attributes
    ----------
    agents
        Those of this run, with its policy.
    capacity
        KV tokens of its cache.
    context
        Tokens of prompt and output that one request may have.
    depth
        Steps that it keeps in flight: with 2, a turn begins a step and ends with the
        result of the one before.
    """

    agents: Agents
    capacity: int
    context: int
    depth: int = 1

    @property
    def room(self) -> int:
        """Tokens that one request may hold."""
        return min(self.capacity, self.context)

    @abstractmethod
    def add(
        self,
        name: str,
        prompt_tokens: int,
        most_tokens: int,
        claim: Mapping[str, object],
    ) -> None:
        """Send a request.

        Parameters
        ----------
        name
            Of this run's, unique among those in the engine.
        prompt_tokens, most_tokens
            The length of its prompt, and the tokens after which it ends by itself; both
            at least 1.
        claim
            What it says of itself, by field of `justitia.engines.serving.Claim`.
        """

    @abstractmethod
    def abort(self, names: Collection[str]) -> None:
        """Take requests out, waiting or running; those that have ended are none."""

    @abstractmethod
    def step(self) -> Collection[str]:
        """Run a step; return the names of the requests that ended by themselves."""

    @abstractmethod
    def name(self, request_id: str) -> str:
        """Return the name that a request was sent by, from the engine's id of it."""

    def cached(self, name: str) -> int | None:
        """Return how much of a prompt was in the cache; None if it does not say.

        In tokens, of a request that has started.
        """
        return None

    @abstractmethod
    def usage(self) -> float:
        """Return the part of the KV cache that is in use, 0 to 1."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an engine's scheduler stays within, as a preset has it.

    Parameters
    ----------
    rules
        Whose rules say what a step runs; see `justitia.engines.sim.Preset`.
    """

    capacity_tokens: int
    block_size: int
    max_num_seqs: int
    max_num_batched_tokens: int
    rules: str


class ReusableBackend(Backend):
    """A backend that serves one run after the other."""

    @property
    @abstractmethod
    def limits(self) -> Limits:
        """What its scheduler stays within."""

    @abstractmethod
    def use(self, policy: Policy) -> None:
        """Start afresh with a policy that knows nobody; nothing may be in the engine.

        No agent is forgotten before it leaves, and no prompt is found in the cache.
        """

    @abstractmethod
    def close(self) -> None:
        """Let the engine go."""

    def warm_up(self) -> None:
        """Run a few requests, so that the first run is no slower than the others."""
        self.use(create("fcfs"))
        for number in range(_WARMING):
            self.add(f"{number}", min(64, self.room - 8), 8, {})
        left = _WARMING
        while left:
            left -= len(self.step())


def lasting(policy: Policy) -> Agents:
    """Return the agents of a run, none of which is forgotten before it leaves."""
    return Agents(policy, now=monotonic, linger=_NEVER, most=_NEVER)
