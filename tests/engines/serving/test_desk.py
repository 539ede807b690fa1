"""What a front end may ask a scheduler, and that no question hurts it."""

import json
from typing import Any

import pytest

from justitia.engines.serving import Agents, Claim
from justitia.engines.serving.desk import Desk
from justitia.engines.serving.settings import ServingSettings
from justitia.engines.serving.watch import Watched

FACTS = {"engine": "none", "engine_version": "0"}


class Office:
    """A desk with all that is behind it."""

    def __init__(self, policy: str = "justitia", **given: Any) -> None:  # noqa: ANN401 - settings
        settings = ServingSettings(policy=policy, **given)
        self.now = 0.0
        self.watched = Watched(settings.make(), now=lambda: self.now)
        self.agents = Agents(self.watched, now=lambda: self.now, linger=60)
        self.aborted: list[str] = []
        self.desk = Desk(self.agents, self.watched, settings, FACTS)

    def ask(self, verb: str, **given: object) -> dict[str, Any]:
        return self.raw(verb, json.dumps(given))

    def raw(self, verb: str, payload: str) -> dict[str, Any]:
        answer = self.desk.answer(verb, payload, self.aborted.extend)
        told: dict[str, Any] = json.loads(answer)
        self.agents._check()
        return told


def test_an_agent_comes_grows_and_goes() -> None:
    office = Office()
    assert office.ask("announce", id="a", cost=100, weight=4) == {
        "status": 201, "id": "a", "tag": 25.0
    }  # fmt: skip
    assert office.ask("announce", id="a", cost=100)["status"] == 409
    assert office.ask("revise", id="a", cost=200)["tag"] == 50.0
    office.agents.submit("1", Claim("a"), 10, 5)
    office.agents.submit("2", Claim("a"), 10, 5)
    office.agents.start("1")
    assert office.ask("dismiss", id="a") == {"status": 200, "id": "a", "aborted": 2}
    assert office.aborted == ["1", "2"]
    assert office.ask("dismiss", id="a")["status"] == 404
    assert office.ask("revise", id="a", cost=1)["status"] == 404


@pytest.mark.parametrize(
    ("policy", "limits"), [("mlfq", "non-preemptive"), ("vtc", "")]
)
def test_what_the_engine_cannot_do_of_a_policy_is_told(
    policy: str, limits: str
) -> None:
    assert Office(policy).desk.state()["limits"] == limits


def test_the_stages_costs_are_enough() -> None:
    office = Office()
    assert office.ask("announce", id=7, stage_costs=[5, 10])["id"] == "7"
    assert office.ask("describe", id="7")["cost"] == 15


def test_a_revision_says_what_may_be_revised() -> None:
    office = Office()
    told = office.ask("revise", id="a", kind="k")
    assert told["error"]["message"] == "no field 'kind'; there are: cost"


@pytest.mark.parametrize("policy", ["justitia", "fcfs"])
def test_an_agent_is_described(policy: str) -> None:
    office = Office(policy)
    assert office.ask("describe", id="a")["status"] == 404
    assert office.ask("describe")["status"] == 400
    office.agents.submit("1", Claim("a", kind="MRS", weight=2), 10, 5)
    office.agents.submit("2", Claim("a"), 10, 5)
    office.agents.start("1")
    office.agents.serve({"1": 10}, {"1": 1})
    office.agents.serve({}, {"1": 1})
    work = 2 * 65
    assert office.ask("describe", id="a") == {
        "status": 200, "id": "a", "kind": "MRS", "weight": 2, "cost": None,
        "tag": work / 2 if policy == "justitia" else None, "waiting": 1, "running": 1,
        "delivered": 11 + 12, "active": True if policy == "justitia" else None,
    }  # fmt: skip
    office.agents.finish("1")
    office.agents.start("2")
    office.ask("revise", id="a", cost=20)
    told = office.ask("describe", id="a")
    assert (told["cost"], told["delivered"]) == (20, 23)
    assert told["active"] in (False, None)


def test_the_age_of_the_oldest_agent_and_who_was_forgotten() -> None:
    office = Office()
    assert office.ask("state")["oldest_agent_seconds"] == 0
    office.ask("announce", id="a", cost=1)
    office.now = 20.0
    office.agents.submit("1", Claim("b", inferences=1), 10, 5)
    office.now = 50.0
    assert office.ask("state")["oldest_agent_seconds"] == 50
    office.now = 60.0
    told = office.ask("state")
    assert (told["oldest_agent_seconds"], told["agents_forgotten"]) == (40, 1)
    office.agents.finish("1")
    told = office.ask("state")
    assert (told["oldest_agent_seconds"], told["agents_forgotten"]) == (0, 1)


