"""FastServe's queues: where one joins, sinks, is saved, and whose place it takes."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.policy import Inference, Policy, PolicyError, Step, create
from justitia.policy.mlfq import MLFQ
from tests.policy.builders import (
    NOT_COUNTS,
    NOT_POSITIVE,
    NOT_WORK,
    Anything,
    agent,
    decode,
    label,
    line,
    queue,
    victims,
)


def mlfq(**options: Anything) -> MLFQ:
    """Make one whose prompts take a second a token, and whose quanta are 1, 2, 4, …."""
    given = {"quantum": 1, "prefill_seconds": 0, "prefill_token_seconds": 1, **options}
    policy = create("mlfq", **given)
    assert isinstance(policy, MLFQ)
    return policy


def levels(policy: Policy) -> dict[str, int]:
    assert isinstance(policy, MLFQ)
    live = {**policy._waiting, **policy._running}
    return {name: entry.level for name, entry in sorted(live.items())}  # type: ignore[attr-defined]


def run(policy: Policy, seconds: float | Fraction, *names: str) -> None:
    """Let those that run produce a token in a step of so many seconds."""
    policy.serve(Step(decode=dict.fromkeys(names, 1)))
    policy.advance(seconds)
    policy._check()


# Joining --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt", "level"), [(0, 0), (1, 0), (2, 1), (3, 2), (4, 2), (5, 3), (1024, 10)]
)
def test_one_joins_the_first_queue_whose_quantum_its_prompt_fits(
    prompt: int, level: int
) -> None:
    assert levels(queue(mlfq(), agent("A"), p=prompt)) == {"A/0": level}


@given(
    prompt=st.integers(0, 10**6),
    quantum=st.fractions(Fraction(1, 1000), 10, max_denominator=1000),
    ratio=st.integers(2, 5),
    fixed=st.fractions(0, 5, max_denominator=100),
    token=st.fractions(0, 1, max_denominator=10**5),
)
def test_that_quantum_is_the_first_that_is_not_shorter(
    prompt: int, quantum: Fraction, ratio: int, fixed: Fraction, token: Fraction
) -> None:
    policy = mlfq(
        quantum=quantum,
        ratio=ratio,
        prefill_seconds=fixed,
        prefill_token_seconds=token,
    )
    (level,) = levels(queue(policy, agent("A"), p=prompt)).values()
    takes = fixed + prompt * token
    assert quantum * ratio**level >= takes
    assert level == 0 or quantum * ratio ** (level - 1) < takes


def test_the_last_queue_takes_any_prompt() -> None:
    policy = queue(mlfq(levels=3), agent("A"), p=10**9)
    assert levels(policy) == {"A/0": 2}
    one = queue(mlfq(levels=1, prefill_seconds=5), agent("A"), p=10**9)
    assert levels(one) == {"A/0": 0}


def test_a_higher_queue_goes_first_and_in_a_queue_who_came_first() -> None:
    policy = mlfq()
    policy.arrive(agent("A"))
    for number, prompt in enumerate((4, 1, 3, 2, 1)):
        policy.submit(Inference(f"A/{number}", "A", prompt, 1))
    assert line(policy) == ["A/1", "A/4", "A/3", "A/0", "A/2"]


# Sinking --------------------------------------------------------------------------


def test_one_sinks_when_it_has_run_for_longer_than_its_quantum() -> None:
    policy = queue(mlfq(), agent("A"), p=1)
    policy.pop()
    run(policy, 1, "A/0")
    assert levels(policy) == {"A/0": 0}  # as long, and not longer
    run(policy, Fraction(1, 10**6), "A/0")
    assert levels(policy) == {"A/0": 1}
    run(policy, 2, "A/0")  # nothing of this quantum was used yet
    assert levels(policy) == {"A/0": 1}
    run(policy, 7, "A/0")
    assert levels(policy) == {"A/0": 2}  # one queue at a time, however long


def test_only_time_in_a_step_is_charged_and_once() -> None:
    policy = queue(mlfq(), agent("A"), runs=2, p=1)
    policy.pop()
    policy.advance(100)
    assert levels(policy) == {"A/0": 0, "A/1": 0}
    run(policy, Fraction(1, 2), "A/0")
    policy.advance(100)
    policy.pop()
    run(policy, Fraction(1, 2), "A/0", "A/1")
    assert levels(policy) == {"A/0": 0, "A/1": 0}
    policy.requeue("A/0")
    policy.start("A/0")
    run(policy, Fraction(1, 4), "A/0")  # preempted or not, it goes on where it was
    assert levels(policy) == {"A/0": 1, "A/1": 0}


def test_a_clock_that_is_set_back_charges_nothing() -> None:
    policy = queue(mlfq(), agent("A"), p=1)
    policy.pop()
    run(policy, -50, "A/0")
    run(policy, 1, "A/0")
    assert levels(policy) == {"A/0": 0}


def test_a_prompt_in_chunks_is_charged_for_each() -> None:
    policy = queue(mlfq(), agent("A"), p=2)
    policy.pop()
    for _ in range(2):
        policy.serve(Step({"A/0": 1}))
        policy.advance(1)
    assert levels(policy) == {"A/0": 1}
    run(policy, 1, "A/0")
    assert levels(policy) == {"A/0": 2}


def test_who_sinks_goes_before_all_that_wait_there() -> None:
    policy = queue(mlfq(), agent("A"), runs=2, p=1)
    queue(policy, agent("B"), runs=2, p=2)
    for name in ("A/0", "A/1", "B/0"):
        policy.start(name)
    run(policy, Fraction(3, 2), "A/0", "A/1", "B/0")
    assert levels(policy) == {"A/0": 1, "A/1": 1, "B/0": 1, "B/1": 1}
    for name in ("B/0", "A/1", "A/0"):
        policy.requeue(name)
    assert line(policy) == ["A/1", "A/0", "B/0", "B/1"]


def test_in_the_last_queue_one_stays() -> None:
    policy = queue(mlfq(levels=2), agent("A"), runs=2, p=1)
    policy.pop()
    for _ in range(5):
        run(policy, 100, "A/0")
    assert levels(policy) == {"A/0": 1, "A/1": 0}


# Taking a place -------------------------------------------------------------------


def test_who_waits_takes_the_place_of_what_runs_in_a_lower_queue_only() -> None:
    policy = queue(mlfq(), agent("A"), runs=2, p=1)
    first = policy.pop()
    second = policy.peek()
    assert first is not None
    assert second is not None
    run(policy, 1, "A/0")
    assert not policy.preempts(second, first)
    run(policy, 1, "A/0")
    assert policy.preempts(second, first)


def test_a_prompt_is_computed_to_its_end() -> None:
    policy = queue(mlfq(), agent("A"), p=1)
    queue(policy, agent("B"), runs=2, p=9)
    for name in ("B/0", "B/1"):
        policy.start(name)
    (short,) = policy.order()
    long = {item.id: item for item in policy.victims()}
    policy.serve(Step({"B/0": 8, "B/1": 9}, {"B/1": 1}))
    policy.advance(50)
    assert policy.preempts(short, long["B/1"])
    assert not policy.preempts(short, long["B/0"])
    assert victims(policy) == ["B/1", "B/0"]
    policy.serve(Step({"B/0": 1}, {"B/0": 1}))
    assert policy.preempts(short, long["B/0"])
    policy.requeue("B/0")
    policy.start("B/0")  # and what was lost of it again
    assert not policy.preempts(short, long["B/0"])
    policy.serve(Step({"B/0": 10}, {"B/0": 1}))
    assert policy.preempts(short, long["B/0"])


def test_whom_it_is_asked_about_must_be_what_it_is_said_to_be() -> None:
    policy = queue(mlfq(), agent("A"), runs=2, p=1)
    first = policy.pop()
    second = policy.peek()
    assert first is not None
    assert second is not None
    with pytest.raises(PolicyError, match="'A/0' is not waiting"):
        policy.preempts(first, second)
    with pytest.raises(PolicyError, match="'A/1' is not running"):
        policy.preempts(second, second)


# Starving -------------------------------------------------------------------------


def starved(**options: Anything) -> MLFQ:
    """Let B/0 wait in queue 3 while A/0 runs; every second step looks for starving."""
    policy = mlfq(starvation_steps=2, starvation_seconds=10, **options)
    queue(policy, agent("A"), p=1)
    queue(policy, agent("B"), runs=2, p=8)
    policy.pop()
    return policy


def test_one_that_starves_goes_to_the_front_of_the_highest_queue() -> None:
    policy = starved()
    run(policy, 9, "A/0")
    run(policy, Fraction(999, 1000), "A/0")  # the look is before the time of its step
    assert levels(policy)["B/0"] == 3
    run(policy, 1, "A/0")
    assert levels(policy)["B/0"] == 3  # nobody looks
    queue(policy, agent("C"), p=1)
    run(policy, 1, "A/0")
    assert levels(policy) == {"A/0": 2, "B/0": 0, "B/1": 0, "C/0": 0}
    assert line(policy) == ["B/1", "B/0", "C/0"]  # each is pushed to the front


def test_who_was_saved_sinks_after_a_step_that_is_longer_than_its_quantum() -> None:
    policy = starved()
    policy.start("B/0")
    run(policy, 5, "A/0", "B/0")
    policy.requeue("B/0")
    for _ in range(5):
        run(policy, 3, "A/0")
    assert levels(policy)["B/0"] == 0
    policy.start("B/0")
    run(policy, Fraction(1, 2), "B/0")  # it has the 5 seconds that it used before
    assert levels(policy)["B/0"] == 1


def test_who_is_in_the_step_does_not_starve() -> None:
    policy = starved()
    policy.start("B/0")
    policy.serve(Step({"B/0": 1}))
    policy.advance(100)
    policy.serve(decode(A__0=1, B__0=1))
    assert levels(policy)["B/0"] == 4
    assert levels(policy)["B/1"] == 0


def test_a_newcomer_does_not_starve_before_its_time() -> None:
    """Whatever the clock says: FastServe's own would have it starve at once."""
    policy = mlfq(starvation_steps=1)
    policy.advance(10**9)
    queue(policy, agent("A"), p=1)
    queue(policy, agent("B"), p=8)
    policy.pop()
    run(policy, 2, "A/0")
    run(policy, 2, "A/0")
    assert levels(policy)["B/0"] == 3
    run(policy, 2, "A/0")
    assert levels(policy)["B/0"] == 0


