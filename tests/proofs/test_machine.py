"""The public state machine: ours pass it, and whatever is wrong fails it."""

import os
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from justitia.policy import Agent, Inference, SelectivePampering, Step, create
from justitia.policy.costs import ReservedTokenTime
from justitia.policy.exact import Number
from justitia.policy.ledger import Account
from justitia.proofs.machine import Call, PolicyMachine
from justitia.proofs.recorder import NEEDED


class ByAgent(PolicyMachine):
    def make(self) -> SelectivePampering:
        return SelectivePampering()


class ByStage(PolicyMachine):
    by_stage = True

    def make(self) -> SelectivePampering:
        return SelectivePampering(tags="stage")


class ByReservedCost(ByStage):
    work = ReservedTokenTime()

    def make(self) -> SelectivePampering:
        return SelectivePampering(tags="stage", cost="reserved")


TestByAgent = pytest.mark.property(ByAgent.TestCase)
TestByStage = pytest.mark.property(ByStage.TestCase)

if os.environ.get("HYPOTHESIS_PROFILE") == "long":
    # Of 100 steps about 66 are done, as some examples have no rule left that they may
    # use. So the two do a million steps together. Much longer ones are too large for
    # Hypothesis.
    ByAgent.TestCase.settings = ByStage.TestCase.settings = settings(
        max_examples=8_000, stateful_step_count=100
    )


def briefly(machine: type[PolicyMachine], examples: int = 20) -> None:
    """Run a machine for a moment."""
    run_state_machine_as_test(
        machine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=30,
            database=None,
            derandomize=True,
            deadline=None,
            phases=[Phase.generate],
        ),
    )


def fails(make: Callable[[], object], message: str = ".*", **knobs: object) -> None:
    """Check that a machine finds what a scheduler does wrong."""
    machine = type("Wrong", (PolicyMachine,), {"make": lambda self: make(), **knobs})
    with pytest.raises(AssertionError, match=message):
        briefly(machine, examples=400)


def test_another_cost_model() -> None:
    briefly(ByReservedCost)


OTHERS = ["fcfs", "sjf", "agent-fcfs", "srjf", "vtc", "mlfq", "fairserve", "ayo"]


@pytest.mark.parametrize("name", OTHERS)
def test_other_orders_keep_their_books(name: str) -> None:
    """All but the fair order is asked of every scheduler."""
    briefly(
        type("Other", (PolicyMachine,), {"make": lambda _: create(name), "fair": False})
    )


@pytest.mark.parametrize("name", OTHERS)
def test_other_orders_are_not_fair(name: str) -> None:
    fails(lambda: create(name), "out of order")


def test_one_tag_is_not_a_tag_a_stage() -> None:
    fails(lambda: create("justitia"), by_stage=True)
    fails(lambda: create("justitia", tags="stage"), by_stage=False)


def test_another_clock_or_cost_is_not_that_of_the_reference() -> None:
    fails(lambda: create("justitia", clock="nominal", capacity=3))
    fails(lambda: create("justitia", cost="compute"))
    fails(lambda: create("justitia", growth=2))


class Late(SelectivePampering):
    """Ties in the wrong order."""

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (*super().key(account, stage), -account.seq)


class Dropping(SelectivePampering):
    """An agent that leaves is gone from the clock at once."""

    def left(self, account: Account) -> None:
        if account.seq in self.clock:
            self.clock.leave(account.seq)


class Charging(SelectivePampering):
    """Prompts are charged for."""

    def served(self, step: Step) -> None:
        super().served(step)
        self._share(sum(step.prefill.values()))


class Losing(SelectivePampering):
    """What is sent back after it was served is lost."""

    def requeue(self, inference_id: str) -> None:
        produced = self._running[inference_id].produced
        super().requeue(inference_id)
        if produced:
            self.finish(inference_id)


class Lying(SelectivePampering):
    """Says that it finished what it does not know."""

    def finish(self, inference_id: str) -> bool:
        super().finish(inference_id)
        return True


class Lenient(SelectivePampering):
    """Takes an agent a second time."""

    def arrive(self, agent: Agent) -> None:
        if agent.id not in self._accounts:
            super().arrive(agent)


