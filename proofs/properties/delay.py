"""How late anything may be: Theorem B, on an exact server, and what follows from it.

The server is `justitia.proofs.server`: agents arrive, the head of the line starts for
as long as it fits, what runs is served. ``proofs/README.md`` states the theorem.
"""

from collections.abc import Callable, Mapping
from fractions import Fraction
from math import inf

from hypothesis import strategies as st
from hypothesis import target

from justitia.policy import COST_MODELS
from justitia.proofs.admissions import Peak, Slots
from justitia.proofs.bounds import ServiceLag, service_lags
from justitia.proofs.lines import FairLine, PolicyLine
from justitia.proofs.plans import Plan, Work, kv_token_time
from justitia.proofs.properties.base import Family, Property, expect
from justitia.proofs.properties.beside import BIG, Race
from justitia.proofs.recorder import Broken, Session, same
from justitia.proofs.scenarios import Scenario
from justitia.proofs.server import History
from justitia.proofs.strategies import scenarios

Check = Callable[[Session, Scenario], None]


def _lags(
    session: Session,
    scenario: Scenario,
    *,
    by_stage: bool = False,
    work: Work = kv_token_time,
    options: Mapping[str, object],
) -> tuple[History, list[ServiceLag]]:
    """Run a scenario; check, and return, how late everything first started."""
    policy = session.policy(options)
    history = scenario.run(PolicyLine(policy, work=work), work=work)
    lags = service_lags(history, by_stage=by_stage)
    worst = max((lag.delivered - lag.bound for lag in lags), default=-inf)
    if worst > -inf:
        target(float(worst), label="how far a start is beyond the bound")
    late = [lag for lag in lags if lag.slack < 0]
    if late:
        first = min(late, key=lambda lag: lag.delivered)
        session.end_at(f"policy.start({str(first.item)!r})")
        raise Broken(_late(first))
    return history, lags


def _late(lag: ServiceLag) -> str:
    parts = [
        f"{lag.finish} (its fair finish)",
        f"+ {lag.in_flight} (then in flight)",
        f"- {lag.cost} (its cost)",
    ]
    if lag.underestimated:
        parts.append(f"+ {lag.underestimated} (underestimated)")
    return (
        f"{lag.item} started after {lag.delivered} had been delivered, and the bound "
        f"is {lag.bound} = {' '.join(parts)}"
    )


def theorem_b(**options: object) -> Check:
    """Return a check of every first start against Theorem B."""
    by_stage = options.get("tags") == "stage"

    def check(session: Session, scenario: Scenario) -> None:
        _lags(session, scenario, by_stage=by_stage, options=options)

    return check


def _by_cost(name: str) -> Check:
    model = COST_MODELS[name]()

    def check(session: Session, scenario: Scenario) -> None:
        _lags(session, scenario, work=model, options={"cost": name})

    return check


def _counted_by(name: str) -> Callable[[Session, tuple[int, int]], None]:
    """Return a check that service is not counted in KV token-time all the same."""
    model = COST_MODELS[name]()

    def check(session: Session, case: tuple[int, int]) -> None:
        prompt, tokens = case
        race = Race(session.policy({"cost": name}), work=model)
        worker = race.run("worker", BIG, (prompt, 9))
        race.step({worker: tokens}, {worker: prompt})
        race.finish(wrong=Fraction(kv_token_time(prompt, tokens), 2))

    return check


def _as_the_reference(session: Session, scenario: Scenario) -> None:
    """Compare starts, and tags where there are any, with the reference's by stage."""
    line, fair = PolicyLine(session.policy({"tags": "stage"})), FairLine(by_stage=True)
    history, should = scenario.run(line), scenario.run(fair)
    for unit, tag in line.tags.items():
        expect(
            same(tag, fair.tags[unit]),
            f"stage {unit[1]} of a{unit[0]} has the tag {tag}, and the reference "
            f"finishes it at {fair.tags[unit]}",
        )
    for step, events in enumerate(zip(history.events, should.events, strict=False)):
        told, right = ([str(item) for item in event.entered] for event in events)
        expect(told == right, f"in step {step} {told} start, and {right} should")


def _ends_in_time(session: Session, scenario: Scenario) -> None:
    """Where one runs at a time, an inference ends when it has got its cost."""
    history, lags = _lags(session, scenario, options={})
    delivered = [Fraction(0)]
    for event in history.events:
        delivered.append(delivered[-1] + event.delivered)
    for lag in lags:
        end = delivered[history.finishes[lag.item]]
        latest = lag.bound + lag.cost
        if end > latest:
            session.end_at(f"policy.finish({str(lag.item)!r})")
        expect(
            end <= latest,
            f"{lag.item} ended after {end} was delivered, and {latest} is the most",
        )


# Where bad orders go wrong ------------------------------------------------------------


