"""The dispatcher under any history: nothing lost, doubled, leaked or starved."""

from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from justitia.engines.serving import Agents
from justitia.gateway.dispatcher import Call, Caps, Dispatcher, Phase
from justitia.gateway.errors import GatewayError
from justitia.gateway.fleet import Engine, Fleet
from justitia.gateway.shares import Shares
from justitia.policy import create
from tests.gateway.build import Clock, call

TENANTS = ("t", "u")
POLICIES = ("justitia", "vtc", "srjf", "fcfs", "shares")


class Gateway(RuleBasedStateMachine):
    """Engines are told apart by what they serve: one model each, and one both."""

    @initialize(
        policy=st.sampled_from(POLICIES),
        capacities=st.tuples(*[st.one_of(st.none(), st.integers(20, 90))] * 3),
        slots=st.tuples(*[st.integers(1, 6)] * 3),
    )
    def begin(
        self,
        policy: str,
        capacities: tuple[int | None, ...],
        slots: tuple[int, ...],
    ) -> None:
        self.clock = Clock()
        made = (
            Shares(lambda: create("justitia"), {"u": 2})
            if policy == "shares"
            else create(policy)
        )
        served = ({"m": 50}, {"k": 50}, {"m": 50, "k": 90})
        self.engines = [
            Engine(str(index), capacity=capacity, slots=slot, models=models)  # type: ignore[arg-type]
            for index, (capacity, slot, models) in enumerate(
                zip(capacities, slots, served, strict=True)
            )
        ]
        self.held = Dispatcher(
            Agents(made, now=self.clock, linger=5, most=3),
            Fleet(self.engines),
            caps={"u": Caps(agents=3, waiting=4)},
        )
        self.calls: list[Call] = []
        self.turns: dict[str, int] = {}
        self.ended: dict[str, str] = {}
        self.streamed: set[str] = set()

    def turn(self, one: Call) -> None:
        """An engine has room for it, beside all that was set aside there before."""
        engine = one.engine
        assert engine is not None
        assert engine.up
        assert engine.serves(one.model)
        assert one.phase is Phase.RUNNING
        assert one.id not in self.ended
        self.turns[one.id] = self.turns.get(one.id, 0) + 1
        assert self.turns[one.id] <= 2
        if engine.capacity is not None:
            assert engine.used <= engine.capacity
        if engine.running > len(one.prompts):
            assert engine.slots is not None
            assert engine.running <= engine.slots

    def end(self, one: Call, how: str) -> None:
        assert one.id not in self.ended
        self.ended[one.id] = how

    def pick(self, data: st.DataObject, phase: Phase) -> Call | None:
        those = [one for one in self.calls if one.phase is phase]
        return data.draw(st.sampled_from(those)) if those else None

    @rule(
        agent=st.sampled_from([None, "a", "b", "c", "d", "e"]),
        tenant=st.sampled_from(TENANTS),
        model=st.sampled_from([None, "m", "k", "x"]),
        prompt=st.integers(1, 60),
        most=st.integers(0, 30),
        count=st.integers(1, 3),
        more=st.fixed_dictionaries(
            {},
            optional={
                "cost": st.integers(1, 900),
                "tokens": st.integers(0, 9),
                "inferences": st.integers(1, 3),
                "weight": st.sampled_from([0.5, 2]),
            },
        ),
        mark=st.sampled_from([b"x", b"y"]),
    )
    def submit(  # noqa: PLR0917 - Hypothesis gives them by name
        self,
        agent: str | None,
        tenant: str,
        model: str | None,
        prompt: int,
        most: int,
        count: int,
        more: dict[str, int],
        mark: bytes,
    ) -> None:
        one = call(
            agent, prompt, most, tenant=tenant, count=count, model=model, marks=(mark,),
            **more,
        )  # fmt: skip
        one.on_turn = lambda: self.turn(one)
        one.on_cancel = lambda: self.end(one, "cancelled")
        before = len(self.held)
        refused: GatewayError | None = None
        try:
            self.held.submit(one)
        except GatewayError as error:
            refused = error
        if refused is None:
            self.calls.append(one)
        else:
            assert (refused.status == 404) == (model == "x")
            assert one.phase is Phase.NEW
            assert len(self.held) == before

    @rule(data=st.data(), tokens=st.integers(1, 12), index=st.integers(0, 2))
    def produce(self, data: st.DataObject, tokens: int, index: int) -> None:
        one = self.pick(data, Phase.RUNNING)
        if one is not None:
            self.streamed.add(one.id)
            self.held.produced(one, index, tokens)

    @rule(data=st.data(), counted=st.booleans(), tokens=st.integers(0, 40))
    def answer(self, data: st.DataObject, counted: bool, tokens: int) -> None:
        one = self.pick(data, Phase.RUNNING)
        if one is not None:
            prompts = [p + 3 for p in one.prompts] if counted else None
            self.held.settle(one, prompts, tokens)
            self.end(one, "answered")
            assert self.held.finish(one)

    @rule(data=st.data(), phase=st.sampled_from(list(Phase)))
    def disconnect(self, data: st.DataObject, phase: Phase) -> None:
        """In any phase, and it may be told twice."""
        one = self.pick(data, phase)
        if one is not None:
            here = phase in (Phase.WAITING, Phase.RUNNING)
            if here:
                self.end(one, "gone")
            assert self.held.finish(one) == here
            assert not self.held.finish(one)

    @rule(data=st.data())
    def die(self, data: st.DataObject) -> None:
        """Those that ran there find out one by one, while it is back already or not."""
        engine = data.draw(st.sampled_from(self.engines))
        for one in [c for c in self.calls if c.engine is engine]:
            if one.engine is not engine:
                continue  # it has been sent elsewhere meanwhile
            streamed, sent = one.id in self.streamed, self.turns[one.id]
            again = self.held.lost(one, streamed=streamed)
            assert again == (not streamed and sent == 1)
            if not again:
                self.end(one, "lost")
                self.held.finish(one)
        self.held.down(engine)

    @rule(data=st.data())
    def rise(self, data: st.DataObject) -> None:
        self.held.up(data.draw(st.sampled_from(self.engines)))

    @rule(tenant=st.sampled_from(TENANTS), agent=st.sampled_from(["a", "b", "z"]))
    def dismiss(self, tenant: str, agent: str) -> None:
        self.held.dismiss(tenant, agent)
        assert self.held.agents.describe(f"{tenant}/{agent}") is None

    @rule(seconds=st.integers(0, 9))
    def wait(self, seconds: int) -> None:
        self.clock.time += seconds
        self.held.expire()

    @invariant()
    @precondition(lambda self: hasattr(self, "held"))
    def all_is_well(self) -> None:
        self.held._check()
        for one in self.calls:
            assert (one.phase is Phase.OVER) == (one.id in self.ended)
        assert len(self.held) == len(self.calls) - len(self.ended)

    def teardown(self) -> None:
        """With engines up and calls that end everybody gets an answer."""
        if not hasattr(self, "held"):
            return
        for engine in self.engines:
            self.held.up(engine)
        for _ in range(2 * len(self.calls) + 1):
            running = [one for one in self.calls if one.phase is Phase.RUNNING]
            if not running:
                break
            for one in running:
                self.end(one, "answered")
                self.held.finish(one)
        assert len(self.ended) == len(self.calls)
        assert len(self.held) == 0
        assert [(e.used, e.running) for e in self.engines] == [(0, 0)] * 3
        self.held._check()


TestGateway = Gateway.TestCase