def test_steps_of_nobody_do_not_count() -> None:
    policy = starved()
    policy.advance(100)
    policy.serve(Step())
    policy.serve(Step({"ghost": 1}, {"ghost": 1}))
    assert levels(policy)["B/0"] == 3


# Settings -------------------------------------------------------------------------


def test_fastserves_numbers_are_the_default() -> None:
    """10 ms doubled from queue to queue; 3 s in no step, looked for every 1,000."""
    policy = queue("mlfq", agent("A"), p=1)
    assert levels(policy) == {"A/0": 1}  # a step takes 11.8 ms: longer than 10
    queue(policy, agent("B"), p=8000)
    policy.pop()
    run(policy, Fraction(201, 10000), "A/0")
    assert levels(policy)["A/0"] == 2
    policy.advance(3)
    for _ in range(998):
        run(policy, 0, "A/0")
    assert levels(policy)["B/0"] == 6
    run(policy, 0, "A/0")
    assert levels(policy)["B/0"] == 0


@pytest.mark.parametrize("bad", NOT_POSITIVE, ids=label)
@pytest.mark.parametrize("option", ["quantum", "starvation_seconds"])
def test_seconds_that_are_refused(option: str, bad: Anything) -> None:
    with pytest.raises(PolicyError, match=option):
        mlfq(**{option: bad})


