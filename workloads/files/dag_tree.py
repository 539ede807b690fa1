"""From sessions that start each other to the inferences of one agent."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from justitia.policy.exact import shown
from justitia.workloads.agents import AgentSpec, InferenceSpec, WorkloadError

LARGEST_TREE = 1_000_000
"""Inferences of an agent, and ids in all its ``after``: a few lines of a file that
start each other twice over could ask for any number."""

DEEPEST_TREE = 200
"""Sessions that start each other in a row."""


@dataclass(frozen=True, slots=True)
class Forked:
    """A session that carries on this conversation."""

    child: str
    background: bool


@dataclass(frozen=True, slots=True)
class Spawned:
    """Sessions that begin a conversation of their own, joined at a turn."""

    children: list[str]
    join_at: int | None


@dataclass(slots=True)
class Turn:
    """One request: what it adds to the conversation, in tokens, and its answer."""

    prompt_tokens: int
    decode_tokens: int
    forks: list[Forked] = field(default_factory=list)
    spawns: list[Spawned] = field(default_factory=list)


@dataclass(slots=True)
class Session:
    """A line of the file. One with `rounds` has no turns."""

    id: str
    line: int
    isolated: bool = False
    text: str = ""
    turns: list[Turn] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    rounds: list[list[str]] = field(default_factory=list)

    def starts(self) -> Iterator[str]:
        """Yield the sessions that it starts."""
        yield from self.before
        for children in self.rounds:
            yield from children
        for turn in self.turns:
            for fork in turn.forks:
                yield fork.child
            for spawn in turn.spawns:
                yield from spawn.children

    def single(self) -> bool:
        """Return whether it is one request and starts nothing."""
        return len(self.turns) == 1 and next(self.starts(), None) is None


def agent_of(
    root: Session, sessions: Mapping[str, Session], reached: set[str]
) -> AgentSpec:
    """Return a session and all that it starts as one agent.

    Parameters
    ----------
    root
        The session that nobody starts.
    sessions
        All of the file, by id.
    reached
        The ids of the sessions that are part of an agent are added to it.

    Raises
    ------
    WorkloadError
        If sessions start each other in a circle, the tree is larger or deeper than
        allowed, or a session is forked twice.
    """
    tree = _Tree(sessions, reached)
    if root.rounds and all(sessions[c].single() for r in root.rounds for c in r):
        tree.stages(root)
    else:
        tree.grow(root.id, (), 0, ())
    return AgentSpec(id=root.id, inferences=tuple(tree.made), text=root.text)


class _Tree:
    def __init__(self, sessions: Mapping[str, Session], reached: set[str]) -> None:
        self.made: list[InferenceSpec] = []
        self._sessions = sessions
        self._reached = reached
        self._copies: dict[str, int] = {}
        self._forked: set[str] = set()
        self._pairs = 0

    def stages(self, root: Session) -> None:
        """Add the rounds of an orchestrator as stages: the same, in fewer words."""
        self._reached.add(root.id)
        for stage, children in enumerate(root.rounds):
            for child in children:
                self._reached.add(child)
                turn = self._sessions[child].turns[0]
                self._add(
                    f"{self._label(child)}:0",
                    turn.prompt_tokens,
                    turn.decode_tokens,
                    None,
                    stage,
                )

    def grow(
        self, name: str, after: tuple[str, ...], held: int, path: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Add a session that starts after some inferences.

        Parameters
        ----------
        name
            Its id.
        after
            Ids of the inferences that it waits for.
        held
            Tokens of the conversation that it carries on.
        path
            The sessions that it was started by.

        Returns
        -------
        tuple of str
            Ids of the inferences that have to be done for it to be done.
        """
        if name in path:
            raise WorkloadError(f"{shown(name)} starts itself, by way of others")
        if len(path) >= DEEPEST_TREE:
            raise WorkloadError(
                f"more than {DEEPEST_TREE} sessions start each other in a row"
            )
        self._reached.add(name)
        session = self._sessions[name]
        path = (*path, name)
        label = self._label(name)
        for child in session.before:
            self.grow(child, after, 0, path)
        if session.rounds:
            for children in session.rounds:
                after = self._all(children, after, path)
            return after
        gates: dict[int, list[str]] = {}
        ends: tuple[str, ...] = after
        for place, turn in enumerate(session.turns):
            one = f"{label}:{place}"
            wait = tuple(dict.fromkeys((*after, *gates.pop(place, ()))))
            prompt = turn.prompt_tokens + (0 if session.isolated else held)
            self._add(one, prompt, turn.decode_tokens, wait, 0)
            held = prompt + turn.decode_tokens
            after = ends = (one,)
            carried: list[str] = []
            for fork in turn.forks:
                if fork.child in self._forked:
                    raise WorkloadError(
                        f"{shown(fork.child)} is forked twice: it can carry on only "
                        f"one conversation"
                    )
                self._forked.add(fork.child)
                end = self.grow(fork.child, after, held, path)
                if not fork.background:
                    carried += end
            ends = tuple(carried) or ends
            for spawn in turn.spawns:
                joined = self._all(spawn.children, after, path)
                gate = place + 1 if spawn.join_at is None else spawn.join_at
                gates.setdefault(gate, []).extend(joined)
        return ends

    def _all(
        self, children: list[str], after: tuple[str, ...], path: tuple[str, ...]
    ) -> tuple[str, ...]:
        ends: list[str] = []
        for child in children:
            ends += self.grow(child, after, 0, path)
        return tuple(ends)

    def _label(self, name: str) -> str:
        copy = self._copies[name] = self._copies.get(name, 0) + 1
        return name if copy == 1 else f"{name}#{copy}"

    def _add(
        self,
        name: str,
        prompt: int,
        decode: int,
        after: tuple[str, ...] | None,
        stage: int,
    ) -> None:
        self._pairs += len(after or ())
        if max(self._pairs, len(self.made)) >= LARGEST_TREE:
            raise WorkloadError(
                f"it starts more than {LARGEST_TREE:,} turns, or turns that wait for "
                f"more than that many others"
            )
        self.made.append(
            InferenceSpec(prompt, decode, stage=stage, after=after, id=name)
        )
