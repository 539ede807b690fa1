"""Policies that only tests want."""

from justitia.policy import AgentOrder, Inference, InferenceOrder, Step
from justitia.policy.ledger import Account, Entry


class Urgent(InferenceOrder):
    """Shortest prompt first; whatever runs with a longer one makes way."""

    name = "urgent"

    def key(self, entry: Entry) -> tuple[object, ...]:
        return (entry.inference.prompt_tokens,)

    def preempts(self, waiting: Inference, running: Inference) -> bool:
        return waiting.prompt_tokens < running.prompt_tokens


class UrgentAgents(AgentOrder):
    """Cheapest agent first, and it need not wait for dearer ones to end."""

    name = "urgent agents"
    static_order = True

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        return (account.cost,)

    def preempts(self, waiting: Inference, running: Inference) -> bool:
        accounts = self._accounts
        return accounts[waiting.agent].cost < accounts[running.agent].cost


DISPLACERS = (Urgent, UrgentAgents)


class Throttled(InferenceOrder):
    """First come, first served, but nobody starts until three steps were served.

    Time moves its gate, so its order is not static.
    """

    name = "throttled"
    static_order = False

    def __init__(self) -> None:
        super().__init__()
        self._left = 3

    def key(self, entry: Entry) -> tuple[object, ...]:
        return ()

    def peek(self) -> Inference | None:
        if self._running and self._left:
            return None
        return super().peek()

    def started(self, entry: Entry) -> None:
        self._left = 3

    def served(self, step: Step) -> None:
        self.produce(step)
        most = max(step.decode.values(), default=0)
        self._left = max(0, self._left - max(1, most))

    def _check(self) -> None:
        self._line._check()


class OneByOne(InferenceOrder):
    """First come, first served, one at a time, whatever the engine could take."""

    name = "one by one"

    def key(self, entry: Entry) -> tuple[object, ...]:
        return ()

    def peek(self) -> Inference | None:
        return None if self._running else super().peek()

    def _check(self) -> None:
        self._line._check()


class Sulky(InferenceOrder):
    """Moves a head that was refused to the end of the line."""

    name = "sulky"
    static_order = False

    def __init__(self) -> None:
        super().__init__()
        self._refusals: dict[str, int] = {}

    def key(self, entry: Entry) -> tuple[object, ...]:
        return (self._refusals.get(entry.inference.id, 0),)

    def refuse(self, inference_id: str) -> None:
        entry = self._waiting[inference_id]
        self.dequeue(entry)
        self._refusals[inference_id] = self._refusals.get(inference_id, 0) + 1
        self.enqueue(entry)


class Never(InferenceOrder):
    """Lets nobody start."""

    name = "never"

    def key(self, entry: Entry) -> tuple[object, ...]:
        return ()

    def peek(self) -> Inference | None:
        return None

    def _check(self) -> None:
        pass
