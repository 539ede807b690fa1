"""Who waits for whom among the inferences of one agent.

A stage waits for all of the stages before it. Written out as pairs that is quadratic
(an agent of two stages of 50,000 inferences would have 2.5e9 of them), so a stage has a
*barrier* instead: a node of its own that waits for the members of its stage and for the
barrier before it, and for which the next stage waits. So everything here is linear in
the inferences and in the ids of their ``after``.
"""

from collections.abc import Sequence


class Graph:
    """Precedence as counts of unmet conditions and lists of followers.

    Nodes 0 … size-1 are the inferences by position; those from `size` on are the
    barriers.

    Parameters
    ----------
    stages
        Stage number of each inference.
    after
        Positions that it waits for instead, or None where the stage says it.
    """

    __slots__ = ("_after", "_stages", "followers", "size", "unmet")

    def __init__(
        self, stages: Sequence[int], after: Sequence[tuple[int, ...] | None]
    ) -> None:
        self.size = len(stages)
        self._stages = stages
        self._after = after
        self.followers: list[list[int]] = [[] for _ in stages]
        self.unmet = [0] * self.size
        rank = {stage: k for k, stage in enumerate(sorted(set(stages)))}
        ranks = [rank[stage] for stage in stages]
        by_stage = [r for r, a in zip(ranks, after, strict=True) if a is None]
        barriers = max(by_stage, default=0)
        self.followers += [[] for _ in range(barriers)]
        self.unmet += [0] * barriers
        for position, (mine, others) in enumerate(zip(ranks, after, strict=True)):
            if others is not None:
                for other in others:
                    self._edge(other, position)
            elif mine > 0:
                self._edge(self.size + mine - 1, position)
            if mine < barriers:
                self._edge(position, self.size + mine)
        for node in range(self.size + 1, self.size + barriers):
            self._edge(node - 1, node)

    def _edge(self, first: int, then: int) -> None:
        self.followers[first].append(then)
        self.unmet[then] += 1

    def circle(self) -> list[int]:
        """Return the positions that can never run, since they wait in a circle."""
        return [k for k, level in enumerate(self._levels()) if level is None]

    def depths(self) -> tuple[int, ...]:
        """Return the length of the longest chain before each inference."""
        levels = [level for level in self._levels() if level is not None]
        assert len(levels) == self.size
        return tuple(levels)

    def waits(self) -> tuple[tuple[int, ...], ...]:
        """Return for each inference enough of the positions that it waits for.

        All that it must wait for are among them, or are waited for by one of them.
        """
        members: dict[int, list[int]] = {}
        plain: set[int] = set()
        for position, (stage, others) in enumerate(
            zip(self._stages, self._after, strict=True)
        ):
            members.setdefault(stage, []).append(position)
            if others is None:
                plain.add(stage)
        before: dict[int, tuple[int, ...]] = {}
        gathered: list[int] = []
        for stage in sorted(members):
            if stage in plain:
                before[stage] = tuple(gathered)
                # A member that waits for everything before stands for it from here on.
                gathered = []
            gathered += members[stage]
        return tuple(
            before[stage] if others is None else others
            for stage, others in zip(self._stages, self._after, strict=True)
        )

    def _levels(self) -> list[int | None]:
        """Return the depth of each inference, None where it can never run."""
        unmet = list(self.unmet)
        level = [0] * self.size + [-1] * (len(unmet) - self.size)
        found: list[int | None] = [None] * self.size
        ready = [node for node, count in enumerate(unmet) if not count]
        while ready:
            node = ready.pop()
            if node < self.size:
                found[node] = level[node]
            for follower in self.followers[node]:
                depth = level[node] + (follower < self.size)
                level[follower] = max(level[follower], depth)
                unmet[follower] -= 1
                if not unmet[follower]:
                    ready.append(follower)
        return found
