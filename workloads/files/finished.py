"""Agents as a log of their finished inferences: JSON lines, an inference each.

A line is an object with these fields, of which those with a default may be left out::

    {"agent": "a-17",           which agent it is of
     "kind": "SC",              the agent's class, alike on all its lines; default ""
     "stage": 0,                default 0
     "prompt_tokens": 530,
     "decode_tokens": 206,
     "max_tokens": 1024,        what its client allowed; default: no limit
     "text": "Question: …",     what was known when the agent arrived; default: none
     "group": "q-9",            agents of one group are made from the same thing; alike
                                on all its lines; default: the agent itself
     "justitia_inference": 1}   the version of this format; default 1

Other fields are refused. Lines of several agents may be mixed, and those of one agent
may lie in several files of a folder. Inferences of one stage ran at once, in the order
of the log; a text that stands on several lines is that of the first.
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from justitia.policy.exact import shown
from justitia.workloads.agents import AgentSpec, InferenceSpec
from justitia.workloads.files.lines import parsed
from justitia.workloads.files.row import Row

MARK = "justitia_inference"
VERSION = 1

_FIELDS = (
    MARK, "agent", "kind", "stage", "prompt_tokens", "decode_tokens", "max_tokens",
    "text", "group",
)  # fmt: skip
_SAME = ("kind", "group")
"""What all lines of an agent must agree on."""


def recognised(fields: Mapping[str, Any]) -> bool:
    """Return whether the fields of a first line are those of such a log."""
    return MARK in fields or {"agent", "decode_tokens"} <= fields.keys()


def rows(path: object, lines: Iterable[tuple[int, str]]) -> Iterator[Row]:
    """Yield the lines of one file."""
    for number, text in lines:
        yield Row(path, number, parsed(path, number, text))


def agents(logged: Iterable[Row]) -> Iterator[tuple[Row, AgentSpec]]:
    """Put the agents of a log together, in the order in which they first appear.

    Each comes with the row of its first line. O(inferences) memory, and time but for
    the sort by stage.

    Raises
    ------
    WorkloadError
        Naming the file, the line, the field and the value.
    """
    for of_one in _by_agent(logged).values():
        first = of_one[0]
        given: dict[str, Any] = {}
        if first.has("kind"):
            given["kind"] = first.text("kind")
        name = first.text("agent")
        text = next((row.text("text") for row in of_one if row.has("text")), "")
        inferences = [_inference(row) for row in of_one]
        inferences.sort(key=lambda one: one.stage)  # stable: the order of the log
        with first.here():
            yield (
                first,
                AgentSpec(
                    id=name,
                    inferences=tuple(inferences),
                    text=text,
                    **given,
                ),
            )


def groups(logged: Iterable[Row]) -> Iterator[tuple[str, str]]:
    """Yield id and group of each agent; its own id where it has no group."""
    for name, of_one in _by_agent(logged).items():
        first = of_one[0]
        yield name, first.text("group") if first.has("group") else name


def _by_agent(logged: Iterable[Row]) -> dict[str, list[Row]]:
    found: dict[str, list[Row]] = {}
    for row in logged:
        of_one = found.setdefault(row.text("agent"), [])
        if of_one:
            _agree(row, of_one[0])
        of_one.append(row)
    return found


def _agree(row: Row, first: Row) -> None:
    for field in _SAME:
        mine, theirs = row.values.get(field), first.values.get(field)
        if mine != theirs:
            raise row.fault(
                field,
                f"must be {shown(theirs)} for agent {shown(row.values['agent'])}, as "
                f"in {first.path}, line {first.line}, not {shown(mine)}",
            )


def _inference(row: Row) -> InferenceSpec:
    row.only(_FIELDS)
    if MARK in row.values:
        version = row.values[MARK]
        if type(version) is not int or version != VERSION:
            raise row.fault(
                MARK, f"must be {VERSION}, the version known, not {shown(version)}"
            )
    given: dict[str, Any] = {
        field: row.count(field) for field in ("stage", "max_tokens") if row.has(field)
    }
    prompt, decode = row.count("prompt_tokens"), row.count("decode_tokens")
    with row.here():
        return InferenceSpec(prompt, decode, **given)
