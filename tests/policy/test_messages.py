"""What messages say, to the letter: the field, the value, and what is allowed."""

from collections.abc import Callable
from fractions import Fraction
from typing import Any

import pytest

from justitia.policy import (
    Agent,
    Inference,
    PolicyError,
    Step,
    VirtualClock,
    create,
    names,
    register,
)
from justitia.policy.exact import LARGEST, MOST_TOKENS, SMALLEST, exactly, shown
from tests.policy.builders import (
    Anything,
    ForeignInt,
    ForeignReal,
    agent,
    inference,
    label,
    queue,
)

HUGE = 10**5000
TOKENS = f"must be a count from 0 to {MOST_TOKENS}, not"
COUNT = f"must be an int from 0 to {MOST_TOKENS}, not"
SIZE = "must be a finite positive number (1e-150 to 1e+150), not"
WORK = "must be a finite number that is not negative (0 to 1e+150), not"
REAL = "must be a finite number, not"
UNPRINTABLE = "a value of type int with too many digits to show"


def say(bad: object) -> str:
    text = UNPRINTABLE if bad is HUGE else repr(bad)
    return text if len(text) <= 80 else f"{text[:60]}… ({len(text):,} characters)"


def told(
    message: str,
    call: Callable[..., object],
    *arguments: Any,  # noqa: ANN401
    **options: Any,  # noqa: ANN401
) -> None:
    with pytest.raises(PolicyError) as caught:
        call(*arguments, **options)
    assert str(caught.value) == message


# Values -----------------------------------------------------------------------

NOT_STRINGS: tuple[Anything, ...] = (None, 7, 1.5, True, b"a", ("a",), [], HUGE)
NOT_REAL: tuple[Anything, ...] = (
    "12", None, True, False, 1j, [], float("nan"), float("inf"), ForeignReal(1e999)
)  # fmt: skip
TOO_SMALL: tuple[Anything, ...] = (
    0, 0.0, -1, Fraction(-1, 2), 9e-151, Fraction(1, 10**151)
)  # fmt: skip
TOO_LARGE: tuple[Anything, ...] = (1.1e150, HUGE)


def rule_of(bad: object, otherwise: str) -> str:
    """Return what the message says is allowed: numbers at all, or those in a range."""
    return REAL if any(bad is each for each in NOT_REAL) else otherwise


@pytest.mark.parametrize("bad", NOT_STRINGS, ids=label)
def test_ids(bad: Anything) -> None:
    told(f"agent id must be a str, not {say(bad)}", Agent, bad, 1)
    told(f"inference id must be a str, not {say(bad)}", Inference, bad, "a", 1, 1)
    told(f"agent id must be a str, not {say(bad)}", Inference, "i", bad, 1, 1)


def test_empty_ids() -> None:
    told("agent id must not be empty", Agent, "", 1)
    told("inference id must not be empty", Inference, "", "a", 1, 1)
    told("agent id must not be empty", Inference, "i", "", 1, 1)


@pytest.mark.parametrize("bad", [*NOT_REAL, *TOO_SMALL, *TOO_LARGE], ids=label)
def test_costs_and_weights(bad: Anything) -> None:
    rule = rule_of(bad, SIZE)
    told(f"cost of agent 'é' {rule} {say(bad)}", Agent, "é", bad)
    told(f"weight of agent 'a' {rule} {say(bad)}", Agent, "a", 1, bad)
    told(
        f"a stage cost of agent 'a' {rule} {say(bad)}",
        Agent,
        "a",
        1,
        stage_costs=[1, bad],
    )


def test_kinds_and_stage_costs() -> None:
    bad: Anything
    for bad in NOT_STRINGS:
        told(
            f"kind of agent 'a' must be a str, not {say(bad)}", Agent, "a", 1, kind=bad
        )
    for bad in (None, 7, 1.5, "12", "", {}, {0: 1}, HUGE):
        told(
            f"stage_costs of agent 'a' must be a sequence of numbers, not {say(bad)}",
            Agent,
            "a",
            1,
            stage_costs=bad,
        )


