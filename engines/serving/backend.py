"""What a run asks of a real engine in this process: requests in, steps, names out."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping

from justitia.engines.serving.agents import Agents


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
    """

    agents: Agents
    capacity: int
    context: int

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
