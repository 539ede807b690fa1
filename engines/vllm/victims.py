"""The policy's victims, where vLLM looks for the largest priority."""

from justitia.engines.serving import Agents


class Victims:
    """The order in which the running give way, worked out when it is first asked for.

    vLLM compares priorities only when memory is short, and then in the middle of a
    step; so the order is not kept up to date, but made then, once a step.

    Complexity: O(r log r) a step in which memory is short, with r running; else O(1).
    """

    def __init__(self, agents: Agents) -> None:
        self._agents = agents
        self._ranks: dict[str, int] | None = None

    def place(self, request_id: str) -> "Place":
        """Return the priority of a request, to be kept in it for good."""
        place = Place()
        place.request_id, place.victims = request_id, self
        return place

    def rank(self, request_id: str) -> int:
        """Return 0 for who gives way first, and less for each one after it.

        One that the policy knows no more, since its agent was dismissed, goes before
        all others.
        """
        if self._ranks is None:
            order = self._agents.victims()
            self._ranks = {name: -index for index, name in enumerate(order)}
        return self._ranks.get(request_id, 1)

    def forget(self) -> None:
        """Let the order be worked out anew."""
        self._ranks = None


class Place(int):
    """A priority that is larger for who gives way first. As an integer it is 0."""

    request_id: str
    victims: Victims

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __lt__(self, other: int) -> bool:
        return self._rank() < _rank_of(other)

    def __gt__(self, other: int) -> bool:
        return self._rank() > _rank_of(other)

    __hash__ = int.__hash__

    def _rank(self) -> int:
        return self.victims.rank(self.request_id)


def _rank_of(place: int) -> int:
    return place._rank() if isinstance(place, Place) else int(place)