NOT_INTS: tuple[Anything, ...] = (None, "1", 1.0, True, Fraction(2), ForeignReal(1))
NOT_COUNTS: tuple[Anything, ...] = (-1, MOST_TOKENS + 1, ForeignInt(-1), HUGE)


@pytest.mark.parametrize("bad", NOT_INTS, ids=label)
def test_counts_that_are_no_ints(bad: Anything) -> None:
    said = f"must be an int, not {say(bad)}"
    told(f"prompt_tokens of inference 'i' {said}", Inference, "i", "a", bad, 1)
    told(f"decode_tokens of inference 'i' {said}", Inference, "i", "a", 1, bad)
    told(f"stage of inference 'i' {said}", Inference, "i", "a", 1, 1, bad)
    if bad is not None:
        told(f"inferences of agent 'a' {said}", Agent, "a", 1, inferences=bad)


@pytest.mark.parametrize("bad", NOT_COUNTS, ids=label)
def test_counts_out_of_range(bad: Anything) -> None:
    said = f"{TOKENS} {say(bad)}"
    told(f"prompt_tokens of inference 'i' {said}", Inference, "i", "a", bad, 1)
    told(f"decode_tokens of inference 'i' {said}", Inference, "i", "a", 1, bad)
    told(f"stage of inference 'i' {said}", Inference, "i", "a", 1, 1, bad)
    told(f"inferences of agent 'a' {said}", Agent, "a", 1, inferences=bad)


@pytest.mark.parametrize("bad", [None, 7, [], "ab", [("a", 1)], HUGE], ids=label)
def test_steps(bad: Anything) -> None:
    said = f"of a step must be a mapping from inference id to tokens, not {say(bad)}"
    told(f"prefill {said}", Step, prefill=bad)
    told(f"decode {said}", Step, decode=bad)


def test_what_is_frozen() -> None:
    for value, kind, name in (
        (agent(), "Agent", "cost"),
        (inference(), "Inference", "id"),
        (Step(), "Step", "decode"),
    ):
        with pytest.raises(AttributeError) as caught:
            setattr(value, name, 1)
        assert str(caught.value) == f"{kind} is frozen; '{name}' cannot be set"
        with pytest.raises(AttributeError) as caught:
            delattr(value, name)
        assert str(caught.value) == f"{kind} is frozen; '{name}' stays"


def test_a_value_is_shown_in_80_characters_or_cut_after_60() -> None:
    assert shown(None) == "None"
    assert shown("x" * 78) == "'" + "x" * 78 + "'"
    assert shown("x" * 79) == "'" + "x" * 59 + "… (81 characters)"
    assert shown("x" * 10**6) == "'" + "x" * 59 + "… (1,000,002 characters)"
    assert shown(HUGE) == UNPRINTABLE
    assert shown([HUGE]) == "a value of type list with too many digits to show"


# Verbs ------------------------------------------------------------------------

POLICIES = ("fcfs", "sjf", "agent-fcfs", "srjf", "vtc", "justitia", "justitia-c")


@pytest.fixture(params=POLICIES)
def policy(request: pytest.FixtureRequest) -> Any:  # noqa: ANN401
    """Make a policy in which A/0 runs and A/1 waits."""
    made = queue(request.param, agent("A"), runs=2)
    made.start("A/0")
    return made


def test_arrivals(policy: Any) -> None:  # noqa: ANN401
    for bad in (*NOT_STRINGS, "A", inference("A/0")):
        told(f"arrive takes an Agent, not {say(bad)}", policy.arrive, bad)
        if not isinstance(bad, Inference):
            told(f"submit takes an Inference, not {say(bad)}", policy.submit, bad)
        told(f"serve takes a Step, not {say(bad)}", policy.serve, bad)
    told("agent 'A' is here already", policy.arrive, agent("A"))
    told(
        "inference 'B/0' is of agent 'B', which has not arrived or has left",
        policy.submit,
        inference("B/0"),
    )
    for name in ("A/0", "A/1"):
        told(f"inference '{name}' is here already", policy.submit, inference(name))


