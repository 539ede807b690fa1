"""What a client says of a request, used where it can be, and counted where not."""

import json
from math import inf, nan
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.serving import Claim, ClaimError, read_claim
from justitia.engines.serving.claims import FIELDS, LONGEST_NAME, MOST_STAGES, UNKNOWN

HOSTILE: list[object] = [
    nan,
    inf,
    -inf,
    -1,
    -0.5,
    10**400,
    -(10**400),
    "",
    "12\n",
    "x" * 10_000,
    "\x00",
    "a\r\nSet-Cookie: b",
    "\ud800",
    "\u202e",
    "\u200b",
    b"bytes",
    True,
    False,
    [],
    [1],
    {},
    {"a": 1},
    object(),
    [[[[1]]]],
    [nan],
    ["1"],
    [1] * (MOST_STAGES + 1),
]
USED: dict[str, list[object]] = {
    "agent": [-1],
    "stage_costs": [[1]],
}
"""Of those, the ones that some field can use."""

numbers = st.one_of(
    st.integers(), st.floats(), st.just(10**400), st.just(1e-320), st.decimals()
)
anything = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, st.text(), st.binary()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


def test_a_claim_that_says_all() -> None:
    claim = read_claim(
        {
            "agent": "智能体 7/é",
            "cost": 12.5,  # as the stages say
            "stage_costs": [4, 8.5],
            "kind": "MRS",
            "weight": 2,
            "stage": 1.0,
            "inferences": 3,
            "tokens": 20,
        },
        session="s",
        strict=True,
    )
    assert claim == Claim("智能体 7/é", 12.5, (4, 8.5), "MRS", 2, 1, 3, 20)


def test_a_claim_that_says_nothing() -> None:
    assert read_claim({}) == Claim()
    assert read_claim(dict.fromkeys(FIELDS)) == Claim()


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", HOSTILE, ids=lambda value: repr(value)[:20])
def test_b08_a_value_that_cannot_be_used_is_left_out(field: str, value: object) -> None:
    if value in USED.get(field, []):
        return
    claim = read_claim({field: value})
    assert claim == Claim(faults=(field,))
    with pytest.raises(ClaimError, match=r"must be|not"):
        read_claim({field: value}, strict=True)


@pytest.mark.parametrize("field", FIELDS)
def test_an_error_names_the_field_and_is_short(field: str) -> None:
    for value in ("x" * 10_000_000, [0] * 100_000, 10**10_000, {"a": "b" * 10**6}):
        with pytest.raises(ClaimError) as raised:
            read_claim({field: value}, strict=True)
        assert len(str(raised.value)) < 300
        assert field.split("_", maxsplit=1)[0] in str(raised.value)


@pytest.mark.parametrize(
    ("field", "allowed"),
    [
        ("weight", "a number from 0.01 to 100"),
        ("stage", "a whole number from 0 to 999"),
        ("inferences", "a whole number from 1 to 1000000"),
        ("tokens", "a whole number from 0 to 2147483647"),
    ],
)
def test_an_error_says_what_is_allowed_here(field: str, allowed: str) -> None:
    for value in (-1, 10**30, "1", nan):
        (reason,) = read_claim({field: value}).reasons
        assert reason == f"{field} must be {allowed}, not {value!r}"


def test_one_bad_value_does_not_spoil_the_others() -> None:
    claim = read_claim({"agent": "a", "cost": nan, "weight": 3, "stage": -1})
    assert claim == Claim("a", weight=3, faults=("cost", "stage"))


@pytest.mark.parametrize(("count", "good"), [(1, True), (256, True), (257, False)])
def test_b25_a_name_has_a_longest(count: int, good: bool) -> None:
    assert LONGEST_NAME == 256
    assert read_claim({"agent": "é" * count}).faults == (() if good else ("agent",))


@pytest.mark.parametrize(
    ("agent", "session", "found"),
    [
        (None, None, None),
        (None, "s", "s"),
        (None, "", None),
        ("a", "s", "a"),
    ],
)
def test_a_session_is_the_agent_where_none_is_named(
    agent: str | None, session: str | None, found: str | None
) -> None:
    assert read_claim({"agent": agent}, session=session) == Claim(found)


