"""The two lines that policies here use: of inferences, and of agents.

A policy of your own can be as short as this:

>>> class LongestFirst(AgentOrder):
...     static_order = True
...
...     def key(self, account: Account, stage: int) -> tuple[object, ...]:
...         return (-account.cost,)
"""

from abc import abstractmethod
from collections.abc import Iterator

from justitia.policy.agents import Inference
from justitia.policy.ledger import Account, Entry, Group, Ledger
from justitia.policy.line import Line


class InferenceOrder(Ledger):
    """A line of inferences, each by a key of its own that never changes."""

    static_order = True
    additive = True

    def __init__(self) -> None:
        super().__init__()
        self._line = Line()  # of entries

    @abstractmethod
    def key(self, entry: Entry) -> tuple[object, ...]:
        """Return what decides the order; submission decides among equals."""

    def rank(self, entry: Entry) -> tuple[object, ...]:
        """Return the key, then the number of submission."""
        return (*self.key(entry), entry.seq)

    def enqueue(self, entry: Entry) -> None:
        """Put an entry in line."""
        self._line.push(entry, self.rank(entry))

    def dequeue(self, entry: Entry) -> None:
        """Take an entry out of the line."""
        self._line.discard(entry)

    def peek(self) -> Inference | None:
        """Return the inference of the smallest key."""
        entry: Entry | None = self._line.peek()
        return None if entry is None else entry.inference

    def walk(self) -> Iterator[Entry]:
        """Yield the line."""
        return iter(self._line)

    def _check(self) -> None:
        super()._check()
        self._line._check()
        assert set(self._line) == set(self._waiting.values())
        for entry in self._line:
            assert self._line.key(entry) == self.rank(entry)


class AgentOrder(Ledger):
    """A line of agents by a key that may change; inside an agent, order of submission.

    Set `by_stage` where the stages of an agent stand in line on their own.
    """

    additive = True
    by_stage = False

    def __init__(self) -> None:
        super().__init__()
        self._line = Line()  # of groups

    @abstractmethod
    def key(self, account: Account, stage: int) -> tuple[object, ...]:
        """Return what decides the order; arrival decides among equals.

        It is asked for again only after `reorder`. `stage` is 0 throughout unless
        `by_stage`.
        """

    def rank(self, entry: Entry) -> tuple[object, ...]:
        """Return the key, then the numbers of arrival, stage and submission."""
        stage = entry.inference.stage if self.by_stage else 0
        account = entry.account
        return (*self.key(account, stage), account.seq, stage, entry.seq)

    def enqueue(self, entry: Entry) -> None:
        """Put an entry in its agent's group, and the group in line."""
        account = entry.account
        stage = entry.inference.stage if self.by_stage else 0
        group = account.groups.get(stage)
        if group is None:
            group = account.groups[stage] = Group(account, stage)
        if not group.entries:
            self._place(group)
        group.add(entry)

    def dequeue(self, entry: Entry) -> None:
        """Take an entry out of its group, and an empty group out of the line."""
        group = entry.account.groups[entry.inference.stage if self.by_stage else 0]
        del group.entries[entry.seq]
        if not group.entries:
            self._line.discard(group)

    def revised(self, account: Account) -> None:
        """Move all that the account has in line to the place of its key now."""
        for stage in account.groups:
            self.reorder(account, stage)

    def reorder(self, account: Account, stage: int = 0) -> None:
        """Take note that an account's key is another; move what of it waits."""
        group = account.groups.get(stage)
        if group is not None:
            group.place = None
            if group.entries:
                self._place(group)
                self._moves += 1

    def outdate(self, account: Account, stage: int = 0) -> None:
        """Take note that an account's key has grown; move it no sooner than need be.

        Where a group first in line is outdated `peek` moves it on, so that agents far
        behind the head cost nothing. `walk` does not: a policy that outdates keys has
        one of its own.
        """
        group = account.groups.get(stage)
        if group is not None:
            group.place = None
            self._moves += 1

    def peek(self) -> Inference | None:
        """Return the first inference of the first agent."""
        group = self.first()
        return None if group is None else group.first().inference

    def first(self) -> Group | None:
        """Return the group at the head of the line, moving outdated ones on."""
        group: Group | None = self._line.peek()
        while group is not None and group.place is None:
            self._place(group)
            group = self._line.peek()
        return group

    def walk(self) -> Iterator[Entry]:
        """Yield agent by agent."""
        return (entry for group in self._line for entry in group.entries.values())

    def _place(self, group: Group) -> None:
        place = group.place
        if place is None:
            account, stage = group.account, group.stage
            place = (*self.key(account, stage), account.seq, stage)
            group.place = place
        self._line.push(group, place)

    def _check(self) -> None:
        self._line._check()
        waiting = set()
        for account in self._accounts.values():
            for stage, group in account.groups.items():
                group._check()
                assert (group.account, group.stage) == (account, stage)
                assert bool(group.entries) == (group in self._line)
                key = (*self.key(account, stage), account.seq, stage)
                assert group.place in (None, key)
                if group.entries:
                    at = self._line.key(group)
                    assert at <= key if group.place is None else at == key
                waiting |= set(group.entries.values())
        assert waiting == set(self._waiting.values())
        assert all(group.entries for group in self._line)
        super()._check()
