"""What Hypothesis draws: agents, servers, and luck, all exact, all small.

For tests of a scheduler of your own, any object with the verbs::

    from hypothesis import given
    from justitia.proofs.lines import PolicyLine
    from justitia.proofs.strategies import scenarios

    @given(scenarios(most_stages=3))
    def test_everything_ends(scenario):
        history = scenario.run(PolicyLine(MyPolicy()))
        assert len(history.agent_finishes()) == len(scenario.plans)

Everything shrinks to one agent of one inference (0, 1) with weight 1 that arrives at 0,
on a server of one slot, predicted exactly, with nothing cancelled, paused or preempted.
Every knob has a default; a knob that says ``most`` is the most of something.

Needs Hypothesis: in a clone, ``pip install '.[proofs]'``. In `justitia.proofs` so do
`machine`, `properties` and `verify`, and nothing else.
"""

from collections.abc import Sequence
from fractions import Fraction

from hypothesis import strategies as st

from justitia.proofs.admissions import (
    Admission,
    Lookahead,
    Peak,
    Prompt,
    Slots,
    Whim,
)
from justitia.proofs.plans import Number, Plan, Size, Work, kv_token_time
from justitia.proofs.scenarios import Coins, Scenario, Seeded, Tosses


def weights() -> st.SearchStrategy[Number]:
    """Weights: mostly 1, else a small integer or fraction."""
    return st.one_of(
        st.just(1),
        st.integers(1, 4),
        st.sampled_from([Fraction(1, 2), Fraction(3, 2), Fraction(2, 3)]),
    )


def costs() -> st.SearchStrategy[Number]:
    """Costs of agents, for a policy that is told of no inferences to go with them."""
    return st.one_of(
        st.integers(1, 60), st.fractions(Fraction(1, 8), 40, max_denominator=8)
    )


def errors(most: int = 4) -> st.SearchStrategy[Fraction]:
    """Factors by which a prediction is off: from 1 / `most` to `most`, 1 at first."""
    if most == 1:
        return st.just(Fraction(1))
    factors = {Fraction(1, most), Fraction(most), Fraction(most + 1, 2)}
    factors |= {1 / factor for factor in factors}
    return st.sampled_from([Fraction(1), *sorted(factors)])


def sizes(*, most_prompt: int = 5, most_decode: int = 5) -> st.SearchStrategy[Size]:
    """Inferences (p, d), with p from 0 and d from 1."""
    return st.tuples(st.integers(0, most_prompt), st.integers(1, most_decode))


def stages(
    *,
    most_inferences: int = 3,
    size: st.SearchStrategy[Size] | None = None,
) -> st.SearchStrategy[tuple[Size, ...]]:
    """Stages: some inferences that become ready together."""
    one = sizes() if size is None else size
    return st.lists(one, min_size=1, max_size=most_inferences).map(tuple)


@st.composite
def plans(
    draw: st.DrawFn,
    *,
    last_arrival: int = 12,
    most_stages: int = 1,
    most_inferences: int = 3,
    size: st.SearchStrategy[Size] | None = None,
    weighted: bool = True,
    most_error: int = 1,
    cancelled: bool = False,
    work: Work = kv_token_time,
) -> Plan:
    """Draw one agent.

    Parameters
    ----------
    draw
        Given by Hypothesis.
    last_arrival
        It arrives at one of the steps up to here.
    most_stages, most_inferences
        How many stages, and how many inferences in each, at most.
    size
        Its inferences; `sizes` by default.
    weighted
        Whether weights other than 1 occur.
    most_error
        The prediction of each stage is off by a factor of at most this; 1 is exact.
    cancelled
        Whether some agents are cancelled, most of them while they are there.
    work
        What costs are counted in. Only predictions that are off depend on it.
    """
    arrival = draw(st.integers(0, last_arrival))
    one = stages(most_inferences=most_inferences, size=size)
    drawn = tuple(draw(st.lists(one, min_size=1, max_size=most_stages)))
    weight = draw(weights()) if weighted else 1
    plan = Plan(arrival, drawn, weight)
    predicted: tuple[Number, ...] = ()
    if most_error > 1:
        factors = [draw(errors(most_error)) for _ in drawn]
        if any(factor != 1 for factor in factors):
            real = plan.real_costs(work)
            predicted = tuple(f * c for f, c in zip(factors, real, strict=True))
    gone = None
    if cancelled:
        after = draw(st.one_of(st.none(), st.none(), st.integers(1, 20)))
        gone = None if after is None else arrival + after
    return Plan(arrival, drawn, weight, predicted, gone)