@st.composite
def streams(draw: st.DrawFn) -> Scenario:
    """Draw an elephant, and mice that keep coming for as long as it should take."""
    prompt, decode = draw(st.integers(2, 4)), draw(st.integers(1, 2))
    parts = draw(st.integers(1, 2))
    elephant = Plan(draw(st.integers(0, 2)), (((prompt, decode),) * parts,))
    cost = parts * kv_token_time(prompt, decode)
    mouse = draw(st.integers(0, 1))
    count = 2 * cost + draw(st.integers(2, 8))
    mice = tuple(Plan(step, (((mouse, 1),),)) for step in range(count))
    return Scenario((elephant, *mice), Slots(1))


@st.composite
def late_mice(draw: st.DrawFn) -> Scenario:
    """Draw agents of many small inferences, and one that comes when some have ended.

    The reference has finished none of those by then, and they still count.
    """
    agents, each = draw(st.integers(2, 5)), draw(st.integers(3, 6))
    many = Plan(0, (((0, 1),) * each,))
    arrival = draw(st.integers(each, agents * each - 1))
    mouse = Plan(arrival, (((0, 1),),))
    return Scenario((*(many,) * agents, mouse), Slots(1))


@st.composite
def burst(draw: st.DrawFn) -> Scenario:
    """Draw an agent that comes first, and others no cheaper while one of it runs."""
    prompt, decode = draw(st.integers(0, 4)), draw(st.integers(2, 4))
    first = Plan(0, (((prompt, decode),) * 2,))
    others = draw(st.integers(2, 5))
    other = Plan(1, (((prompt, decode),) * 2,))
    return Scenario((first, *(other,) * others), Slots(1))


@st.composite
def staged(draw: st.DrawFn) -> Scenario:
    """Draw an agent of a dear last stage, and others that come before that is ready."""
    late = draw(st.integers(3, 6))
    stages = (((0, 1),),) * draw(st.integers(1, 3))
    chain = Plan(0, (*stages, ((late, 3),)))
    other = Plan(1, (((late, 2),),))
    return Scenario((chain, *(other,) * draw(st.integers(1, 4))), Slots(1))


@st.composite
def overestimated(draw: st.DrawFn) -> Scenario:
    """Draw an agent whose first stage costs less than was thought, and who then leaves.

    The reference still owes it some of the second, so virtual time is slower for who
    comes afterwards. ``coq/examples/StagesSettledInOne.v`` has it with the proof
    that settling the agent as a whole breaks the bound.
    """
    extra = draw(st.integers(1, 12))
    waits = Plan(0, (((0, 8), (0, 1), (0, 8)),))
    leaves = Plan(3, (((0, 1),), ((4, 2),)), 20, (1 + extra, 11))
    then = Plan(9, (((3, 2),),), 10)
    late = Plan(draw(st.integers(13, 14)), (((draw(st.integers(0, 4)), 2),),))
    return Scenario((waits, leaves, then, late), Peak(8))


PROPERTIES = (
    Property(
        "theorem-b",
        "Nothing starts later, in service, than its fair finish and what is in flight.",
        (
            Family(burst(), theorem_b()),
            Family(late_mice(), theorem_b()),
            Family(scenarios(preempted=False), theorem_b()),
            Family(scenarios(preempted=False, cancelled=True), theorem_b()),
        ),
    ),
    Property(
        "theorem-b-stages",
        "The same stage by stage, of agents of several stages, with a tag for each.",
        (
            Family(staged(), theorem_b(tags="stage")),
            Family(
                scenarios(preempted=False, most_stages=3, most_agents=4),
                theorem_b(tags="stage"),
            ),
        ),
        needs={"tags": "stage"},
    ),
    Property(
        "stages-settled",
        "Who leaves is settled by its last stage; earlier ones keep their predictions.",
        (
            Family(overestimated(), _as_the_reference),
            Family(
                scenarios(
                    preempted=False,
                    most_stages=3,
                    most_agents=5,
                    most_error=4,
                    cancelled=True,
                ),
                _as_the_reference,
            ),
        ),
        needs={"tags": "stage"},
    ),
    Property(
        "theorem-b-predictions",
        "With wrong predictions, later by no more than what was predicted too small.",
        (Family(scenarios(preempted=False, most_error=4), theorem_b()),),
    ),
    Property(
        "theorem-b-preemption",
        "First starts keep the bound where running inferences are sent back.",
        (Family(scenarios(preempted=True), theorem_b()),),
    ),
    Property(
        "no-starvation",
        "However many small agents keep coming, each agent ends within its bound.",
        (Family(streams(), _ends_in_time), Family(late_mice(), _ends_in_time)),
    ),
    *(
        Property(
            f"theorem-b-{name}",
            f"Theorem B with costs counted as {name!r} counts them.",
            (
                Family(
                    st.tuples(st.integers(2, 9), st.integers(1, 4)), _counted_by(name)
                ),
                Family(
                    scenarios(preempted=False, most_agents=5, work=model()),
                    _by_cost(name),
                ),
            ),
            needs={"cost": name},
        )
        for name, model in COST_MODELS.items()
        if name != "kv"
    ),
)
