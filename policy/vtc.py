"""Virtual token counter: equal shares of token service at every instant.

Source: Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024
(arXiv 2401.00588), algorithm 2. Its client is the agent here. Its test of memory is an
admission rule of the engine (``lookahead``), not part of its order.
"""

from collections.abc import Iterator
from heapq import heappop, heappush, heapreplace

from justitia.policy.agents import Step
from justitia.policy.counters import Client, CounterOrder, client_of
from justitia.policy.exact import Exact, Number, advanced, exactly, not_negative
from justitia.policy.ledger import Account, Entry, Group


class VTC(CounterOrder):
    """The agent with the least counter first; the counter grows with what it is served.

    An inference's prompt is charged when it starts, a token when it is produced.

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

    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        """Return the counter."""
        assert isinstance(account, Client)
        return (account.counter,)

    def started(self, entry: Entry) -> None:
        """Charge the prompt, once in an inference's life."""
        if entry.charge is None:
            client = client_of(entry)
            price = self._prompt_price * entry.inference.prompt_tokens
            entry.charge = client.charge(price)
            self.outdate(client)

    def requeued(self, entry: Entry) -> None:
        """Take back the charge of a start that was not served."""
        if entry.charge is not None and not entry.prefilled and not entry.produced:
            client = client_of(entry)
            client.counter -= entry.charge
            entry.charge = None
            self.reorder(client)

    def served(self, step: Step) -> None:
        """Charge the tokens produced."""
        price, decode = self._decode_price, step.decode
        for entry in self.produce(step):
            client = client_of(entry)
            client.charge(price * decode[entry.inference.id])
            self.outdate(client)

    def walk(self) -> Iterator[Entry]:
        """Yield the line as `pop` would give it: each start raises a counter.

        Complexity: the first k O(k log n), with n agents waiting, and O(log n) for each
        that is outdated. The line has an agent where its counter was, which is not
        behind where it is now: so those whose place in the line is not before the least
        counter seen are not looked at yet.
        """
        self.first()  # so that a `peek` during the walk moves nothing
        line: Iterator[Group] = iter(self._line)
        following = next(line, None)
        seen: list[tuple[Exact, int, Iterator[Entry], Entry]] = []
        while seen or following is not None:
            while following is not None and (
                not seen or self._line.key(following)[:2] < seen[0][:2]
            ):
                client, entries = client_of(following), iter(following.entries.values())
                heappush(seen, (client.counter, client.seq, entries, next(entries)))
                following = next(line, None)
            counter, seq, entries, entry = seen[0]
            yield entry
            if entry.charge is None:
                price = self._prompt_price * entry.inference.prompt_tokens
                counter = advanced(counter, price, client_of(entry).weight)
            another = next(entries, None)
            if another is None:
                heappop(seen)
            else:
                heapreplace(seen, (counter, seq, entries, another))

    def _check(self) -> None:
        super()._check()
        for account in self._accounts.values():
            assert isinstance(account, Client)
            charges = [entry.charge or 0 for entry in account.live.values()]
            assert all(charge >= 0 for charge in charges)
            assert account.counter >= sum(charges)
        assert all(entry.charge is not None for entry in self._running.values())