@pytest.mark.parametrize("bad", ["", *NOT_STRINGS], ids=label)
def test_ids_in_verbs(policy: Any, bad: Anything) -> None:  # noqa: ANN401
    rule = "must not be empty" if bad == "" else f"must be a str, not {say(bad)}"
    for verb in (policy.start, policy.requeue, policy.refuse, policy.finish):
        told(f"inference id {rule}", verb, bad)
    for verb in (policy.leave, policy.tag):
        told(f"agent id {rule}", verb, bad)
    told(f"agent id {rule}", policy.revise, bad, 1)


def test_states(policy: Any) -> None:  # noqa: ANN401
    for verb in (policy.start, policy.refuse):
        told("inference 'A/0' is not waiting", verb, "A/0")
        told("inference 'Z' is not waiting, nor known at all", verb, "Z")
    told("inference 'A/1' is not running", policy.requeue, "A/1")
    told("inference 'Z' is not running, nor known at all", policy.requeue, "Z")
    told("agent 'Z' has not arrived or has left", policy.tag, "Z")
    told("agent 'Z' has not arrived or has left", policy.revise, "Z", 1)


@pytest.mark.parametrize("bad", [*NOT_REAL, *TOO_SMALL, *TOO_LARGE], ids=label)
def test_revisions(policy: Any, bad: Anything) -> None:  # noqa: ANN401
    rule = rule_of(bad, SIZE)
    told(f"cost of agent 'A' {rule} {say(bad)}", policy.revise, "A", bad)


@pytest.mark.parametrize("bad", [*NOT_REAL, -1.1e150, *TOO_LARGE], ids=label)
def test_seconds(policy: Any, bad: Anything) -> None:  # noqa: ANN401
    told(f"seconds {REAL} {say(bad)}", policy.advance, bad)


@pytest.mark.parametrize("bad", [*NOT_INTS, *NOT_COUNTS], ids=label)
@pytest.mark.parametrize("what", ["prefill", "decode"])
def test_counts_in_steps(policy: Any, what: str, bad: Anything) -> None:  # noqa: ANN401
    """The one that is wrong is named, whatever stands before and behind it."""
    for counts in ({"X": bad}, {"a": 0, "b": 1, "c": MOST_TOKENS, "X": bad, "d": 2}):
        told(
            f"{what} of inference 'X' {COUNT} {say(bad)}",
            policy.serve,
            Step(**{what: counts}),
        )
    policy.serve(Step(**{what: {"a": 0, "b": 1, "c": MOST_TOKENS}}))


@pytest.mark.parametrize("name", POLICIES)
def test_a_walk_in_a_line_that_changes(name: str) -> None:
    policy = queue(name, agent("A"), runs=2)
    walk = policy.order()
    next(walk)
    policy.pop()
    with pytest.raises(RuntimeError) as caught:
        next(walk)
    assert str(caught.value) == "the line changed while it was walked"


# The clock --------------------------------------------------------------------


@pytest.mark.parametrize("bad", [*NOT_REAL, *TOO_SMALL, *TOO_LARGE], ids=label)
def test_costs_and_weights_in_the_clock(bad: Anything) -> None:
    clock = VirtualClock()
    clock.arrive("A", 1)
    rule = rule_of(bad, SIZE)
    told(f"cost of agent (1, 'B') {rule} {say(bad)}", clock.arrive, (1, "B"), bad)
    told(f"weight of agent 'B' {rule} {say(bad)}", clock.arrive, "B", 1, bad)
    told(f"cost of agent 'A' {rule} {say(bad)}", clock.revise, "A", bad)


@pytest.mark.parametrize("bad", [*NOT_REAL, -1, -0.5, *TOO_LARGE], ids=label)
def test_work_in_the_clock(bad: Anything) -> None:
    rule = rule_of(bad, WORK)
    told(f"work {rule} {say(bad)}", VirtualClock().serve, bad)


