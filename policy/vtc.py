"""Virtual token counter: equal shares of token service at every instant.

Source: Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024
(arXiv 2401.00588), algorithm 2. Its client is the agent here. Its test of memory is an
admission rule of the engine (``lookahead``), not part of its order.
"""

from collections.abc import Iterator
from heapq import heapify, heappop, heapreplace

from justitia.policy.agents import Agent, Step
from justitia.policy.exact import Exact, Number, advanced, exactly, not_negative
from justitia.policy.ledger import Account, Entry
from justitia.policy.levels import AgentOrder


class _Client(Account):
    """An account with VTC's counter: token service per unit of weight.

    Counters are exact even where weights or prices are floats: a charge that is taken
    back leaves nothing behind.
    """

    __slots__ = ("counter", "weight")

    def __init__(self, agent: Agent, seq: int) -> None:
        super().__init__(agent, seq)
        self.counter: Exact = 0
        self.weight = exactly(agent.weight)

    def charge(self, service: Exact) -> Exact:
        """Raise the counter by `service`; return by how much that was.

        Weight 1 needs no quotient.
        """
        before = self.counter
        if self.weight == 1:
            self.counter = before + service
        else:
            self.counter = advanced(before, service, self.weight)
        return self.counter - before


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
        self._prompt_price = exactly(not_negative(prompt_price, "prompt_price"))
        self._decode_price = exactly(not_negative(decode_price, "decode_price"))
        self._last_left: _Client | None = None

    def account(self, agent: Agent, seq: int) -> Account:
        """Open an account with a counter."""
        return _Client(agent, seq)

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        """Return the counter."""
        return (_client(account).counter,)

    def submitted(self, entry: Entry) -> None:
        """Lift the counter of an agent that had nothing waiting.

        One that has something there is not below the least, and stays as it is.
        """
        first = self.first()
        floor = self._last_left if first is None else _client(first.account)
        client = _client(entry.account)
        if floor is not None and floor.counter > client.counter:
            client.counter = floor.counter
            self.reorder(client)

    def dequeue(self, entry: Entry) -> None:
        """Take an entry out of the line; note who was the last to leave it."""
        super().dequeue(entry)
        if not self._waiting:
            self._last_left = _client(entry.account)

    def started(self, entry: Entry) -> None:
        """Charge the prompt, once in an inference's life."""
        if entry.charge is None:
            client = _client(entry.account)
            price = self._prompt_price * entry.inference.prompt_tokens
            entry.charge = client.charge(price)
            self.outdate(client)

    def requeued(self, entry: Entry) -> None:
        """Take back the charge of a start that was not served."""
        if entry.charge is not None and not entry.prefilled and not entry.produced:
            client = _client(entry.account)
            client.counter -= entry.charge
            entry.charge = None
            self.reorder(client)

    def served(self, step: Step) -> None:
        """Charge the tokens produced."""
        price, decode = self._decode_price, step.decode
        for entry in self.produce(step):
            client = _client(entry.account)
            client.charge(price * decode[entry.inference.id])
            self.outdate(client)

    def walk(self) -> Iterator[Entry]:
        """Yield the line as `pop` would give it: each start raises a counter."""
        heap: list[tuple[Exact, int, Iterator[Entry], Entry]] = []
        for group in self._line:
            client, entries = _client(group.account), iter(group.entries.values())
            heap.append((client.counter, client.seq, entries, next(entries)))
        heapify(heap)
        while heap:
            counter, seq, entries, entry = heap[0]
            yield entry
            if entry.charge is None:
                price = self._prompt_price * entry.inference.prompt_tokens
                counter = advanced(counter, price, _client(entry.account).weight)
            following = next(entries, None)
            if following is None:
                heappop(heap)
            else:
                heapreplace(heap, (counter, seq, entries, following))

    def _check(self) -> None:
        super()._check()
        for account in self._accounts.values():
            client = _client(account)
            assert client.weight == account.agent.weight
            charges = [entry.charge or 0 for entry in account.live.values()]
            assert all(charge >= 0 for charge in charges)
            assert client.counter >= sum(charges)
        assert all(entry.charge is not None for entry in self._running.values())
        assert self._waiting or not self._running or self._last_left is not None


def _client(account: Account) -> _Client:
    assert isinstance(account, _Client)
    return account