def footprints(agents: Sequence[Plan]) -> list[int]:
    """Return p + d of every inference of some agents."""
    return [p + d for plan in agents for stage in plan.stages for p, d in stage]


@st.composite
def peaks(
    draw: st.DrawFn,
    agents: Sequence[Plan] = (),
    *,
    most_block: int = 4,
    most_slots: int | None = 8,
) -> Peak:
    """Draw a reservation of the peak that any inference of some agents fits in.

    Parameters
    ----------
    draw
        Given by Hypothesis.
    agents
        Who is to fit.
    most_block
        Blocks are of up to so many tokens.
    most_slots
        Slots are limited to some number up to this, or not. None: never limited.
    """
    block = draw(st.integers(1, most_block))
    least = -(-max(footprints(agents), default=1) // block) * block
    capacity = least + draw(st.integers(0, 2 * least + 12))
    slots = None
    if most_slots is not None:
        slots = draw(st.one_of(st.none(), st.integers(1, most_slots)))
    return Peak(capacity, block, slots)


def admissions(agents: Sequence[Plan] = ()) -> st.SearchStrategy[Admission]:
    """Admission rules of every sort, of a size that some agents fill.

    `Prompt` preempts when memory overflows; the others never do.
    """
    least = max(footprints(agents), default=1)
    capacity = st.integers(least, 3 * least + 12)
    kinds: list[st.SearchStrategy[Admission]] = [
        st.builds(Slots, st.integers(1, 4)),
        peaks(agents),
        st.builds(Lookahead, capacity),
        st.builds(Prompt, capacity),
        st.builds(Whim, st.integers(0, 10**6), st.integers(2, 4)),
    ]
    return st.one_of(kinds)


def coins(*, most: int = 60) -> st.SearchStrategy[Coins]:
    """Coins: never, at a few tosses up to `most`, or about once in a few.

    None says yes for ever, so whatever is paused or preempted gets done in the end.
    """
    few = st.frozensets(st.integers(1, most), max_size=12).map(Tosses)
    often = st.builds(Seeded, st.integers(0, 10**6), st.integers(2, 5))
    return st.one_of(st.just(Tosses()), few, often)


def chunks() -> st.SearchStrategy[int | None]:
    """Limits on the prompt tokens of an inference in one step, or none."""
    return st.one_of(st.none(), st.integers(1, 6))


@st.composite
def scenarios(
    draw: st.DrawFn,
    *,
    most_agents: int = 6,
    last_arrival: int = 12,
    most_stages: int = 1,
    most_inferences: int = 3,
    size: st.SearchStrategy[Size] | None = None,
    weighted: bool = True,
    most_error: int = 1,
    cancelled: bool = False,
    chunked: bool = True,
    paused: bool = True,
    preempted: bool = True,
    admission: st.SearchStrategy[Admission] | None = None,
    work: Work = kv_token_time,
) -> Scenario:
    """Draw agents and a server for them.

    Parameters
    ----------
    draw
        Given by Hypothesis.
    most_agents
        How many agents at most.
    last_arrival, most_stages, most_inferences, size, weighted, most_error, cancelled
        See `plans`.
    chunked
        Whether prompts may be computed in chunks. Without, an inference (p, d) runs
        for d steps and no longer, unless it is paused or preempted.
    paused
        Whether running inferences make no progress in some steps.
    preempted
        Whether running inferences are sent back to the line. Without, `Prompt` is not
        drawn either.
    admission
        The rule; by default `admissions` for the agents drawn.
    work
        What costs are counted in.
    """
    one = plans(
        last_arrival=last_arrival,
        most_stages=most_stages,
        most_inferences=most_inferences,
        size=size,
        weighted=weighted,
        most_error=most_error,
        cancelled=cancelled,
        work=work,
    )
    agents = tuple(draw(st.lists(one, min_size=1, max_size=most_agents)))
    rule = admissions(agents) if admission is None else admission
    if not preempted:
        rule = rule.filter(lambda drawn: not isinstance(drawn, Prompt))
    return Scenario(
        agents,
        draw(rule),
        draw(chunks()) if chunked else None,
        draw(coins()) if paused else Tosses(),
        draw(coins()) if preempted else Tosses(),
    )
