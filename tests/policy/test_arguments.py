"""Bad arguments and wrong states: a PolicyError, and nothing has changed."""

import pickle
from collections.abc import Callable, Iterator
from copy import copy, deepcopy
from fractions import Fraction
from typing import Any

import pytest

from justitia.policy import Agent, Inference, Policy, PolicyError, Step, create
from justitia.policy.exact import LARGEST, MOST_TOKENS, SMALLEST, shown
from tests.policy.builders import (
    NOT_COUNTS,
    NOT_IDS,
    NOT_NUMBERS,
    NOT_POSITIVE,
    NOT_WORK,
    VARIANTS,
    Anything,
    ForeignInt,
    ForeignRational,
    ForeignReal,
    agent,
    decode,
    inference,
    label,
    line,
    make,
    queue,
    state,
    victims,
)

# Agents, inferences, steps ----------------------------------------------------


@pytest.mark.parametrize("bad", NOT_IDS, ids=label)
def test_ids_that_are_refused(bad: Anything) -> None:
    with pytest.raises(PolicyError, match="agent id"):
        Agent(bad, 1)
    with pytest.raises(PolicyError, match="inference id"):
        Inference(bad, "a", 1, 1)
    with pytest.raises(PolicyError, match="agent id"):
        Inference("i", bad, 1, 1)


@pytest.mark.parametrize("bad", NOT_POSITIVE, ids=label)
def test_B08_costs_and_weights_that_are_refused(bad: Anything) -> None:
    with pytest.raises(PolicyError, match="cost of agent 'a'"):
        Agent("a", bad)
    with pytest.raises(PolicyError, match="weight of agent 'a'"):
        Agent("a", 1, weight=bad)
    with pytest.raises(PolicyError, match="stage cost of agent 'a'"):
        Agent("a", 1, stage_costs=(1, bad))


@pytest.mark.parametrize("bad", NOT_COUNTS, ids=label)
@pytest.mark.parametrize("name", ["prompt_tokens", "decode_tokens", "stage"])
def test_B29_counts_that_are_refused(name: str, bad: Anything) -> None:
    fields = {"prompt_tokens": 1, "decode_tokens": 1, "stage": 0, name: bad}
    with pytest.raises(PolicyError, match=f"{name} of inference 'i'"):
        Inference("i", "a", **fields)


@pytest.mark.parametrize("bad", [b for b in NOT_COUNTS if b is not None], ids=label)
def test_numbers_of_inferences_that_are_refused(bad: Anything) -> None:
    with pytest.raises(PolicyError, match="inferences of agent 'a'"):
        Agent("a", 1, inferences=bad)


@pytest.mark.parametrize("bad", [None, 1, b"x", ("k",)], ids=repr)
def test_kinds_that_are_refused(bad: Anything) -> None:
    with pytest.raises(PolicyError, match="kind of agent 'a'"):
        Agent("a", 1, kind=bad)


@pytest.mark.parametrize("bad", [None, 1, "12", {0: 1}, ("1",)], ids=repr)
def test_stage_costs_that_are_refused(bad: Anything) -> None:
    with pytest.raises(PolicyError, match="of agent 'a'"):
        Agent("a", 1, stage_costs=bad)


@pytest.mark.parametrize("bad", [None, 1, [], "ab", [("a", 1)], {"a"}], ids=repr)
def test_steps_that_are_refused(bad: Anything) -> None:
    with pytest.raises(PolicyError, match="prefill of a step"):
        Step(prefill=bad)
    with pytest.raises(PolicyError, match="decode of a step"):
        Step(decode=bad)


def test_edges_that_are_allowed() -> None:
    assert Agent("a", SMALLEST, weight=LARGEST).cost == SMALLEST
    assert Agent("a", LARGEST, weight=SMALLEST).weight == SMALLEST
    assert Inference("i", "a", MOST_TOKENS, MOST_TOKENS).prompt_tokens == MOST_TOKENS
    assert Inference("i", "a", 0, 0) == Inference("i", "a", 0, 0, 0)
    assert Agent("a", 1, inferences=0).inferences == 0
    assert Agent("a", 1) == Agent("a", 1, 1, "", (), None)
    assert Step() == Step({}, {})


