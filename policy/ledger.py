"""The books that every policy here keeps: agents, inferences, service delivered."""

from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Iterable, Iterator

from justitia.policy.agents import Agent, Inference, Step, check_id
from justitia.policy.base import Policy
from justitia.policy.errors import PolicyError
from justitia.policy.exact import MOST_TOKENS, Exact, Number, finite, positive, shown


class Account:
    """An agent in the books.

    Attributes
    ----------
    seq
        Its number in order of arrival.
    cost
        Its predicted total cost, as last revised.
    service
        Work delivered to it so far, in the policy's cost model. Counted only by
        policies that call `Ledger.deliver`.
    live
        Its inferences, waiting and running, by id.
    groups
        Its waiting inferences by stage, in policies that order agents.
    """

    __slots__ = ("agent", "cost", "groups", "live", "seq", "service")

    def __init__(self, agent: Agent, seq: int) -> None:
        self.agent = agent
        self.seq = seq
        self.cost = agent.cost
        self.service: Number = 0
        self.live: dict[str, Entry] = {}
        self.groups: dict[int, Group] = {}


class Group:
    """The waiting inferences of an account that stand in line together.

    Attributes
    ----------
    entries
        By number of submission, in that order.
    place
        Its key in the line of groups; None when that must be asked for again.

    Complexity: O(1) each, but `add` of one that stands neither first nor last (a
    preempted one that comes back) O(k log k), with k in the group.
    """

    __slots__ = ("account", "entries", "place", "stage")

    def __init__(self, account: "Account", stage: int) -> None:
        self.account = account
        self.stage = stage
        self.entries: OrderedDict[int, Entry] = OrderedDict()
        self.place: tuple[object, ...] | None = None

    def add(self, entry: "Entry") -> None:
        """Put an entry at its place."""
        entries, seq = self.entries, entry.seq
        if not entries or seq > next(reversed(entries)):
            entries[seq] = entry
            return
        first = seq < next(iter(entries))
        entries[seq] = entry
        if first:
            entries.move_to_end(seq, last=False)
        else:
            for place in sorted(entries):
                entries.move_to_end(place)

    def first(self) -> "Entry":
        """Return the entry submitted first; the group must not be empty."""
        return next(iter(self.entries.values()))

    def _check(self) -> None:
        """Assert that the entries are the account's, in order."""
        seqs = list(self.entries)
        assert seqs == sorted(seqs)
        for seq, entry in self.entries.items():
            assert entry.seq == seq
            assert entry.account is self.account


class Entry:
    """An inference in the books.

    Attributes
    ----------
    seq
        Its number in order of submission; `requeue` keeps it.
    produced
        Tokens it has produced. A preemption takes back its memory, not its tokens.
    work
        Work delivered to it: of the cost model after `produced` tokens, 0 before the
        first.
    prefilled
        Whether any step has computed a token of its prompt.
    charge
        What its start was charged, in policies that charge for a start; None before.
    """

    __slots__ = (
        "account", "charge", "inference", "prefilled", "produced", "seq", "work"
    )  # fmt: skip

    def __init__(self, inference: Inference, account: Account, seq: int) -> None:
        self.inference = inference
        self.account = account
        self.seq = seq
        self.produced = 0
        self.work: Number = 0
        self.prefilled = False
        self.charge: Exact | None = None


