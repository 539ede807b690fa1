"""What a request of SGLang's says of itself, and what of it can be used."""

from types import SimpleNamespace
from typing import Any

import pytest

from justitia.engines.serving import Claim
from justitia.engines.sglang.claims import claim_of


def request(custom: Any = None, **more: Any) -> Any:
    return SimpleNamespace(
        sampling_params=SimpleNamespace(custom_params=custom), **more
    )


def test_everything() -> None:
    said = {
        "agent": "a",
        "cost": 1e4,
        "kind": "MRS",
        "weight": 2,
        "stage": 1,
        "inferences": 5,
        "tokens": 30,
        "stage_costs": [4e3, 6e3],
    }
    claim = claim_of(request({"justitia": said, "thinking_budget": 3}))
    assert claim == Claim("a", 1e4, (4e3, 6e3), "MRS", 2, 1, 5, 30)


@pytest.mark.parametrize(
    "custom", [None, {}, {"justitia": None}, {"other": {"agent": 1}}]
)
def test_nothing(custom: Any) -> None:
    assert claim_of(request(custom)) == Claim()


def test_without_sampling_parameters() -> None:
    assert claim_of(SimpleNamespace(sampling_params=None)) == Claim()


def test_the_session_is_the_agent() -> None:
    """The field, then the session that SGLang keeps, then the header for routers."""
    session = SimpleNamespace(session_id="kept")
    assert claim_of(request(session_id="said", session=session)).agent == "said"
    assert claim_of(request(session=session, routing_key="key")).agent == "kept"
    assert claim_of(request(session_id=None, routing_key="key")).agent == "key"
    named = request({"justitia": {"agent": "a"}}, session_id="said")
    assert claim_of(named).agent == "a"


@pytest.mark.parametrize("given", ["a", 3, ["agent"], True, 1.5])
def test_a_claim_that_is_no_table(given: object) -> None:
    claim = claim_of(request({"justitia": given}, session_id="s"))
    assert claim == Claim(agent="s", faults=("claim",))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("agent", ""),
        ("agent", "x" * 300),
        ("agent", "a\nb"),
        ("agent", {"$gt": ""}),
        ("cost", float("nan")),
        ("cost", float("inf")),
        ("cost", -1),
        ("cost", 0),
        ("cost", "1e9"),
        ("cost", True),
        ("cost", 10**400),
        ("weight", 0),
        ("kind", 7),
        ("stage", -1),
        ("stage", 10**9),
        ("inferences", 0),
        ("tokens", 1.5),
        ("stage_costs", [1.0] * 2_000),
        ("stage_costs", [1.0, float("nan")]),
    ],
)
def test_hostile_values_are_left_out_and_counted(field: str, value: object) -> None:
    claim = claim_of(request({"justitia": {"kind": "MRS", field: value}}))
    assert claim.faults == (field,)
    assert claim == Claim(kind="" if field == "kind" else "MRS", faults=(field,))


def test_other_fields_are_passed_over_and_counted() -> None:
    claim = claim_of(request({"justitia": {"agent": "a", "priority": -1, "": 0}}))
    assert claim.agent == "a"
    assert claim.faults == ("unknown",)


def test_a_custom_parameter_that_is_no_table() -> None:
    assert claim_of(request([1, 2])) == Claim()
    assert claim_of(request("justitia")) == Claim()


def test_a_claim_that_is_no_object_is_told_with_its_value() -> None:
    (reason,) = claim_of(request({"justitia": "x"})).reasons
    assert reason == "justitia must be an object, not 'x'"
