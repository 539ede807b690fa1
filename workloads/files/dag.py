"""AIPerf's ``dag_jsonl``: branching conversations, a session a line.

A session has ``session_id`` and ``turns``; a turn has ``messages`` and ``max_tokens``.
When a turn is done it may start other sessions: ``forks`` carry on its conversation,
``spawns`` begin with an empty one, and the session waits for spawned ones at its next
turn or at the turn ``join_at``. An ``orchestrator`` session asks nothing itself and
only starts others, round by round. Each session that no other one starts is an agent
with all that it starts, each turn an inference, ``"session:turn"``.

What the format does not say, and how it is read:

- A prompt is given as messages. Its tokens are counted by a function (words, unless
  another is given), and are all of the conversation so far, answers included; in a
  session with ``"context_mode": "message_array_with_responses"`` those of the turn.
- The answer has ``max_tokens`` tokens, which must be given.
- A background fork, and what is spawned before a session or in its last turn, is waited
  for by nobody, but the agent is not done before it is.
- Sampling parameters (``extra``, ``extra_body``) change no length and are passed over.

What no agent of ours can do is refused: pauses (``delay``, ``think_time_ms``), several
models in one file, prompts with images.

Source: https://docs.nvidia.com/aiperf, "DAG Benchmarks: Branching Conversations".
"""

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

from justitia.policy.exact import shown
from justitia.workloads.agents import AgentSpec, WorkloadError, check_name
from justitia.workloads.files.dag_tree import Forked, Session, Spawned, Turn, agent_of
from justitia.workloads.files.lines import fault, parsed
from justitia.workloads.files.row import Row

_ISOLATED = "message_array_with_responses"
_MODES = ("deltas_without_responses", _ISOLATED)
_SESSION = (
    "session_id", "turns", "orchestrator", "spawns", "rounds", "context_mode",
    "pre_session_spawns", "think_time_ms", "think_time_sigma", "think_time_min_ms",
    "think_time_max_ms",
)  # fmt: skip
_TURN = (
    "messages", "model", "max_tokens", "tools", "extra", "extra_body", "forks",
    "spawns", "delay",
)  # fmt: skip
_WRITTEN_OUT = ("tool_calls", "function_call")


def words(text: str) -> int:
    """Return the words of a text: about three quarters of its tokens in English."""
    return len(text.split())


def rows(
    path: object, lines: Iterable[tuple[int, str]], count_tokens: Callable[[str], int]
) -> Iterator[tuple[int, AgentSpec]]:
    """Yield the first session's line and the agent for each tree of sessions.

    The lengths of all sessions of the file are in memory, its texts are not.

    Raises
    ------
    WorkloadError
        Naming the file, the line, the field and the value; also when a session is
        started that does not exist, or sessions start each other in a circle.
    """
    reader = _Reader(path, count_tokens)
    for number, text in lines:
        reader.add(Row(path, number, parsed(path, number, text)))
    sessions = reader.sessions
    started: dict[str, str] = {}
    for session in sessions.values():
        for child in session.starts():
            if child not in sessions:
                raise fault(
                    path,
                    session.line,
                    f"{shown(session.id)} starts {shown(child)}, "
                    f"which is no session of the file",
                )
            started[child] = session.id
    reached: set[str] = set()
    for session in sessions.values():
        if session.id not in started:
            try:
                agent = agent_of(session, sessions, reached)
            except WorkloadError as error:
                raise fault(path, session.line, str(error)) from None
            yield session.line, agent
    for session in sessions.values():
        if session.id not in reached:
            raise fault(
                path,
                session.line,
                f"{shown(session.id)} is part of sessions that start each other in a "
                f"circle",
            )