def test_numbers_of_other_libraries_become_pythons() -> None:
    made = Agent(
        "a",
        ForeignReal(2.5),  # type: ignore[arg-type]
        weight=ForeignRational(Fraction(1, 3)),  # type: ignore[arg-type]
        stage_costs=[ForeignInt(3)],  # type: ignore[list-item]
        inferences=ForeignInt(4),  # type: ignore[arg-type]
    )
    assert made == Agent("a", 2.5, Fraction(1, 3), "", (3,), 4)
    kinds = [type(n) for n in (made.cost, made.weight, made.stage_costs[0])]
    assert kinds == [float, Fraction, int]
    call = Inference("i", "a", ForeignInt(3), ForeignInt(0))  # type: ignore[arg-type]
    assert (type(call.prompt_tokens), type(call.decode_tokens)) == (int, int)
    assert call == Inference("i", "a", 3, 0)


def test_values_are_frozen() -> None:
    for value, name in ((agent(), "cost"), (inference(), "id"), (Step(), "decode")):
        before = repr(value)
        with pytest.raises(AttributeError, match=f"frozen; '{name}' cannot be set"):
            setattr(value, name, 1)
        with pytest.raises(AttributeError, match=f"frozen; '{name}' stays"):
            delattr(value, name)
        with pytest.raises(AttributeError):
            setattr(value, "other", 1)  # noqa: B010
        assert not hasattr(value, "__dict__")
        assert repr(value) == before


VALUES = (
    Agent("a", 5, Fraction(1, 2), "MRS", (2, 3), 4),
    Agent("a", 5),
    Inference("a/0", "a", 3, 2, 1),
    Step({"a/0": 3}, {"a/1": 1}),
    Step(decode={"a/1": 1}),
    Step(),
)


@pytest.mark.parametrize("value", VALUES, ids=repr)
def test_values_are_values(value: Agent | Inference | Step) -> None:
    """Equal by content, shown as they are made, and as good when copied or pickled."""
    twins = [copy(value), deepcopy(value), pickle.loads(pickle.dumps(value))]  # noqa: S301
    names = {k: globals()[k] for k in ("Agent", "Inference", "Step", "Fraction")}
    twins += [eval(repr(value), names), value.__replace__()]
    for twin in twins:
        assert twin == value
        assert type(twin) is type(value)
        assert repr(twin) == repr(value)
    assert value != repr(value)
    assert [other for other in VALUES if other == value] == [value]
    if not isinstance(value, Step):  # which holds mappings
        assert {value, *twins} == {value}


def test_values_with_a_field_changed() -> None:
    assert agent("a", 5).__replace__(cost=6, id="b") == agent("b", 6)
    assert inference(p=1).__replace__(stage=2) == inference(p=1, stage=2)
    assert Step({"a": 1}).__replace__(decode={"a": 2}) == Step({"a": 1}, {"a": 2})
    with pytest.raises(PolicyError, match="cost"):
        agent().__replace__(cost=0)
    with pytest.raises(TypeError):
        agent().__replace__(price=0)


def test_empty_steps_share_nothing() -> None:
    first, second = Step(), Step()
    first.decode["a"] = 1  # type: ignore[index]
    assert second == Step({}, {})


def test_messages_stay_short_whatever_is_shown() -> None:
    assert shown("x" * 78) == repr("x" * 78)
    assert len(shown("x" * 79)) < 90
    assert shown("x" * 10**6).endswith("(1,000,002 characters)")
    assert "too many digits" in shown(10**5000)
    with pytest.raises(PolicyError) as caught:
        Agent("x" * 10**6, -1)
    assert len(str(caught.value)) < 250


# Verbs ------------------------------------------------------------------------


def busy(variant: str) -> Policy:
    """Make a policy with something of everything in it.

    A/0 runs and has produced, A/1 runs and has not, A/2 waits; B/0 waits and has run,
    B/1 waits; C has nothing; D left and is owed.
    """
    policy = queue(make(variant), agent("A", 60, weight=2), runs=3)
    policy.arrive(agent("B", 50, stage_costs=(20, 30)))
    policy.submit(inference("B/0"))
    policy.submit(inference("B/1", stage=1))
    policy.arrive(agent("C", 70.5))
    queue(policy, agent("D", 80))
    for name in ("A/0", "A/1", "B/0", "D/0"):
        policy.start(name)
    policy.serve(Step({"A/0": 3, "B/0": 3}, {"A/0": 2, "B/0": 1, "D/0": 1}))
    policy.requeue("B/0")
    policy.leave("D")
    policy._check()
    return policy


