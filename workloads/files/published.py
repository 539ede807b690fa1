"""Agents recorded from published runs: JSON lines with ``agent_class`` and ``calls``.

A line has ``agent_class`` (the kind), ``agent_id``, ``input`` (the text known when it
arrives; null where there is none) and ``calls``, a list of ``[stage, prompt_tokens,
decode_tokens]``. Calls of one stage may run at once; a stage waits for those before it.
``group`` names agents that are made from the same thing and belong on the same side of
a split into training and test. Further fields (``variant``, ``source``, ``cost``) are
notes of where it comes from.
"""

from collections.abc import Iterable, Iterator

from justitia.policy.exact import shown
from justitia.workloads.agents import AgentSpec, InferenceSpec
from justitia.workloads.files.lines import parsed
from justitia.workloads.files.row import Row


def rows(
    path: object, lines: Iterable[tuple[int, str]]
) -> Iterator[tuple[int, AgentSpec]]:
    """Yield each line's number and its agent.

    Raises
    ------
    WorkloadError
        Naming the file, the line, the field and the value.
    """
    for number, text in lines:
        row = Row(path, number, parsed(path, number, text))
        calls = tuple(
            _call(row, f"calls[{place}]", item)
            for place, item in enumerate(row.items("calls"))
        )
        name, kind = row.text("agent_id"), row.text("agent_class")
        with row.here():
            agent = AgentSpec(
                id=name,
                inferences=calls,
                kind=kind,
                text=row.values["input"] if row.has("input") else "",
            )
        yield number, agent


def groups(path: object, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[str, str]]:
    """Yield id and group of the agent of each line; its own id where it has no group.

    Raises
    ------
    WorkloadError
        Naming the file, the line, the field and the value.
    """
    for number, text in lines:
        row = Row(path, number, parsed(path, number, text))
        name = row.text("agent_id")
        yield name, row.text("group") if row.has("group") else name


def _call(row: Row, field: str, item: object) -> InferenceSpec:
    if not isinstance(item, list) or len(item) != 3:
        raise row.fault(
            field, f"must be [stage, prompt_tokens, decode_tokens], not {shown(item)}"
        )
    with row.at(field):
        return InferenceSpec(
            stage=item[0], prompt_tokens=item[1], decode_tokens=item[2]
        )