def test_agents_in_the_clock() -> None:
    clock = VirtualClock()
    clock.arrive("A", 1)
    told("agent 'A' is in the clock already", clock.arrive, "A", 1)
    told("agent 'B' is not in the clock", clock.revise, "B", 1)
    told("agent 'B' is not in the clock", clock.tag, "B")
    bad: Anything
    for bad in ([1], {}, ([],)):
        said = f"an agent must be hashable, not {bad!r}"
        told(said, clock.arrive, bad, 1)
        told(said, clock.leave, bad)
        told(f"agent {bad!r} is not in the clock", clock.tag, bad)


# Options ----------------------------------------------------------------------


@pytest.mark.parametrize("bad", ["", "AGENT", "Nominal", 7, [], HUGE], ids=label)
def test_names_in_options(bad: Anything) -> None:
    for name in ("justitia", "justitia-c"):
        for option, allowed in (
            ("tags", "agent, stage"),
            ("clock", "delivered, nominal"),
            ("cost", "kv, kv-paper, compute, reserved"),
        ):
            told(
                f"{option} must be one of {allowed}, not {say(bad)}",
                create,
                name,
                **{option: bad},
            )
    told(f'by must be "decode" or "cost", not {say(bad)}', create, "sjf", by=bad)


@pytest.mark.parametrize("bad", [*NOT_REAL, *TOO_SMALL, *TOO_LARGE], ids=label)
def test_numbers_in_options(bad: Anything) -> None:
    rule = rule_of(bad, SIZE)
    for name in ("justitia", "justitia-c"):
        if bad is not None:
            told(f"growth {rule} {say(bad)}", create, name, growth=bad)
            told(
                f"capacity {rule} {say(bad)}",
                create,
                name,
                clock="nominal",
                capacity=bad,
            )
        told(f"step_seconds {rule} {say(bad)}", create, name, step_seconds=bad)
    if not any(bad is each for each in TOO_SMALL):
        rule = rule_of(bad, WORK)
        for price in ("prompt_price", "decode_price"):
            told(f"{price} {rule} {say(bad)}", create, "vtc", **{price: bad})


def test_options_that_do_not_fit() -> None:
    for name in ("justitia", "justitia-c"):
        for bad in (0.5, Fraction(1, 2), 0.999):
            told(f"growth must be at least 1, not {bad!r}", create, name, growth=bad)
        said = 'clock="nominal" needs a capacity, and no other clock takes one; got '
        told(f"{said}clock='delivered', capacity=7", create, name, capacity=7)
        told(f"{said}clock='nominal', capacity=None", create, name, clock="nominal")


@pytest.mark.parametrize("bad", ["", "fifo", "FCFS", *NOT_STRINGS], ids=label)
def test_names_of_policies(bad: Anything) -> None:
    known = ", ".join(names())
    told(f"no policy {say(bad)}; there are: {known}", create, bad)
    if bad not in ("fifo", "FCFS"):
        told(
            f"a policy's name must be a str that is not empty, not {say(bad)}",
            register,
            bad,
            lambda: create("fcfs"),
        )


def test_names_and_factories_that_are_refused() -> None:
    told("there is a policy 'fcfs' already", register, "fcfs", dict)
    bad: Anything
    for bad in (None, 7, "fcfs"):
        told(f"a policy's factory must be callable, not {bad!r}", register, "mine", bad)
    assert "mine" not in names()


def test_unknown_options() -> None:
    told(
        "policy 'vtc' has no option 'price'; it takes: prompt_price, decode_price",
        create,
        "vtc",
        price=1,
        size=2,
    )
    told("policy 'fcfs' has no option 'x'; it takes: none", create, "fcfs", x=1)


def test_the_edges_of_numbers_are_told_as_they_are() -> None:
    assert f"{SMALLEST:g} to {LARGEST:g}" == "1e-150 to 1e+150"
    assert exactly(MOST_TOKENS) == 2**63 - 1
