"""Which inferences of an agent may run, as others of it are done."""

from justitia.policy.exact import shown
from justitia.workloads.agents import AgentSpec, WorkloadError


class Readiness:
    """The inferences of one agent that may run, by position.

    >>> from justitia.workloads import AgentSpec, InferenceSpec
    >>> one = InferenceSpec(10, 5)
    >>> readiness = Readiness(AgentSpec("a", (one, one, InferenceSpec(10, 5, stage=1))))
    >>> readiness.ready(), readiness.done(0), readiness.done(1), readiness.left
    ([0, 1], [], [2], 1)

    Complexity: O(inferences + ids in ``after``) in all, for the whole life of an agent.
    """

    __slots__ = ("_agent", "_first", "_followers", "_size", "_state", "_unmet", "left")

    def __init__(self, agent: AgentSpec) -> None:
        graph = agent.graph()
        self._agent = agent
        self._size = graph.size
        self._followers = graph.followers
        self._unmet = graph.unmet
        self._state = bytearray(graph.size)  # 0 waits, 1 may run, 2 is done
        self.left = graph.size
        """Inferences that are not done yet."""
        self._first = [k for k in range(self._size) if not self._unmet[k]]
        for position in self._first:
            self._state[position] = 1

    def ready(self) -> list[int]:
        """Return the positions that wait for nothing, ascending."""
        return list(self._first)

    def done(self, position: int) -> list[int]:
        """Take note that an inference is done; return those that may run now.

        Ascending; each position is returned once in an agent's life.

        Raises
        ------
        WorkloadError
            If that inference may not run yet or was done before.
        """
        if not 0 <= position < self._size or self._state[position] != 1:
            raise WorkloadError(
                f"the inference at position {shown(position)} of agent "
                f"{shown(self._agent.id)} cannot be done: it is not running"
            )
        self._state[position] = 2
        self.left -= 1
        released: list[int] = []
        passed = [position]
        while passed:
            for follower in self._followers[passed.pop()]:
                self._unmet[follower] -= 1
                if self._unmet[follower]:
                    continue
                if follower < self._size:
                    self._state[follower] = 1
                    released.append(follower)
                else:
                    passed.append(follower)
        released.sort()
        return released

    def _check(self) -> None:
        """Assert the invariants of the state."""
        assert self.left == sum(state != 2 for state in self._state)
        assert all(count >= 0 for count in self._unmet)
        for position, state in enumerate(self._state):
            assert (state == 0) == (self._unmet[position] > 0)