class Impatient(SelectivePampering):
    """A head that was refused goes to the end of the line."""

    def __init__(self) -> None:
        super().__init__()
        self.refused: set[str] = set()

    def refuse(self, inference_id: str) -> None:
        self.refused.add(inference_id)

    def order(self) -> Iterator[Inference]:
        return iter(sorted(super().order(), key=lambda i: i.id in self.refused))

    def peek(self) -> Inference | None:
        return next(self.order(), None)


class Peeking(SelectivePampering):
    """The head is not the first in order."""

    def peek(self) -> Inference | None:
        return max(self.order(), key=lambda i: i.id, default=None)


@pytest.mark.parametrize(
    "wrong",
    [Late, Dropping, Charging, Losing, Lying, Lenient, Impatient, Peeking],
)
def test_what_is_wrong_fails(wrong: type[SelectivePampering]) -> None:
    fails(wrong)


class Plain:
    """A queue of somebody else's, with the verbs and nothing of ours in it."""

    def __init__(self) -> None:
        self.agents: set[str] = set()
        self.waiting: list[Inference] = []
        self.running: list[Inference] = []
        self.came: dict[str, int] = {}

    def arrive(self, agent: Agent) -> None:
        if agent.id in self.agents:
            raise KeyError(agent.id)
        self.agents.add(agent.id)

    def submit(self, inference: Inference) -> None:
        known = {item.id for item in self.waiting + self.running}
        if inference.agent not in self.agents or inference.id in known:
            raise KeyError(inference.id)
        self.came[inference.id] = max(self.came.values(), default=0) + 1
        self.waiting.append(inference)

    def _take(self, items: list[Inference], name: str) -> Inference:
        for item in items:
            if item.id == name:
                items.remove(item)
                return item
        raise KeyError(name)

    def start(self, name: str) -> Inference:
        item = self._take(self.waiting, name)
        self.running.append(item)
        return item

    def requeue(self, name: str) -> None:
        self.waiting.append(self._take(self.running, name))

    def finish(self, name: str) -> bool:
        for items in (self.waiting, self.running):
            if any(item.id == name for item in items):
                self._take(items, name)
                return True
        return False

    def leave(self, agent: str) -> bool:
        there = agent in self.agents
        self.agents.discard(agent)
        self.waiting = [item for item in self.waiting if item.agent != agent]
        self.running = [item for item in self.running if item.agent != agent]
        return there

    def revise(self, agent: str, cost: Number) -> None:
        if agent not in self.agents:
            raise KeyError(agent)

    def serve(self, step: object) -> None:
        pass

    def refuse(self, name: str) -> None:
        pass

    def advance(self, seconds: Number) -> None:
        pass

    def order(self) -> Iterator[Inference]:
        return iter(sorted(self.waiting, key=lambda item: self.came[item.id]))

    def victims(self) -> Iterator[Inference]:
        return iter(sorted(self.running, key=lambda item: -self.came[item.id]))

    def peek(self) -> Inference | None:
        return next(self.order(), None)


class PlainMachine(PolicyMachine):
    fair = False
    refusals = (KeyError,)

    def make(self) -> Plain:
        return Plain()

    def expected(self, alive: Sequence[Call]) -> Sequence[Call]:
        return sorted(alive, key=lambda call: call.seq)


def test_somebody_elses_queue() -> None:
    """In an order of its own, checked all the same."""
    briefly(PlainMachine)


def test_its_own_order_can_fail() -> None:
    machine = type(
        "Backwards", (PlainMachine,), {"expected": lambda _, alive: alive[::-1]}
    )
    with pytest.raises(AssertionError, match="out of order"):
        briefly(machine)


class Bare:
    """Has the verbs that there must be, and no others."""

    def __init__(self) -> None:
        ours = SelectivePampering()
        for verb in NEEDED:
            setattr(self, verb, getattr(ours, verb))


class BareMachine(PolicyMachine):
    def make(self) -> Bare:
        return Bare()


def test_a_scheduler_with_only_the_verbs_that_are_needed() -> None:
    briefly(BareMachine)


def test_a_machine_without_a_scheduler() -> None:
    with pytest.raises(NotImplementedError):
        briefly(PolicyMachine)
