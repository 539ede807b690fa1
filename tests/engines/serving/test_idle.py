"""Who rests for how long."""

from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.serving.idle import Idle


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


def test_the_longest_at_rest_is_due_first() -> None:
    clock = Clock()
    idle = Idle(clock, 10, 5)
    for name in ("a", "b"):
        idle.rest(name)
        clock.time += 5
        assert idle.tick() == 5
    assert idle.due() == "a"
    idle.wake("a")
    assert idle.due() is None
    idle.rest("b")  # anew
    clock.time += 9
    idle.tick()
    assert idle.due() is None
    idle.wake("nobody")


def test_nobody_can_rest_where_there_is_no_room() -> None:
    assert not Idle(Clock(), 0, 5).remembers
    assert not Idle(Clock(), 5, 0).remembers
    assert Idle(Clock(), 5, 5).remembers


@given(
    st.lists(
        st.one_of(
            st.tuples(st.just("rest"), st.integers(0, 9)),
            st.tuples(st.just("wake"), st.integers(0, 9)),
            st.tuples(st.just("tick"), st.floats(-100, 100, allow_nan=False)),
        )
    ),
    st.integers(1, 30),
    st.integers(1, 4),
)
def test_it_is_a_list_of_who_rests_since_when(
    events: list[tuple[str, int | float]], linger: int, most: int
) -> None:
    clock = Clock()
    idle = Idle(clock, linger, most)
    time, resting = 0.0, dict[str, float]()
    for event, value in events:
        name = f"a{value}"
        if event == "tick":
            clock.time += value
            time += max(0.0, idle.tick())
        else:
            resting.pop(name, None)
            if event == "rest":
                resting[name] = time
                idle.rest(name)
            else:
                idle.wake(name)
        idle._check()
        assert len(idle) == len(resting)
        while (due := idle.due()) is not None:
            assert due == next(iter(resting))
            assert len(resting) > most or time - resting[due] >= linger
            del resting[due]
            idle.wake(due)
        assert len(resting) <= most
        assert all(time - since < linger for since in resting.values())
        assert all(name in idle for name in resting)