@pytest.mark.parametrize("bad", NOT_WORK, ids=label)
@pytest.mark.parametrize("option", ["prefill_seconds", "prefill_token_seconds"])
def test_times_of_prompts_that_are_refused(option: str, bad: Anything) -> None:
    with pytest.raises(PolicyError, match=option):
        mlfq(**{option: bad})


COUNTS = {"ratio": 2, "levels": 1, "starvation_steps": 1}


@pytest.mark.parametrize("bad", [*NOT_COUNTS, 0], ids=label)
@pytest.mark.parametrize("option", COUNTS)
def test_counts_that_are_refused(option: str, bad: Anything) -> None:
    if option == "levels" and bad is None:
        return
    with pytest.raises(PolicyError, match=option):
        mlfq(**{option: bad})


@pytest.mark.parametrize("option", COUNTS)
def test_the_least_counts(option: str) -> None:
    least = COUNTS[option]
    mlfq(**{option: least})
    with pytest.raises(PolicyError, match=f"{option} must be at least {least}, not "):
        mlfq(**{option: least - 1})


def test_extreme_settings_take_no_time() -> None:
    policy = mlfq(quantum=1e-150, prefill_seconds=1e150, prefill_token_seconds=1e150)
    queue(policy, agent("A"), p=2**63 - 1)
    assert levels(policy)["A/0"] > 1000
    free = queue(mlfq(prefill_token_seconds=0), agent("A"), p=2**63 - 1)
    assert levels(free) == {"A/0": 0}
