"""Who keeps the line of the exact server: the fair reference itself, or a policy."""

from collections.abc import Mapping, Sequence
from fractions import Fraction

from justitia.policy import Agent, Inference, Policy, Step
from justitia.proofs.plans import Item, Number, Plan, Work, delivered, kv_token_time
from justitia.proofs.reference import FairReference


class FairLine:
    """Selective pampering from its definition, without any code of ``policy/``.

    The smallest finish level of the fair reference goes first; of equal ones the agent,
    or stage, that got its own first; of one stage the first.

    Parameters
    ----------
    by_stage
        A tag for each stage, given when it becomes ready.
    work
        What costs are counted in.
    rate
        None: the reference shares what is delivered. Else it shares so much each step.
    """

    def __init__(
        self,
        *,
        by_stage: bool = False,
        work: Work = kv_token_time,
        rate: Number | None = None,
    ) -> None:
        self.by_stage, self.work, self.rate = by_stage, work, rate
        self.fair = FairReference()
        self.tags: dict[tuple[int, int], Fraction] = {}
        self._plans: dict[int, Plan] = {}
        self._places: dict[tuple[int, int], tuple[Fraction, int]] = {}
        self._waiting: set[Item] = set()
        self._running: set[Item] = set()
        self._got: dict[int, Fraction] = {}
        self._promised: dict[int, Fraction] = {}
        self._earlier: dict[int, tuple[Fraction, Fraction]] = {}
        self._produced: dict[Item, int] = {}

    def place(self, item: Item) -> tuple[Fraction, int, Item]:
        """Return what the line is sorted by."""
        unit = (item.agent, item.stage if self.by_stage else 0)
        return (*self._places[unit], item)

    def arrive(self, agent: int, plan: Plan) -> None:
        """Note an agent; without tags by stage it gets its tag now."""
        self._plans[agent] = plan
        self._got[agent] = Fraction(0)
        if not self.by_stage:
            self._tag((agent, 0), sum(plan.costs(self.work), Fraction(0)))

    def ready(self, items: Sequence[Item]) -> None:
        """Note a stage; with tags by stage it gets its tag now."""
        agent, stage, _ = items[0]
        if self.by_stage:
            costs = self._plans[agent].costs(self.work)
            self._tag((agent, stage), sum(costs[: stage + 1], Fraction(0)))
        self._waiting.update(items)

    def head(self) -> Item | None:
        """Return the first in line."""
        return min(self._waiting, key=self.place, default=None)

    def start(self, item: Item) -> None:
        """Move an inference from waiting to running."""
        self._waiting.remove(item)
        self._running.add(item)

    def refuse(self, item: Item) -> None:
        """Keep the order."""

    def victim(self) -> Item | None:
        """Return the last of the running."""
        return max(self._running, key=self.place, default=None)

    def requeue(self, item: Item) -> None:
        """Move an inference from running to waiting."""
        self._running.remove(item)
        self._waiting.add(item)

    def serve(
        self, prefill: Mapping[Item, int], decode: Mapping[Item, int], work: Fraction
    ) -> None:
        """Share what was delivered, or the constant rate."""
        for item, tokens in decode.items():
            size = self._plans[item.agent].stages[item.stage][item.place]
            before = self._produced.get(item, 0)
            self._produced[item] = before + tokens
            self._got[item.agent] += delivered(self.work, size, before + tokens)
            self._got[item.agent] -= delivered(self.work, size, before)
        self.fair.serve(work if self.rate is None else self.rate)

    def finish(self, item: Item) -> None:
        """Forget an inference."""
        self._waiting.discard(item)
        self._running.discard(item)

    def leave(self, agent: int) -> None:
        """Settle an agent, by its last stage: see `bounds.replay`."""
        for item in [i for i in self._waiting | self._running if i.agent == agent]:
            self.finish(item)
        if agent in self._promised:
            promised, got = self._earlier[agent]
            last = min(self._got[agent] - got, self._promised[agent] - promised)
            cost = promised + last
            if cost:
                self.fair.revise(agent, cost)
            else:
                self.fair.leave(agent)
        del self._plans[agent]
        if not self._plans:  # nobody is left to be owed anything
            for debtor in self.fair.wanting():
                self.fair.leave(debtor)

    def _tag(self, unit: tuple[int, int], total: Fraction) -> None:
        agent, _ = unit
        before = self._promised.get(agent, Fraction(0))
        self._earlier[agent] = (before, self._got[agent])
        if agent in self._promised:
            self.fair.revise(agent, total)
        else:
            self.fair.arrive(agent, total, self._plans[agent].weight)
        self._promised[agent] = total
        self.tags[unit] = self.fair.finish_level(agent)
        # Stages of one agent share its place among equal tags.
        seq = [share.agent for share in self.fair.shares].index(agent)
        self._places[unit] = (self.tags[unit], seq)


