"""How late everything was, against what the theorems promise; exact.

`service_lags` is Theorem B: a start against the service at which the fair reference
finishes its agent, or stage. `delay_lags` is what it says of time. `time_lags` is
Theorem A: an end against the time at which a reference of constant rate does. All read
a `History`, and trust nobody who made it: the fair reference is run anew from the plans
and the service delivered.

``proofs/README.md`` states and proves both.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction

from justitia.proofs.plans import Item, Number, Size
from justitia.proofs.reference import FairReference, fair_finishes
from justitia.proofs.server import History

Unit = tuple[int, int]
"""What has a tag of its own: (agent, 0), or (agent, stage) with a tag for each."""
Place = tuple[Fraction, int]
"""A tag, and the number in order of arrival of its agent."""


@dataclass(frozen=True, slots=True)
class ServiceLag:
    """The first start of an inference q against Theorem B, in work.

    Attributes
    ----------
    delivered
        S(s): what was delivered before the step s of its start.
    finish
        G: the service at which the fair reference finishes its unit.
    in_flight
        I: what ran in step t0 had still to get after it, t0 being the last step before
        s in which anything of a larger place entered; 0 without such a step.
    cost
        c_q: what q is really delivered in all.
    underestimated
        What the units up to its own that came after t0 were really delivered beyond
        what was predicted.
    """

    item: Item
    step: int
    delivered: Fraction
    finish: Fraction
    in_flight: Fraction
    cost: Fraction
    underestimated: Fraction

    @property
    def bound(self) -> Fraction:
        """The most that may have been delivered before it starts."""
        return self.finish + self.in_flight - self.cost + self.underestimated

    @property
    def slack(self) -> Fraction:
        """How much more could have been delivered; negative if the theorem fails."""
        return self.bound - self.delivered


@dataclass(slots=True)
class Replay:
    """The fair reference, run over a history.

    Attributes
    ----------
    fair
        The reference at the end, through with everybody.
    places
        The place of each unit when it got its tag.
    arrivals
        The step at whose beginning it did.
    predicted
        The cost that it got its tag for.
    delivered
        S: what had been delivered before each step, and in all.
    """

    fair: FairReference = field(default_factory=FairReference)
    places: dict[Unit, Place] = field(default_factory=dict)
    arrivals: dict[Unit, int] = field(default_factory=dict)
    predicted: dict[Unit, Fraction] = field(default_factory=dict)
    delivered: list[Fraction] = field(default_factory=lambda: [Fraction(0)])


def replay(
    history: History, *, by_stage: bool = False, rate: Number | None = None
) -> Replay:
    """Drive a fair reference by what a history delivered, or by `rate` a step.

    It knows the predicted costs; an agent that leaves stays for what it was delivered,
    never more than predicted. With a tag a stage only its last stage is settled so:
    taking from that what an earlier stage was predicted too much would finish those
    behind it too early (``coq/examples/StagesSettledInOne.v``). When no agent is left
    in the engine the reference forgets those it still owed something, as nothing is in
    flight then.
    """
    result, totals = Replay(), dict[int, Fraction]()
    got = [Fraction(0)] * len(history.plans)
    earlier: dict[int, tuple[Fraction, Fraction]] = {}  # total, got before its stage
    here: set[int] = set()

    def leave(agent: int) -> None:
        here.discard(agent)
        total, before = earlier[agent]
        settled = total + min(got[agent] - before, totals[agent] - total)
        if settled:
            result.fair.revise(agent, settled)
        else:
            result.fair.leave(agent)
        if not here:
            for debtor in result.fair.wanting():
                result.fair.leave(debtor)

    for step, event in enumerate(history.events):
        for agent in event.cancelled:
            leave(agent)
        for agent, stage in event.ready:
            here.add(agent)
            costs = history.plans[agent].costs(history.work)
            if by_stage or stage == 0:
                unit = (agent, stage if by_stage else 0)
                cost = costs[stage] if by_stage else sum(costs, Fraction(0))
                earlier[agent] = (totals.get(agent, Fraction(0)), got[agent])
                result.places[unit] = _enter(result.fair, history, agent, cost, totals)
                result.arrivals[unit] = step
                result.predicted[unit] = cost
        for item, work in event.service.items():
            got[item.agent] += work
        result.fair.serve(event.delivered if rate is None else rate)
        result.delivered.append(result.delivered[-1] + event.delivered)
        for agent in event.left:
            leave(agent)
    return result


def _enter(
    fair: FairReference,
    history: History,
    agent: int,
    cost: Fraction,
    totals: dict[int, Fraction],
) -> Place:
    if agent in totals:
        totals[agent] += cost
        fair.revise(agent, totals[agent])
    else:
        totals[agent] = cost
        fair.arrive(agent, cost, history.plans[agent].weight)
    seq = list(totals).index(agent)
    return fair.finish_level(agent), seq


def service_lags(history: History, *, by_stage: bool = False) -> list[ServiceLag]:
    """Measure every first start against Theorem B.

    Parameters
    ----------
    history
        A run. Its inferences of one agent, or stage, became ready together.
    by_stage
        Whether each stage has a tag of its own.

    Returns
    -------
    list of ServiceLag
        In order of starting. All have a slack of at least 0 if the line was kept in the
        order of (tag, arrival). The starts of an agent that left before the reference
        came to its tag, if it never did, have no lag.
    """
    run = replay(history, by_stage=by_stage)

    def unit(item: Item) -> Unit:
        return (item.agent, item.stage if by_stage else 0)

    total: dict[Item, Fraction] = {}
    upto: list[dict[Item, Fraction]] = [{}]  # what each got before step k
    for event in history.events:
        for item, work in event.service.items():
            total[item] = total.get(item, Fraction(0)) + work
        upto.append(dict(total))
    real: dict[Unit, Fraction] = {}
    for item, work in total.items():
        real[unit(item)] = real.get(unit(item), Fraction(0)) + work
    lags = []
    for item, step in history.starts.items():
        place = run.places[unit(item)]
        after = 0  # t0 + 1
        for earlier in range(step):
            entered = history.events[earlier].entered
            if any(run.places[unit(other)] > place for other in entered):
                after = earlier + 1
        flying = history.events[after - 1].ran if after else ()
        in_flight = sum(
            (
                total.get(other, Fraction(0)) - upto[after].get(other, Fraction(0))
                for other in flying
            ),
            Fraction(0),
        )
        underestimated = sum(
            (
                max(Fraction(0), real.get(other, Fraction(0)) - run.predicted[other])
                for other, arrived in run.arrivals.items()
                if after <= arrived <= step and run.places[other] <= place
            ),
            Fraction(0),
        )
        finish = run.fair.reached(place[0])
        if finish is None:  # its agent left early, and so did the reason to get there
            continue
        lags.append(
            ServiceLag(
                item,
                step,
                run.delivered[step],
                finish,
                in_flight,
                total.get(item, Fraction(0)),
                underestimated,
            )
        )
    return lags


@dataclass(frozen=True, slots=True)
class DelayLag:
    """The end of an inference against what Theorem B says of time, in steps.

    Attributes
    ----------
    end
        f: the step before which it is done.
    finish
        g: the time at which the service delivered reached G, inside a step in
        proportion.
    in_flight
        I, as in `ServiceLag`.
    bound
        g + max(0, I - c + what was underestimated) / R + d.
    """

    item: Item
    end: Fraction
    finish: Fraction
    in_flight: Fraction
    bound: Fraction

    @property
    def slack(self) -> Fraction:
        """How much later it could have ended; negative if the theorem fails."""
        return self.bound - self.end


def delay_lags(
    history: History, *, rate: Number | None = None, by_stage: bool = False
) -> list[DelayLag]:
    """Measure every end against Theorem B, in time.

    Parameters
    ----------
    history
        A run without chunks, pauses and preemption: (p, d) runs for d steps.
    rate
        R: every step in which something waits delivers at least so much. By default
        the least that any of these steps delivered.
    by_stage
        Whether each stage has a tag of its own.
    """
    if rate is None:
        rate = least_delivered(history)
    run = replay(history, by_stage=by_stage)
    lags = []
    for lag in service_lags(history, by_stage=by_stage):
        end = history.finishes.get(lag.item)
        if end is None:  # cancelled
            continue
        plan = history.plans[lag.item.agent]
        _, d = plan.stages[lag.item.stage][lag.item.place]
        finish = _moment(run.delivered, lag.finish)
        late = max(Fraction(0), lag.bound - lag.finish) / Fraction(rate)
        lags.append(
            DelayLag(lag.item, Fraction(end), finish, lag.in_flight, finish + late + d)
        )
    return lags


def least_delivered(history: History) -> Fraction:
    """Return the least that a step delivered in which something waited.

    Where nothing ever waited, the least that any step delivered in which one ran.
    """
    waited = [event.delivered for event in history.events if event.waited]
    return min(waited or (event.delivered for event in history.events if event.ran))


def _moment(delivered: list[Fraction], service: Fraction) -> Fraction:
    """Return the time at which what is delivered reaches some service."""
    for step, after in enumerate(delivered):
        if after >= service:
            if after == service:
                return Fraction(step)
            before = delivered[step - 1]
            return step - 1 + (service - before) / (after - before)
    raise ValueError(f"{service} was never delivered")


@dataclass(frozen=True, slots=True)
class TimeLag:
    """The end of an inference against Theorem A, in steps.

    Attributes
    ----------
    end
        The step before which it is done.
    finish
        T: the time at which the reference finishes its agent.
    bound
        T + (D - 1) + d - m d / R.
    """

    item: Item
    end: Fraction
    finish: Fraction
    bound: Fraction

    @property
    def slack(self) -> Fraction:
        """How much later it could have ended; negative if the theorem fails."""
        return self.bound - self.end


def time_lags(
    history: History,
    *,
    clock_rate: Number,
    guaranteed_rate: Number,
    footprint: Callable[[int, int], int],
    by_stage: bool = False,
) -> list[TimeLag]:
    """Measure every end against Theorem A.

    Parameters
    ----------
    history
        A run in the order of the tags of a clock of constant rate.
    clock_rate
        G, the rate of the reference, in the work of the history a step.
    guaranteed_rate
        R, the token-steps a step that are reserved while something is refused.
    footprint
        What an inference (p, d) reserves.
    by_stage
        T is the time at which the reference finishes a stage that it was told of when
        the stage became ready. A stage that was done, with all else, before the
        reference got to it has no lag. Without, T is that of an agent all of whose
        inferences are there from the arrival on.
    """
    finishes: dict[Unit, Fraction] = {}
    if by_stage:
        run = replay(history, by_stage=True, rate=clock_rate)
        owed = sum((run.fair.wanted(who) for who in run.fair.wanting()), Fraction(0))
        run.fair.serve(owed)
        for unit, (level, _) in run.places.items():
            if (offered := run.fair.reached(level)) is not None:
                finishes[unit] = offered / Fraction(clock_rate)
    else:
        jobs = [
            (agent, plan.arrival, sum(plan.costs(history.work)), plan.weight)
            for agent, plan in enumerate(history.plans)
        ]
        for agent, time in fair_finishes(jobs, clock_rate).items():
            finishes[int(str(agent)), 0] = time
    sizes: dict[Item, Size] = {
        item: history.plans[item.agent].stages[item.stage][item.place]
        for item in history.finishes
    }
    longest = max(d for _, d in sizes.values())
    lags = []
    for item, end in history.finishes.items():
        finish = finishes.get((item.agent, item.stage if by_stage else 0))
        if finish is None:
            continue
        p, d = sizes[item]
        bound = finish + (longest - 1) + d
        bound -= Fraction(footprint(p, d) * d) / Fraction(guaranteed_rate)
        lags.append(TimeLag(item, Fraction(end), finish, bound))
    return lags
