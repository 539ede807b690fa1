"""Readiness against the definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.workloads import AgentSpec, InferenceSpec, Readiness, WorkloadError
from tests.workloads.builders import agent, call, shapes
from tests.workloads.test_agents import must_wait


@given(shapes(), st.randoms(use_true_random=False))
def test_agrees_with_the_definition(
    inferences: tuple[InferenceSpec, ...], rng: object
) -> None:
    made = AgentSpec("a", inferences)
    wanted = must_wait(made)
    readiness = Readiness(made)
    running = readiness.ready()
    assert running == [k for k, before in enumerate(wanted) if not before]
    done: set[int] = set()
    seen = list(running)
    while running:
        one = running.pop(rng.randrange(len(running)))  # type: ignore[attr-defined]
        fresh = readiness.done(one)
        done.add(one)
        readiness._check()
        assert fresh == sorted(fresh)
        seen += fresh
        running += fresh
        assert set(running) == {
            k for k, before in enumerate(wanted) if before <= done and k not in done
        }
    assert sorted(seen) == list(range(len(inferences)))
    assert readiness.left == 0


@pytest.mark.parametrize("position", [1, 5, -1])
def test_what_is_not_running_cannot_be_done(position: int) -> None:
    readiness = Readiness(agent(call(), call(stage=1)))
    with pytest.raises(WorkloadError, match="cannot be done"):
        readiness.done(position)
    assert readiness.left == 2


def test_nothing_is_done_twice() -> None:
    readiness = Readiness(agent(call(), call(stage=1)))
    assert readiness.done(0) == [1]
    with pytest.raises(WorkloadError, match="not running"):
        readiness.done(0)


def test_wide_stages_are_linear() -> None:
    half = 20_000
    readiness = Readiness(
        AgentSpec("a", tuple(call(stage=k // half) for k in range(2 * half)))
    )
    assert len(readiness.ready()) == half
    released = [readiness.done(k) for k in range(half)]
    assert not any(released[:-1])
    assert released[-1] == list(range(half, 2 * half))