class PolicyLine:
    """A line kept by any object that has the verbs of a policy.

    Agents are called ``a0``, ``a1``, …; their inferences ``a0/1.2``, the third of the
    second stage. The policy sees the predicted cost of an agent and of its stages, and
    the real p and d of each inference.

    Parameters
    ----------
    policy
        The object.
    work
        What costs are counted in.
    step_seconds
        What `advance` is told after each step.
    """

    def __init__(
        self, policy: Policy, *, work: Work = kv_token_time, step_seconds: Number = 1
    ) -> None:
        self.policy, self.work, self.step_seconds = policy, work, step_seconds
        self.tags: dict[tuple[int, int], Number] = {}
        self._plans: dict[int, Plan] = {}
        self._items: dict[str, Item] = {}

    def arrive(self, agent: int, plan: Plan) -> None:
        """Tell of an agent, with its predicted cost in all and by stage."""
        self._plans[agent] = plan
        costs = tuple(_plain(cost) for cost in plan.costs(self.work))
        self.policy.arrive(
            Agent(
                _name(agent),
                _plain(sum(plan.costs(self.work), Fraction(0))),
                plan.weight,
                stage_costs=costs,
                inferences=sum(map(len, plan.stages)),
            )
        )

    def ready(self, items: Sequence[Item]) -> None:
        """Submit the inferences of a stage; keep what the policy says its tag is."""
        for item in items:
            p, d = self._plans[item.agent].stages[item.stage][item.place]
            self._items[str(item)] = item
            self.policy.submit(
                Inference(str(item), _name(item.agent), p, d, item.stage)
            )
        agent, stage, _ = items[0]
        tag = getattr(self.policy, "tag", None)
        if tag is not None and (told := tag(_name(agent))) is not None:
            self.tags[agent, stage] = told

    def head(self) -> Item | None:
        """Ask who is next."""
        head = self.policy.peek()
        return None if head is None else self._items[head.id]

    def start(self, item: Item) -> None:
        """Tell that it runs."""
        self.policy.start(str(item))

    def refuse(self, item: Item) -> None:
        """Tell that the head did not fit."""
        if callable(refuse := getattr(self.policy, "refuse", None)):
            refuse(str(item))

    def victim(self) -> Item | None:
        """Ask who gives way first."""
        first = next(iter(self.policy.victims()), None)
        return None if first is None else self._items[first.id]

    def requeue(self, item: Item) -> None:
        """Tell that it is back in line."""
        self.policy.requeue(str(item))

    def serve(
        self, prefill: Mapping[Item, int], decode: Mapping[Item, int], work: Fraction
    ) -> None:
        """Tell of a step, and that time passed."""
        told = Step(
            {str(item): tokens for item, tokens in prefill.items()},
            {str(item): tokens for item, tokens in decode.items()},
        )
        self.policy.serve(told)
        if callable(advance := getattr(self.policy, "advance", None)):
            advance(self.step_seconds)

    def finish(self, item: Item) -> None:
        """Tell that an inference ended."""
        self.policy.finish(str(item))
        del self._items[str(item)]

    def leave(self, agent: int) -> None:
        """Tell that an agent ended."""
        self.policy.leave(_name(agent))
        del self._plans[agent]
        self._items = {n: i for n, i in self._items.items() if i.agent != agent}


def _name(agent: int) -> str:
    return f"a{agent}"


def _plain(cost: Fraction) -> Number:
    return cost.numerator if cost.denominator == 1 else cost
