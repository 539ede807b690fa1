"""Equal steps that are told as one: whatever is asked in between, nothing changes."""

from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.serving import Agents, Claim
from justitia.engines.serving.agents import MOST_MERGED
from justitia.policy import Step, create

STATIC = ("justitia", "justitia-c", "fcfs", "agent-fcfs", "sjf")


class Looking:
    """A witness: with one, every step is told on its own."""

    def served(self, step: Step) -> None:
        pass

    def requeued(self, request_id: str) -> None:
        pass


class Twin:
    """The same agents twice, told step by step and in lumps."""

    def __init__(self, policy: str) -> None:
        self.both = [Agents(create(policy), now=lambda: 0.0) for _ in range(2)]
        self.both[0].witness = Looking()
        self.running: list[str] = []
        self.sent = 0

    def submit(self, agent: int, tokens: int) -> None:
        self.sent += 1
        for agents in self.both:
            agents.submit(f"r{self.sent}", Claim(agent=f"{agent}"), tokens, 2 * tokens)

    def start(self) -> None:
        heads = [agents.head() for agents in self.both]
        assert heads[0] == heads[1]
        if heads[0] is not None:
            for agents in self.both:
                agents.start(heads[0])
            self.running.append(heads[0])

    def step(self, times: int) -> None:
        for _ in range(times):
            for agents in self.both:
                agents.serve({}, dict.fromkeys(self.running, 1))

    def end(self, place: int) -> None:
        if self.running:
            one = self.running.pop(place % len(self.running))
            assert all(agents.finish(one) for agents in self.both)

    def requeue(self, place: int) -> None:
        if self.running:
            one = self.running.pop(place % len(self.running))
            for agents in self.both:
                agents.requeue(one)

    def dismiss(self, agent: int) -> None:
        gone = [agents.dismiss(f"{agent}") for agents in self.both]
        assert gone[0] == gone[1]
        self.running = [one for one in self.running if one not in (gone[0] or ())]

    def check(self) -> None:
        alone, lumped = self.both
        assert alone.head() == lumped.head()
        assert list(alone.order()) == list(lumped.order())
        assert list(alone.victims()) == list(lumped.victims())
        for agent in range(4):
            assert alone.tag(f"{agent}") == lumped.tag(f"{agent}")
        for agents in self.both:
            agents._check()


NUMBERS = st.integers(0, 3)
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("submit"), NUMBERS, st.integers(1, 50)),
        st.tuples(st.just("start")),
        st.tuples(st.just("step"), st.integers(1, 2 * MOST_MERGED)),
        st.tuples(st.sampled_from(("end", "requeue", "dismiss")), NUMBERS),
    ),
    max_size=60,
)


@given(st.sampled_from(STATIC), EVENTS, st.booleans())
def test_told_in_lumps_is_told(
    policy: str, events: list[tuple[str, int]], often: bool
) -> None:
    twin = Twin(policy)
    for verb, *values in events:
        getattr(twin, verb)(*values)
        if often:
            twin.check()
    twin.check()
    for agent in range(4):
        twin.dismiss(agent)
    assert not twin.both[1]._produced


def test_whoever_reorders_with_service_is_told_at_once() -> None:
    agents = Agents(create("vtc"), now=lambda: 0.0)
    agents.submit("r", Claim(agent="a"), 5, 5)
    agents.start("r")
    agents.serve({}, {"r": 1})
    assert not agents._times


def test_steps_are_held_back_no_longer_than_is_said() -> None:
    agents = Agents(create("justitia"), now=lambda: 0.0)
    agents.submit("r", Claim(agent="a"), 5, 50)
    agents.start("r")
    for _ in range(MOST_MERGED + 1):
        agents.serve({}, {"r": 1})
    assert agents._times == 1
    assert agents._produced == {"r": MOST_MERGED}