@dataclass
class _Reader:
    path: object
    count_tokens: Callable[[str], int]
    sessions: dict[str, Session] = field(default_factory=dict)
    model: str | None = None

    def add(self, row: Row) -> None:
        row.only(_SESSION)
        name = row.text("session_id")
        with row.at("session_id"):
            check_name(name, "it")
        if name in self.sessions:
            first = self.sessions[name].line
            raise row.fault("session_id", f"{shown(name)} is taken (line {first})")
        mode = row.values.get("context_mode") or _MODES[0]
        if mode not in _MODES:
            raise row.fault(
                "context_mode", f"must be one of {', '.join(_MODES)}, not {shown(mode)}"
            )
        session = Session(name, row.line, isolated=mode == _ISOLATED)
        _no_pause(row, "think_time_ms")
        if row.has("pre_session_spawns"):
            session.before = _different(row, "pre_session_spawns")
        orchestrator = row.values.get("orchestrator") or False
        if not isinstance(orchestrator, bool):
            raise row.fault(
                "orchestrator", f"must be a bool, not {shown(orchestrator)}"
            )
        if orchestrator:
            session.rounds = _rounds(row)
        else:
            for given in ("rounds", "spawns"):
                if row.has(given):
                    raise row.fault(given, "is only for an orchestrator")
            inner = row.objects("turns")
            if not inner:
                raise row.fault("turns", "must not be empty")
            for place, turn in enumerate(inner):
                self._turn(session, turn, place, len(inner))
        self.sessions[name] = session

    def _turn(self, session: Session, row: Row, place: int, turns: int) -> None:
        row.only(_TURN)
        _no_pause(row, "delay")
        if row.has("model"):
            model = row.text("model")
            if self.model is None:
                self.model = model
            elif model != self.model:
                raise row.fault(
                    "model",
                    f"is {shown(model)}, but {shown(self.model)} before: an engine "
                    f"runs one model",
                )
        texts = [_text(message) for message in row.objects("messages")]
        if place == 0:
            session.text = "\n".join(text for text in texts if text)
        if row.has("tools"):
            texts.append(json.dumps(row.items("tools")))
        prompt = sum(self.count_tokens(text) for text in texts)
        decode = row.count("max_tokens")
        if not decode:
            raise row.fault("max_tokens", "must be at least 1, not 0")
        turn = Turn(prompt, decode)
        if row.has("forks"):
            turn.forks = [_fork(row, i, f) for i, f in enumerate(row.items("forks"))]
            _no_child_twice(row, "forks", [fork.child for fork in turn.forks])
            if place < turns - 1 and not all(fork.background for fork in turn.forks):
                raise row.fault(
                    "forks", "must be in the background, or in the last turn"
                )
        if row.has("spawns"):
            turn.spawns = [_spawn(row, i, s) for i, s in enumerate(row.items("spawns"))]
            spawned = [child for spawn in turn.spawns for child in spawn.children]
            _no_child_twice(row, "spawns", spawned)
            for spawn in turn.spawns:
                if spawn.join_at is not None and not place < spawn.join_at < turns:
                    raise row.fault(
                        "spawns",
                        f"join_at must be a turn of the session after this one "
                        f"(from {place + 1} to {turns - 1}), not {spawn.join_at}",
                    )
        session.turns.append(turn)


def _fork(row: Row, place: int, item: object) -> Forked:
    if isinstance(item, dict):
        inner = row.inner(f"forks[{place}]", item)
        inner.only(("child", "background"))
        background = item.get("background", False)
        if not isinstance(background, bool):
            raise inner.fault("background", f"must be a bool, not {shown(background)}")
        return Forked(inner.text("child"), background)
    return Forked(_child(row, f"forks[{place}]", item), background=False)


def _spawn(row: Row, place: int, item: object) -> Spawned:
    if isinstance(item, dict):
        inner = row.inner(f"spawns[{place}]", item)
        inner.only(("children", "join_at"))
        join_at = inner.count("join_at") if inner.has("join_at") else None
        return Spawned(inner.strings("children"), join_at)
    return Spawned([_child(row, f"spawns[{place}]", item)], None)


def _child(row: Row, field: str, item: object) -> str:
    if not isinstance(item, str) or not item:
        raise row.fault(field, f"must be the id of a session, not {shown(item)}")
    return item


def _rounds(row: Row) -> list[list[str]]:
    if row.values.get("turns"):
        raise row.fault("turns", "must be empty: an orchestrator asks nothing itself")
    rounds = row.values.get("rounds")
    if isinstance(rounds, list):
        found = []
        for inner in row.objects("rounds"):
            inner.only(("spawns", "think_time_ms"))
            _no_pause(inner, "think_time_ms")
            found.append(_different(inner, "spawns"))
    else:
        times = row.count("rounds") if row.has("rounds") else 1
        if times > 10_000:
            raise row.fault("rounds", f"must be at most 10,000, not {times}")
        found = [_different(row, "spawns")] * times
    if not found or not all(found):
        raise row.fault("rounds", "an orchestrator must start something in each round")
    return found


def _different(row: Row, field: str) -> list[str]:
    names = row.strings(field)
    _no_child_twice(row, field, names)
    return names


def _no_child_twice(row: Row, field: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise row.fault(field, f"{shown(name)} is started twice")
        seen.add(name)


def _no_pause(row: Row, field: str) -> None:
    if row.has(field) and row.number(field):
        raise row.fault(
            field,
            f"must be 0, since agents do not pause, not {shown(row.values[field])}",
        )


def _text(message: Row) -> str:
    """Return what a message adds to a prompt, as text."""
    message.text("role")
    content = message.values.get("content")
    parts: list[str] = []
    if isinstance(content, str):
        parts.append(content)
    elif content is not None:
        for part in message.objects("content"):
            if part.values.get("type") != "text":
                raise part.fault(
                    "type", f"must be 'text', not {shown(part.values.get('type'))}"
                )
            text = part.value("text")
            if not isinstance(text, str):
                raise part.fault("text", f"must be a string, not {shown(text)}")
            parts.append(text)
    parts += [
        json.dumps(message.values[key]) for key in _WRITTEN_OUT if message.has(key)
    ]
    return "\n".join(parts)