Call = Callable[[Policy], object]


def bad_calls() -> Iterator[tuple[str, Call]]:
    """Yield what must be refused, with a name."""

    def call(verb: str, *arguments: Any) -> tuple[str, Call]:  # noqa: ANN401
        name = f"{verb}({', '.join(map(label, arguments))})"
        return name, lambda policy: getattr(policy, verb)(*arguments)

    yield call("arrive", agent("A"))
    yield call("arrive", agent("C", 1))
    yield call("submit", inference("A/0"))  # running
    yield call("submit", inference("A/2"))  # waiting
    yield call("submit", inference("A/2", agent="B"))  # of another
    yield call("submit", inference("D/9"))  # has left
    yield call("submit", inference("Z/0"))
    for bad in (*NOT_IDS, "A", inference("Z/0"), agent("Z")):
        yield call("arrive", bad if not isinstance(bad, Agent) else inference())
        yield call("submit", bad if not isinstance(bad, Inference) else agent("Z"))
        yield call("serve", bad)
    for verb, states in {
        "start": ("A/0", "D/0", "Z"),
        "requeue": ("A/2", "B/0", "D/0", "Z"),
        "refuse": ("A/0", "D/0", "Z"),
        "revise": (),
        "finish": (),
        "leave": (),
        "tag": ("D", "Z", "A/0"),
    }.items():
        more = (1,) if verb == "revise" else ()
        for bad in (*NOT_IDS, *states):
            yield call(verb, bad, *more)
    for who in ("D", "Z", "A/0"):
        yield call("revise", who, 5)
    for bad in NOT_POSITIVE:
        yield call("revise", "A", bad)
        yield call("revise", "B", bad)
    for bad in NOT_NUMBERS:
        yield call("advance", bad)
    counts: tuple[Anything, ...] = (*NOT_COUNTS, ForeignInt(1))
    for bad in counts:
        yield call("serve", Step(prefill={"A/1": 1, "A/0": bad}))
        yield call("serve", Step({"A/1": 1}, {"A/0": 1, "Z": bad}))
        yield call("serve", Step(decode={"A/0": bad}))


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_refused_changes_nothing(variant: str) -> None:
    policy = busy(variant)
    before = state(policy)
    for name, call in bad_calls():
        with pytest.raises(PolicyError) as caught:
            call(policy)
        assert len(str(caught.value)) < 300, name
        assert state(policy) == before, name
    policy._check()


@pytest.mark.parametrize("variant", VARIANTS)
def test_what_is_not_there_is_no_error(variant: str) -> None:
    policy = busy(variant)
    before = state(policy)
    for name in ("Z", "D/0", "A", "a/0", " "):
        assert policy.finish(name) is False
    for name in ("Z", "D", "A/0"):
        assert policy.leave(name) is False
    policy.serve(Step({"Z": 1, "A/2": 1, "D/0": 1}, {"Z": 1, "A/2": 1, "D/0": 1}))
    policy.serve(Step())
    assert state(policy) == before


def test_messages_name_what_is_wrong() -> None:
    policy = busy("justitia")
    with pytest.raises(PolicyError, match=r"'A/0' is not waiting$"):
        policy.start("A/0")
    with pytest.raises(PolicyError, match=r"'Z' is not waiting, nor known at all"):
        policy.start("Z")
    with pytest.raises(PolicyError, match=r"'A/2' is not running$"):
        policy.requeue("A/2")
    with pytest.raises(PolicyError, match="agent 'A' is here already"):
        policy.arrive(agent("A"))
    with pytest.raises(PolicyError, match="inference 'A/0' is here already"):
        policy.submit(inference("A/0"))
    with pytest.raises(PolicyError, match="'D', which has not arrived or has left"):
        policy.submit(inference("D/1"))
    with pytest.raises(PolicyError, match="agent 'D' has not arrived or has left"):
        policy.revise("D", 1)
    with pytest.raises(PolicyError, match="decode of inference 'A/0' must be an int"):
        policy.serve(decode(A__0=-1))


