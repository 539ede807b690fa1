"""Virtual token counter: equal shares of token service at every instant.

Source: Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024
(arXiv 2401.00588), algorithm 2. Its client is the agent here. Its test of memory is an
admission rule of the engine (``lookahead``), not part of its order.
"""

from collections.abc import Iterator
from heapq import heappop, heapreplace

from justitia.policy.agents import Agent, Step
from justitia.policy.exact import Number, not_negative, quotient
from justitia.policy.ledger import Account, Entry
from justitia.policy.levels import AgentOrder


class _Client(Account):
    """An account with VTC's counter: token service per unit of weight."""

    __slots__ = ("counter",)

    def __init__(self, agent: Agent, seq: int) -> None:
        super().__init__(agent, seq)
        self.counter: Number = 0


class VTC(AgentOrder):
    """The agent with the least counter first; the counter grows with what it is served.

    An inference's prompt is charged when it starts, a token when it is produced. An
    agent that had nothing waiting is lifted to the least counter among the waiting (to
    the counter of the last that left, when nobody waits), so that nobody saves up
    service by staying away.

    Parameters
    ----------
    prompt_price, decode_price
        Service of a prompt token and of a produced one; the paper's 1 and 2.
    """

    name = "vtc"

    def __init__(self, *, prompt_price: Number = 1, decode_price: Number = 2) -> None:
        super().__init__()
        self._prompt_price = not_negative(prompt_price, "prompt_price")
        self._decode_price = not_negative(decode_price, "decode_price")
        self._last_left: Account | None = None

    def account(self, agent: Agent, seq: int) -> Account:
        """Open an account with a counter."""
        return _Client(agent, seq)

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        """Return the counter."""
        return (_client(account).counter,)

    def submitted(self, entry: Entry) -> None:
        """Lift the counter of an agent that had nothing waiting."""
        client = _client(entry.account)
        if client.groups.get(0):  # it has something waiting
            return
        first = self._line.peek()
        floor = self._last_left if first is None else first.account
        if floor is not None:
            client.counter = max(client.counter, _client(floor).counter)

    def dequeue(self, entry: Entry) -> None:
        """Take an entry out of the line; note who was the last to leave it."""
        super().dequeue(entry)
        if not self._line:
            self._last_left = entry.account

    def started(self, entry: Entry) -> None:
        """Charge the prompt, once in an inference's life."""
        if not entry.charged:
            entry.charged = True
            _client(entry.account).counter += self._prompt_charge(entry)
            self.reorder(entry.account)

    def requeued(self, entry: Entry) -> None:
        """Take back the charge of a start that was not served."""
        if not entry.prefilled and not entry.produced:
            entry.charged = False
            _client(entry.account).counter -= self._prompt_charge(entry)
            self.reorder(entry.account)

    def served(self, step: Step) -> None:
        """Charge the tokens produced."""
        tokens: dict[Account, int] = {}
        for entry, count in self.produce(step):
            tokens[entry.account] = tokens.get(entry.account, 0) + count
        for account, count in tokens.items():
            price = self._decode_price * count
            _client(account).counter += quotient(price, account.agent.weight)
            self.reorder(account)

    def walk(self) -> Iterator[Entry]:
        """Yield the line as `pop` would give it: each start raises a counter."""
        heap: list[tuple[Number, int, Iterator[Entry], Entry]] = []
        for group in self._line:
            client, entries = _client(group.account), iter(group)
            heap.append((client.counter, client.seq, entries, next(entries)))
        while heap:
            counter, seq, entries, entry = heap[0]
            yield entry
            if not entry.charged:
                counter += self._prompt_charge(entry)
            following = next(entries, None)
            if following is None:
                heappop(heap)
            else:
                heapreplace(heap, (counter, seq, entries, following))

    def _prompt_charge(self, entry: Entry) -> Number:
        price = self._prompt_price * entry.inference.prompt_tokens
        return quotient(price, entry.account.agent.weight)

    def _check(self) -> None:
        super()._check()
        assert all(_client(a).counter >= 0 for a in self._accounts.values())
        assert all(entry.charged for entry in self._running.values())


def _client(account: Account) -> _Client:
    assert isinstance(account, _Client)
    return account