def test_a_dismissal_is_of_one_agent_b25() -> None:
    office = Office()
    for name in ("a1", "a10", "a11"):
        office.ask("announce", id=name, cost=1)
        office.agents.submit(f"of {name}", Claim(name), 10, 5)
    assert office.ask("dismiss", id="")["status"] == 400
    assert office.ask("dismiss")["status"] == 400
    assert office.aborted == []
    office.ask("dismiss", id="a1")
    assert office.aborted == ["of a1"]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"id": "x"}, "cost"),
        ({"cost": 1}, "id"),
        ({"id": 7.5, "cost": 1}, "id"),
        ({"id": "x", "kind": "k"}, "cost"),
        ({"id": "x", "cost": 5, "stage_costs": [5, 10]}, "stage_costs"),
        ({"id": "x" * 257, "cost": 1}, "id"),
        ({"id": "a\nb", "cost": 1}, "id"),
        ({"id": "x", "cost": float("nan")}, "cost"),
        ({"id": "x", "cost": float("inf")}, "cost"),
        ({"id": "x", "cost": 10**400}, "cost"),
        ({"id": "x", "cost": "12"}, "cost"),
        ({"id": "x", "cost": True}, "cost"),
        ({"id": "x", "cost": 1, "weight": -1}, "weight"),
        ({"id": "x", "cost": 1, "kind": "k" * 300}, "kind"),
        ({"id": "x", "cost": 1, "stage_costs": [1] * 1_001}, "stage_costs"),
        ({"id": "x", "cost": 1, "inferences": 0}, "inferences"),
        ({"id": "x", "cost": 1, "prompt": "?"}, "prompt"),
    ],
)
def test_a_refusal_names_field_value_and_what_is_allowed_b08(
    given: dict[str, Any], field: str
) -> None:
    office = Office()
    told = office.ask("announce", **given)
    assert (told["status"], told["error"]["param"]) == (400, field)
    assert told["error"]["type"] == "invalid_request_error"
    allowed = (" must be ", " must add up ", " there are: ", " must have ")
    assert any(words in told["error"]["message"] for words in allowed)
    assert len(told["error"]["message"]) < 400
    assert len(office.agents) == 0


@pytest.mark.parametrize("payload", ["", "[]", "nonsense", "[" * 10**5, "7" * 10**4])
@pytest.mark.parametrize("verb", ["announce", "dismiss", "revise", "no such verb"])
def test_no_question_raises(verb: str, payload: str) -> None:
    office = Office()
    assert office.raw(verb, payload)["status"] >= 400
    assert office.ask("state")["status"] == 200


def test_an_abort_that_fails_is_an_answer() -> None:
    office = Office()
    office.ask("announce", id="a", cost=1)
    office.agents.submit("1", Claim("a"), 10, 5)

    def fails(requests: tuple[str, ...]) -> None:
        raise RuntimeError("the engine is gone")

    answer = office.desk.answer("dismiss", '{"id": "a"}', fails)
    assert json.loads(answer)["status"] == 500
    assert "the engine is gone" in json.loads(answer)["error"]["message"]


@pytest.mark.parametrize("policy", ["justitia", "fcfs"])
def test_the_state_is_as_large_for_many_as_for_none(policy: str) -> None:
    office = Office(policy)
    empty = office.ask("measures")
    for number in range(2_000):
        claim = Claim(f"agent {number}", kind=f"kind {number}", faults=("cost",))
        office.agents.submit(str(number), claim, 10, 5)
    full = office.ask("measures")
    assert full.keys() == empty.keys()
    assert len(json.dumps(full)) < len(json.dumps(empty)) + 100
    assert (full["agents"], full["waiting"], full["running"]) == (2_000, 2_000, 0)
    assert full["faults"]["cost"] == 2_000
    assert (full["agents_active"] is None) == (policy == "fcfs")


def test_agents_expire_though_the_engine_has_no_step() -> None:
    office = Office()
    office.ask("announce", id="a", cost=1)
    office.now = 59.0
    assert office.ask("state")["agents"] == 1
    office.now = 61.0
    assert office.ask("state")["agents"] == 0