def test_B25_an_empty_id_cancels_nobody() -> None:
    policy = queue("justitia", agent("a1"), agent("a10"), agent("a11"))
    for verb in (policy.finish, policy.leave):
        with pytest.raises(PolicyError, match="must not be empty"):
            verb("")
    assert policy.leave("a1")
    assert line(policy) == ["a10/0", "a11/0"]
    policy.start("a10/0")
    assert policy.leave("a11")
    assert (line(policy), victims(policy)) == ([], ["a10/0"])


# Options ----------------------------------------------------------------------


NOT_TAGS: tuple[object, ...] = ("", None, "both", 1, [], "AGENT")


@pytest.mark.parametrize("bad", NOT_TAGS, ids=repr)
def test_names_in_options_that_are_refused(bad: Anything) -> None:
    for name in ("justitia", "justitia-c"):
        with pytest.raises(PolicyError, match="tags must be one of agent, stage"):
            create(name, tags=bad)
        with pytest.raises(PolicyError, match="clock must be one of delivered, nomin"):
            create(name, clock=bad)
        with pytest.raises(PolicyError, match="cost must be one of kv, kv-paper, comp"):
            create(name, cost=bad)
    with pytest.raises(PolicyError, match="by must be"):
        create("sjf", by=bad)


@pytest.mark.parametrize("bad", NOT_POSITIVE, ids=label)
def test_numbers_in_options_that_are_refused(bad: Anything) -> None:
    if bad is not None:
        with pytest.raises(PolicyError, match="growth"):
            create("justitia", growth=bad)
        with pytest.raises(PolicyError, match="capacity"):
            create("justitia", clock="nominal", capacity=bad)
    with pytest.raises(PolicyError, match="step_seconds"):
        create("justitia", clock="nominal", capacity=1, step_seconds=bad)
    with pytest.raises(PolicyError, match="step_seconds"):
        create("justitia", step_seconds=bad)


@pytest.mark.parametrize("bad", NOT_WORK, ids=label)
def test_prices_that_are_refused(bad: Anything) -> None:
    with pytest.raises(PolicyError, match="prompt_price"):
        create("vtc", prompt_price=bad)
    with pytest.raises(PolicyError, match="decode_price"):
        create("vtc", decode_price=bad)


def test_options_that_do_not_fit_together() -> None:
    with pytest.raises(PolicyError, match="growth must be at least 1"):
        create("justitia", growth=Fraction(1, 2))
    with pytest.raises(PolicyError, match="needs a capacity"):
        create("justitia", clock="nominal")
    with pytest.raises(PolicyError, match="no other clock takes one"):
        create("justitia", capacity=100)
    create("justitia", growth=1)
    create("vtc", prompt_price=0, decode_price=0)


def test_options_of_other_libraries_become_pythons() -> None:
    policy = queue(create("justitia", growth=ForeignInt(3)), agent("A", 1), p=9)
    policy.pop()
    policy.serve(decode(A__0=1))
    assert state(policy.tag("A")) == state(30)


# What gets too large inside a verb --------------------------------------------


def test_a_stage_that_would_cost_too_much_is_refused() -> None:
    policy = queue(create("justitia", tags="stage"), agent("A", int(LARGEST)))
    before = (line(policy), policy.tag("A"))
    with pytest.raises(PolicyError, match="cost of agent"):
        policy.submit(inference("A/1", stage=1))
    assert (line(policy), policy.tag("A")) == before
    policy._check()


def test_a_revision_that_would_cost_too_much_is_refused() -> None:
    policy = create("justitia", tags="stage")
    policy.arrive(agent("A", SMALLEST, stage_costs=(LARGEST, 1)))
    policy.submit(inference("A/0"))
    before = state(policy)
    with pytest.raises(PolicyError, match="cost of agent"):
        policy.revise("A", 1)
    assert state(policy) == before
    policy._check()


def test_growth_stops_at_the_largest_cost() -> None:
    policy = queue(create("justitia", growth=LARGEST), agent("A", 1), p=9)
    policy.pop()
    policy.serve(decode(A__0=1))
    assert policy.tag("A") == LARGEST
    policy.serve(decode(A__0=1))
    policy._check()


def test_counts_that_add_up_to_a_great_deal() -> None:
    policy = queue("justitia", agent("A", 1), runs=2, p=MOST_TOKENS, d=MOST_TOKENS)
    policy.pop()
    policy.serve(decode(A__0=MOST_TOKENS))
    policy.serve(decode(A__0=MOST_TOKENS))
    policy._check()
    assert policy.leave("A")
    policy._check()
