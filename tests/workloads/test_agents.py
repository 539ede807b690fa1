"""Agents: what is refused, and what their stages are."""

from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given

from justitia.policy import ComputeTokens, KVTokenTime, PolicyError
from justitia.workloads import AgentSpec, InferenceSpec, WorkloadError
from tests.workloads.builders import agent, call, shapes


def test_ids_are_filled_by_position() -> None:
    made = agent(call(), call(id="x"), call())
    assert [one.id for one in made.inferences] == ["0", "x", "2"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"prompt_tokens": -1}, "prompt_tokens of inference 'x'"),
        ({"prompt_tokens": True}, "prompt_tokens of inference 'x' must be an int"),
        ({"decode_tokens": 1.5}, "decode_tokens of inference 'x' must be an int"),
        ({"decode_tokens": 2**63}, "decode_tokens of inference 'x' must be a count"),
        ({"stage": -1}, "stage of inference 'x'"),
        ({"stage": None}, "stage of inference 'x'"),
        ({"max_tokens": -1}, "max_tokens of inference 'x'"),
        ({"max_tokens": 4}, "at most its max_tokens, 4, not 5"),
        ({"after": "ab"}, "after of inference 'x' must be a tuple"),
        ({"after": (1,)}, "an id in after of inference 'x' must be a str"),
        ({"id": 7}, "inference id must be a str, not 7"),
        ({"id": None}, "inference id must be a str, not None"),
        ({"id": "a\nb"}, "inference id must have no control characters"),
        ({"id": "\ud800"}, "inference id must have no control characters"),
        ({"id": "y" * 1025}, "inference id must have at most 1024 characters"),
    ],
)
def test_b29_wrong_inference_is_refused(fields: dict[str, Any], says: str) -> None:
    whole: dict[str, Any] = {
        "prompt_tokens": 10,
        "decode_tokens": 5,
        "id": "x",
    } | fields
    with pytest.raises(WorkloadError) as error:
        InferenceSpec(**whole)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"id": ""}, "agent id must not be empty"),
        ({"id": 3}, "agent id must be a str"),
        ({"id": "a\x1b[2J"}, "agent id must have no control characters"),
        ({"kind": 3}, "kind of agent 'a' must be a str"),
        ({"kind": "\n"}, "kind of agent 'a' must have no control characters"),
        ({"text": None}, "text of agent 'a' must be a str"),
        ({"text": "ok\udc00"}, "lone surrogate at character 2"),
        ({"weight": 0}, "weight of agent 'a' must be a finite positive number"),
        ({"weight": float("nan")}, "weight of agent 'a'"),
        ({"weight": True}, "weight of agent 'a'"),
        ({"arrival": -0.1}, "arrival of agent 'a'"),
        ({"arrival": float("inf")}, "arrival of agent 'a'"),
        ({"arrival": "0"}, "arrival of agent 'a'"),
        ({"cancel_after": -1}, "cancel_after of agent 'a'"),
        ({"inferences": "no"}, "inferences of agent 'a' must be a tuple"),
        ({"inferences": (1,)}, "not with 1 at position 0"),
        ({"inferences": (call(id="1"), call())}, "different ids, not '1' twice"),
        ({"inferences": (call(after=("9",)),)}, "'9', which is no inference of it"),
        ({"inferences": (call(after=("0",)),)}, "'0', which is itself"),
        (
            {"inferences": (call(after=("1",)), call(after=("0",)), call(id="z"))},
            "wait for each other in a circle: '0, 1'",
        ),
        (
            # 1 waits for stage 0 by its stage, and 0 for 1.
            {"inferences": (call(after=("1",)), call(stage=1))},
            "wait for each other in a circle",
        ),
    ],
)
def test_wrong_agent_is_refused(fields: dict[str, Any], says: str) -> None:
    whole: dict[str, Any] = {"id": "a", "inferences": ()} | fields
    with pytest.raises(WorkloadError) as error:
        AgentSpec(**whole)
    assert says in str(error.value)
    assert isinstance(error.value, PolicyError)


def test_messages_stay_short() -> None:
    with pytest.raises(WorkloadError) as error:
        agent(weight="9" * 10**6)
    assert len(str(error.value)) < 300


def test_fine_values_are_kept() -> None:
    made = agent(
        call(0, 0, max_tokens=0),
        weight=Fraction(1, 3),
        arrival=0,
        kind='"Ä',
        text="é\n",
    )
    assert made.weight == Fraction(1, 3)
    assert type(made.arrival) is float
    assert made.inferences[0].max_tokens == 0


def test_b09_agent_of_no_inferences() -> None:
    empty = AgentSpec("a", ())
    assert empty.cost() == 0
    assert empty.depths() == ()
    assert empty.waits() == ()
    assert empty.stage_costs() == ()


def test_b09_costs_have_a_floor() -> None:
    made = agent(call(8000, 0), call(0, 0))
    assert made.cost() == 8001
    assert made.stage_costs(ComputeTokens()) == (8001,)


def test_stage_numbers_need_not_be_contiguous() -> None:
    made = agent(call(1, 1, stage=7), call(2, 1, stage=100), call(3, 1, stage=7))
    assert made.depths() == (0, 1, 0)
    assert made.waits() == ((), (0, 2), ())
    assert made.stage_costs() == (2 + 4, 3)


def test_depth_is_the_longest_chain() -> None:
    made = agent(
        call(),
        call(after=("0",)),
        call(after=("0", "1")),
        call(after=()),
        call(after=("3",)),
    )
    assert made.depths() == (0, 1, 2, 0, 1)
    assert made.waits() == ((), (0,), (0, 1), (), (3,))


def must_wait(made: AgentSpec) -> list[set[int]]:
    """All that each inference waits for, by definition: closed under waiting."""
    place = {one.id: k for k, one in enumerate(made.inferences)}
    sets: list[set[int]] = []
    for one in made.inferences:
        if one.after is None:
            earlier = [k for k, x in enumerate(made.inferences) if x.stage < one.stage]
            sets.append(set(earlier))
        else:
            sets.append({place[other] for other in one.after})
    return closure(sets)


def closure(sets: list[set[int]]) -> list[set[int]]:
    sets = [set(s) for s in sets]
    for _ in sets:
        sets = [s.union(*(sets[k] for k in s)) for s in sets]
    return sets


@given(shapes())
def test_waits_and_depths_are_those_of_the_definition(
    inferences: tuple[InferenceSpec, ...],
) -> None:
    made = AgentSpec("a", inferences)
    wanted = must_wait(made)
    assert closure([set(w) for w in made.waits()]) == wanted
    depths = made.depths()
    for k, before in enumerate(wanted):
        assert depths[k] == max((depths[j] + 1 for j in before), default=0)
    assert sum(made.stage_costs()) == made.cost()
    assert len(made.stage_costs()) == max(depths, default=-1) + 1
    assert all(cost > 0 for cost in made.stage_costs(KVTokenTime()))


def test_wide_stages_are_not_written_out_as_pairs() -> None:
    half = 20_000
    made = AgentSpec("a", tuple(call(stage=k // half) for k in range(2 * half)))
    waits = made.waits()
    assert waits[half] is waits[-1]
    assert len(waits[half]) == half
    assert made.depths()[half - 1 : half + 1] == (0, 1)
