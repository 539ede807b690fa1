"""Agents by a counter of the service that they had: what VTC and FairServe share."""

from justitia.policy.agents import Agent
from justitia.policy.exact import Exact, advanced, exactly
from justitia.policy.ledger import Account, Entry, Group
from justitia.policy.levels import AgentOrder


class Client(Account):
    """An account with a counter: service per unit of weight.

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


class CounterOrder(AgentOrder):
    """The agent of the least counter first.

    An agent that had nothing waiting is lifted to the counter of the head of the line
    (to that of the last that left it, when nobody waits), so that nobody saves up
    service by staying away. An agent's id never comes back, so it is the lift that
    keeps newcomers from passing everybody.
    """

    def __init__(self) -> None:
        super().__init__()
        self._last_left: Client | None = None

    def account(self, agent: Agent, seq: int) -> Account:
        """Open an account with a counter."""
        return Client(agent, seq)

    def submitted(self, entry: Entry) -> None:
        """Lift the counter of an agent that had nothing waiting."""
        client = client_of(entry)
        own = client.groups.get(0)
        if own is not None and own.entries:
            return
        first = self.first()
        floor = self._last_left if first is None else client_of(first)
        if floor is not None and floor.counter > client.counter:
            client.counter = floor.counter
            self.reorder(client)

    def dequeue(self, entry: Entry) -> None:
        """Take an entry out of the line; note who was the last to leave it."""
        super().dequeue(entry)
        if not self._waiting:
            self._last_left = client_of(entry)

    def _check(self) -> None:
        super()._check()
        for account in self._accounts.values():
            assert isinstance(account, Client)
            assert account.weight == account.agent.weight
            assert account.counter >= 0
        assert self._waiting or not self._running or self._last_left is not None


def client_of(held: Entry | Group) -> Client:
    """Return the account that an entry or a group is of."""
    account = held.account
    assert isinstance(account, Client)
    return account