def test_a_name_that_cannot_be_used_leaves_the_session() -> None:
    for bad in ("a\n", "", 1.5, True, [1]):
        claim = read_claim({"agent": bad}, session="s")
        assert claim == Claim("s", faults=("agent",))
    assert read_claim({}, session="s" * 10_000) == Claim(faults=("agent",))
    assert read_claim({"agent": ""}, session="\n") == Claim(faults=("agent",))


@pytest.mark.parametrize("number", [0, 17, -3, 2**70, 10**255])
def test_b25_a_number_is_an_id(number: int) -> None:
    assert read_claim({"agent": number}).agent == str(number)


def test_a_field_that_there_is_not_is_counted_once_a_request() -> None:
    claim = read_claim({"agent": "q", "agnet": 1, "kost": 2, "sent": None})
    assert claim == Claim("q", faults=(UNKNOWN,))
    assert claim.reasons == (f"no field 'agnet'; there are: {', '.join(FIELDS)}",)
    with pytest.raises(ClaimError, match="no field 'agnet'"):
        read_claim({"agnet": 1}, strict=True)


def test_stage_costs_say_what_the_whole_costs() -> None:
    assert read_claim({"stage_costs": [5, 10.5]}) == Claim(None, 15.5, (5, 10.5))
    claim = read_claim({"stage_costs": [5, 10], "cost": nan})
    assert claim == Claim(None, 15, (5, 10), faults=("cost",))
    assert read_claim({"stage_costs": [1e150, 1e150]}).faults == ("stage_costs",)


@pytest.mark.parametrize(
    ("cost", "costs", "good"),
    [
        (0.3, [0.1, 0.2], True),
        (15, [5, 10], True),
        (15.000001, [5, 10], True),
        (5, [5, 10], False),
        (15.1, [5, 10], False),
    ],
)
def test_where_the_costs_differ_that_of_the_whole_holds(
    cost: float, costs: list[float], good: bool
) -> None:
    values = {"cost": cost, "stage_costs": costs}
    claim = read_claim(values)
    if good:
        assert claim == Claim(None, cost, tuple(costs))
    else:
        assert claim == Claim(None, cost, faults=("stage_costs",))
        with pytest.raises(ClaimError, match=rf"cost, {cost}, not to 15") as raised:
            read_claim(values, strict=True)
        assert raised.value.field == "stage_costs"


@given(st.dictionaries(st.sampled_from(["cost", "stage_costs", "x"]), st.just("?")))
def test_every_fault_has_its_reason(values: dict[str, object]) -> None:
    claim = read_claim(values)
    assert len(claim.faults) == len(claim.reasons) == len(values)
    for fault, reason in zip(claim.faults, claim.reasons, strict=True):
        assert fault == UNKNOWN or reason.startswith(fault)


@pytest.mark.parametrize(
    ("weight", "good"),
    [
        (1e-150, False),
        (0.0099, False),
        (0.01, True),
        (1, True),
        (100, True),
        (100.5, False),
        (1e150, False),
    ],
)
def test_b08_a_weight_gives_nobody_the_reference_to_itself(
    weight: float, good: bool
) -> None:
    """With 1e150 one agent stops the virtual time of all others."""
    claim = read_claim({"weight": weight})
    assert claim == (Claim(weight=weight) if good else Claim(faults=("weight",)))


@pytest.mark.parametrize("text", ["1e400", "-1e400", "NaN", "Infinity"])
def test_b08_what_json_makes_of_a_number(text: str) -> None:
    assert read_claim({"cost": json.loads(text)}).faults == ("cost",)


@given(st.dictionaries(st.one_of(st.sampled_from(FIELDS), st.text()), anything))
def test_nothing_that_is_said_raises(values: dict[str, object]) -> None:
    claim = read_claim(values)
    assert set(claim.faults) <= {*FIELDS, UNKNOWN}
    for field in {*claim.faults} - {UNKNOWN}:
        kept = sum(claim.stage_costs) or None if field == "cost" else None
        assert getattr(claim, field) in (getattr(Claim(), field), kept)
    if claim.faults:
        with pytest.raises(ClaimError):
            read_claim(values, strict=True)
    else:
        assert read_claim(values, strict=True) == claim


def test_a_million_names_are_a_million_names() -> None:
    """None is kept here, and none is another's."""
    rng = Random(1)
    for number in rng.sample(range(10**6), 1_000):
        assert read_claim({"agent": f"a{number}"}).agent == f"a{number}"
