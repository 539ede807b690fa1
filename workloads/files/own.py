"""The workload files of this project: JSON lines, an agent each.

A line is an object with these fields, of which those with a default may be left out::

    {"justitia_workload": 1,      the version of this format, 1
     "id": "SC-00017",            unique in the file
     "kind": "SC",                default ""
     "arrival": 12.5,             seconds since the start of the run; default: none, and
                                  then no agent of the file may have one
     "weight": 2,                 default 1; a fraction is a string, "1/3"
     "cancel_after": 60.0,        seconds after its arrival; default: never
     "text": "Question: …",       what a predictor sees; default ""
     "inferences": [
        {"prompt_tokens": 530,
         "decode_tokens": 206,
         "stage": 0,              default 0
         "after": ["0"],          ids it waits for instead; default: its stage says it
         "max_tokens": 1024,      not less than decode_tokens; default: no limit
         "id": "a"},              default: its position, "0", "1", …
        …]}

Other fields are refused. What they mean is told by `AgentSpec` and `InferenceSpec`.
"""

import json
import os
import re
from collections.abc import Iterable, Iterator
from fractions import Fraction
from typing import Any

from justitia.policy.exact import Number
from justitia.workloads.agents import AgentSpec, InferenceSpec
from justitia.workloads.files.atomic import replacing
from justitia.workloads.files.lines import parsed
from justitia.workloads.files.row import Row

MARK = "justitia_workload"
VERSION = 1

_AGENT = (
    MARK, "id", "kind", "arrival", "weight", "cancel_after", "text", "inferences"
)  # fmt: skip
_INFERENCE = ("prompt_tokens", "decode_tokens", "stage", "after", "max_tokens", "id")
_FRACTION = re.compile(r"[0-9]{1,999}/[0-9]{1,999}")


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
        yield number, _agent(Row(path, number, parsed(path, number, text)))


def write_jsonl(path: str | os.PathLike[str], agents: Iterable[AgentSpec]) -> None:
    """Write agents so that `read` gives the same ones back.

    The file is replaced in one go once all are written. It is compressed when its name
    ends in ``.gz``; the same agents give the same bytes.
    """
    with replacing(path) as file:
        for agent in agents:
            record = _record(agent)
            file.write(json.dumps(record, ensure_ascii=False, separators=(",", ":")))
            file.write("\n")


def _agent(row: Row) -> AgentSpec:
    version = row.value(MARK)
    if type(version) is not int or version != VERSION:
        raise row.fault(MARK, f"must be {VERSION}, the version known, not {version!r}")
    row.only(_AGENT)
    name = row.text("id")
    given: dict[str, Any] = {
        field: row.values[field] for field in ("kind", "text") if row.has(field)
    }
    for field in ("arrival", "cancel_after"):
        if row.has(field):
            given[field] = row.number(field)
    if row.has("weight"):
        given["weight"] = _weight(row)
    inferences = tuple(_inference(inner) for inner in row.objects("inferences"))
    with row.here():
        return AgentSpec(id=name, inferences=inferences, **given)


def _inference(row: Row) -> InferenceSpec:
    row.only(_INFERENCE)
    given: dict[str, Any] = {
        field: row.count(field) for field in ("stage", "max_tokens") if row.has(field)
    }
    if row.has("id"):
        given["id"] = row.text("id")
    if row.has("after"):
        given["after"] = tuple(row.strings("after"))
    prompt, decode = row.count("prompt_tokens"), row.count("decode_tokens")
    with row.here():
        return InferenceSpec(prompt, decode, **given)


def _weight(row: Row) -> Number:
    value = row.values["weight"]
    if isinstance(value, str) and _FRACTION.fullmatch(value):
        above, below = value.split("/")
        if int(below):
            return Fraction(int(above), int(below))
    return row.number("weight")


def _record(agent: AgentSpec) -> dict[str, Any]:
    record: dict[str, Any] = {MARK: VERSION, "id": agent.id}
    if agent.kind:
        record["kind"] = agent.kind
    if agent.arrival is not None:
        record["arrival"] = agent.arrival
    if agent.weight != 1:
        weight = agent.weight
        record["weight"] = weight
        if isinstance(weight, Fraction):  # str() would leave out a denominator of 1
            record["weight"] = f"{weight.numerator}/{weight.denominator}"
    if agent.cancel_after is not None:
        record["cancel_after"] = agent.cancel_after
    if agent.text:
        record["text"] = agent.text
    record["inferences"] = [
        _call(place, one) for place, one in enumerate(agent.inferences)
    ]
    return record


def _call(place: int, one: InferenceSpec) -> dict[str, Any]:
    record: dict[str, Any] = {
        "prompt_tokens": one.prompt_tokens,
        "decode_tokens": one.decode_tokens,
    }
    if one.stage:
        record["stage"] = one.stage
    if one.after is not None:
        record["after"] = list(one.after)
    if one.max_tokens is not None:
        record["max_tokens"] = one.max_tokens
    if one.id != str(place):
        record["id"] = one.id
    return record