class Ledger(Policy):
    """A policy's verbs with all bookkeeping done; subclasses say what the order is.

    A subclass gives the line (`enqueue`, `dequeue`, `peek`, `walk`) and a `rank`, and
    may take note of events through the hooks. `AgentOrder` and `InferenceOrder` are the
    two lines that policies here use.

    Complexity: every verb O(1) beyond the line's own cost, `serve` O(inferences in the
    step), `leave` O(inferences of the agent), `victims` O(r log r) with r running.
    """

    def __init__(self) -> None:
        self._accounts: dict[str, Account] = {}
        self._waiting: dict[str, Entry] = {}
        self._running: dict[str, Entry] = {}
        self._seq = 0
        self._moves = 0  # changes of the line, so that a walk can notice one

    # The line ---------------------------------------------------------------------

    @abstractmethod
    def enqueue(self, entry: Entry) -> None:
        """Put an entry in line, at the place of its rank."""

    @abstractmethod
    def dequeue(self, entry: Entry) -> None:
        """Take an entry out of the line, wherever it stands."""

    @abstractmethod
    def walk(self) -> Iterator[Entry]:
        """Yield the line's entries, lazily, in the order in which `pop` gives them."""

    @abstractmethod
    def rank(self, entry: Entry) -> tuple[object, ...]:
        """Return the key of an entry: smaller first, no two alike."""

    # Hooks --------------------------------------------------------------------------

    def account(self, agent: Agent, seq: int) -> Account:
        """Open the account of an agent that arrives."""
        return Account(agent, seq)

    def entry(self, inference: Inference, account: Account, seq: int) -> Entry:
        """Open the entry of an inference that is submitted."""
        return Entry(inference, account, seq)

    def submitted(self, entry: Entry) -> None:
        """Take note of an entry before it is put in line."""

    def started(self, entry: Entry) -> None:
        """Take note of an entry that was taken out of the line to run."""

    def requeued(self, entry: Entry) -> None:
        """Take note of an entry before it is put back in line."""

    def served(self, step: Step) -> None:
        """Take note of a step, already checked."""

    def ended(self, entry: Entry, *, ran: bool) -> None:
        """Take note of an entry that is gone; `ran` if it was not in line."""

    def revised(self, account: Account) -> None:
        """Take note of an account whose `cost` has changed."""

    def left(self, account: Account) -> None:
        """Take note of an account that was closed, its entries gone."""

    # Verbs --------------------------------------------------------------------------

    def arrive(self, agent: Agent) -> None:
        """Open an account; see `Policy.arrive`."""
        if not isinstance(agent, Agent):
            raise PolicyError(f"arrive takes an Agent, not {shown(agent)}")
        if agent.id in self._accounts:
            raise PolicyError(f"agent {shown(agent.id)} is here already")
        self._accounts[agent.id] = self.account(agent, self._next())

    def submit(self, inference: Inference) -> None:
        """Put an inference in line; see `Policy.submit`."""
        if not isinstance(inference, Inference):
            raise PolicyError(f"submit takes an Inference, not {shown(inference)}")
        account = self._accounts.get(inference.agent)
        if account is None:
            raise PolicyError(
                f"inference {shown(inference.id)} is of agent "
                f"{shown(inference.agent)}, which has not arrived or has left"
            )
        if inference.id in self._waiting or inference.id in self._running:
            raise PolicyError(f"inference {shown(inference.id)} is here already")
        entry = self.entry(inference, account, self._next())
        self.submitted(entry)
        self._waiting[inference.id] = entry
        account.live[inference.id] = entry
        self.enqueue(entry)
        self._moves += 1

    def start(self, inference_id: str) -> Inference:
        """Take an inference out of the line; see `Policy.start`."""
        entry = self._in(self._waiting, inference_id, "waiting")
        del self._waiting[inference_id]
        self._running[inference_id] = entry
        self.dequeue(entry)
        self.started(entry)
        self._moves += 1
        return entry.inference

    def requeue(self, inference_id: str) -> None:
        """Put an inference back in line; see `Policy.requeue`."""
        entry = self._in(self._running, inference_id, "running")
        del self._running[inference_id]
        self._waiting[inference_id] = entry
        self.requeued(entry)
        self.enqueue(entry)
        self._moves += 1

    def serve(self, step: Step) -> None:
        """Take note of a step; see `Policy.serve`."""
        if not isinstance(step, Step):
            raise PolicyError(f"serve takes a Step, not {shown(step)}")
        for what, counts in (("prefill", step.prefill), ("decode", step.decode)):
            if counts and (
                set(map(type, counts.values())) != {int}
                or min(counts.values()) < 0
                or max(counts.values()) > MOST_TOKENS
            ):
                _refuse_counts(what, counts.items())
        self.served(step)

    def finish(self, inference_id: str) -> bool:
        """Forget an inference; see `Policy.finish`."""
        check_id(inference_id, "inference id")
        entry = self._running.pop(inference_id, None)
        ran = entry is not None
        if entry is None:
            entry = self._waiting.pop(inference_id, None)
            if entry is None:
                return False
            self.dequeue(entry)
            self._moves += 1
        del entry.account.live[inference_id]
        self.ended(entry, ran=ran)
        return True

    def leave(self, agent_id: str) -> bool:
        """Close an account; see `Policy.leave`."""
        check_id(agent_id, "agent id")
        account = self._accounts.get(agent_id)
        if account is None:
            return False
        for inference_id in tuple(account.live):
            self.finish(inference_id)
        del self._accounts[agent_id]
        self.left(account)
        return True

    def revise(self, agent_id: str, cost: Number) -> None:
        """Replace an agent's predicted cost; see `Policy.revise`."""
        account = self._known(agent_id)
        before = account.cost
        account.cost = positive(cost, f"cost of agent {shown(agent_id)}")
        try:
            self.revised(account)
        except PolicyError:
            account.cost = before
            raise

    def refuse(self, inference_id: str) -> None:
        """Check that the inference waits; see `Policy.refuse`."""
        self._in(self._waiting, inference_id, "waiting")

    def advance(self, seconds: Number) -> None:
        """Check the number; see `Policy.advance`."""
        finite(seconds, "seconds")

    def tag(self, agent_id: str) -> Number | None:
        """Check that the agent is here; see `Policy.tag`."""
        self._known(agent_id)
        return None

    def order(self) -> Iterator[Inference]:
        """Yield the line; see `Policy.order`."""
        moves = self._moves
        for entry in self.walk():
            yield entry.inference
            if self._moves != moves:
                raise RuntimeError("the line changed while it was walked")

    def victims(self) -> Iterator[Inference]:
        """Yield the running, largest rank first: the reverse of the line's order."""
        running = sorted(self._running.values(), key=self.rank, reverse=True)
        return (entry.inference for entry in running)

    # For subclasses -----------------------------------------------------------------

    def produce(self, step: Step) -> Iterator[Entry]:
        """Book the tokens of a step; yield the running entries that it let produce.

        An entry that has nothing to produce is among them when its prompt is done.
        """
        running = self._running
        for inference_id, tokens in step.prefill.items():
            if tokens and inference_id in running:
                running[inference_id].prefilled = True
        for inference_id, tokens in step.decode.items():
            entry = running.get(inference_id)
            if entry is not None:
                entry.produced += tokens
                if tokens or not (entry.produced or entry.inference.decode_tokens):
                    yield entry

    def deliver(self, step: Step) -> dict[Account, Number]:
        """Book the tokens and the work of a step; return what each account got."""
        work_of = self.cost_model.delivered
        got: dict[Account, Number] = {}
        for entry in self.produce(step):
            inference, account = entry.inference, entry.account
            work = work_of(
                inference.prompt_tokens, entry.produced, inference.decode_tokens
            )
            got[account] = got.get(account, 0) + work - entry.work
            entry.work = work
        for account, gain in got.items():
            account.service += gain
        return got

    def _work(self, entry: Entry) -> Number:
        inference = entry.inference
        return self.cost_model.delivered(
            inference.prompt_tokens, entry.produced, inference.decode_tokens
        )

    def _in(self, state: dict[str, Entry], inference_id: str, name: str) -> Entry:
        try:
            entry = state.get(inference_id)
        except TypeError:  # not hashable, so not an id
            entry = None
        if entry is None:
            check_id(inference_id, "inference id")
            known = inference_id in self._waiting or inference_id in self._running
            raise PolicyError(
                f"inference {shown(inference_id)} is not {name}"
                + ("" if known else ", nor known at all")
            )
        return entry

    def _known(self, agent_id: str) -> Account:
        check_id(agent_id, "agent id")
        account = self._accounts.get(agent_id)
        if account is None:
            raise PolicyError(f"agent {shown(agent_id)} has not arrived or has left")
        return account

    def _next(self) -> int:
        self._seq += 1
        return self._seq

    def _check(self) -> None:
        """Assert that the books agree with one another."""
        assert self._moves >= 0
        arrivals = [account.seq for account in self._accounts.values()]
        assert arrivals == sorted(arrivals)
        for agent_id, account in self._accounts.items():
            assert account.agent.id == agent_id
            assert account.cost > 0
            for inference_id, entry in account.live.items():
                inference = entry.inference
                assert (inference.id, inference.agent) == (inference_id, agent_id)
                assert entry.account is account
                places = (self._waiting, self._running)
                assert [p.get(inference_id) for p in places].count(entry) == 1
                assert entry.produced >= 0
                assert isinstance(entry.prefilled, bool)
                assert entry.charge is None or entry.charge >= 0
                assert entry.work in (0, self._work(entry))
            work = sum(entry.work for entry in account.live.values())
            assert work <= account.service * (1 + 1e-9)  # sums of floats round
        assert not self._waiting.keys() & self._running.keys()
        live = [*self._waiting.values(), *self._running.values()]
        seqs = [*arrivals, *(entry.seq for entry in live)]
        assert len(set(seqs)) == len(seqs)
        assert all(0 < seq <= self._seq for seq in seqs)
        assert len(live) == sum(len(a.live) for a in self._accounts.values())
        ranks = [self.rank(entry) for entry in live]
        assert len(set(ranks)) == len(ranks)
        waiting = sorted(self._waiting.values(), key=self.rank)
        head = self.peek()
        assert (head is None) == (not waiting)
        assert head is None or head is waiting[0].inference


def _refuse_counts(what: str, counts: Iterable[tuple[str, object]]) -> None:
    inference_id, count = next(
        (name, count)
        for name, count in counts
        if type(count) is not int or not 0 <= count <= MOST_TOKENS
    )
    raise PolicyError(
        f"{what} of inference {shown(inference_id)} must be an int from 0 to "
        f"{MOST_TOKENS}, not {shown(count)}"
    )
