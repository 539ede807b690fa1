"""Writes agents as AIPerf's ``dag_jsonl``, to run them with AIPerf against a server.

An agent becomes an orchestrator whose rounds are its stages, an inference a session of
one turn; an agent of one inference is that session alone. A prompt is as many words as
it has tokens (most tokenizers make one token of each; the chat template adds a few),
and a server that knows ``min_tokens`` or ``ignore_eos`` gives answers of exactly the
length. The format has no place for kinds, texts and arrivals: AIPerf sends by a
schedule of its own, and they are left out.
"""

import json
import os
from collections.abc import Iterable, Iterator
from typing import Any

from justitia.policy.exact import shown
from justitia.workloads.agents import AgentSpec, InferenceSpec, WorkloadError
from justitia.workloads.files.atomic import replacing

_WORD = "so"


def write_dag_jsonl(path: str | os.PathLike[str], agents: Iterable[AgentSpec]) -> None:
    """Write agents for ``aiperf profile --custom-dataset-type dag_jsonl``.

    The file is replaced in one go once all are written. It is compressed when its name
    ends in ``.gz``; the same agents give the same bytes.

    Raises
    ------
    WorkloadError
        Naming the agent and the reason, for what the format cannot say: no inferences,
        an answer of no tokens, a weight, a cancellation, dependencies that are not
        stages, a session id that is taken.
    """
    taken: set[str] = set()
    with replacing(path) as file:
        for agent in agents:
            for session in _sessions(agent):
                name = session["session_id"]
                if name in taken:
                    raise WorkloadError(f"the session id {shown(name)} is taken")
                taken.add(name)
                line = json.dumps(session, ensure_ascii=False, separators=(",", ":"))
                file.write(line + "\n")


def _sessions(agent: AgentSpec) -> Iterator[dict[str, Any]]:
    _check_sayable(agent)
    if len(agent.inferences) == 1:
        yield _session(agent.id, agent.inferences[0])
        return
    depths = agent.depths()
    names = [f"{agent.id}/{one.id}" for one in agent.inferences]
    rounds: list[dict[str, list[str]]] = [
        {"spawns": []} for _ in range(max(depths) + 1)
    ]
    for name, depth in zip(names, depths, strict=True):
        rounds[depth]["spawns"].append(name)
    yield {"session_id": agent.id, "orchestrator": True, "rounds": rounds}
    for name, one in zip(names, agent.inferences, strict=True):
        yield _session(name, one)


def _session(name: str, one: InferenceSpec) -> dict[str, Any]:
    prompt = " ".join([_WORD] * one.prompt_tokens)
    length = one.decode_tokens
    return {
        "session_id": name,
        "turns": [
            {
                "messages": [{"role": "user", "content": prompt}],
                "max_tokens": length,
                "extra": {"min_tokens": length, "ignore_eos": True},
            }
        ],
    }


def _check_sayable(agent: AgentSpec) -> None:
    name = f"agent {shown(agent.id)} cannot be written as dag_jsonl"
    if not agent.inferences:
        raise WorkloadError(f"{name}: it has no inferences")
    if agent.weight != 1:
        raise WorkloadError(f"{name}: its weight is {shown(agent.weight)}, not 1")
    if agent.cancel_after is not None:
        raise WorkloadError(f"{name}: it is cancelled after {agent.cancel_after} s")
    for one in agent.inferences:
        if not one.decode_tokens:
            raise WorkloadError(
                f"{name}: inference {shown(one.id)} produces no tokens, and max_tokens "
                f"must be at least 1"
            )
    if all(one.after is None for one in agent.inferences):
        return
    depths = agent.depths()
    members: dict[int, set[int]] = {}
    for position, depth in enumerate(depths):
        members.setdefault(depth, set()).add(position)
    for position, waits in enumerate(agent.waits()):
        if depths[position] and not members[depths[position] - 1] <= set(waits):
            raise WorkloadError(
                f"{name}: inference {shown(agent.inferences[position].id)} does not "
                f"wait for all of the stage before it"
            )
