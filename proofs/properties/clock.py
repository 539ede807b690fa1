"""What a fair order asks of virtual time, seen through the line alone.

Each property has a family of its own in which the mistake that it is about puts two
agents the wrong way round, whatever the numbers; see `Race`. Where the object has
`tag`, tags are compared as well, exactly.
"""

from collections.abc import Callable
from fractions import Fraction
from math import isqrt

from hypothesis import strategies as st

from justitia.proofs.plans import Number, Size, kv_token_time
from justitia.proofs.properties.base import Family, Property, expect
from justitia.proofs.properties.beside import BIG, Beside, Race, between
from justitia.proofs.properties.walks import Event, Walk, histories, pick
from justitia.proofs.recorder import Session
from justitia.proofs.strategies import weights

_Mistake = Callable[[Fraction, Fraction, Fraction], Fraction]

# The order, and that it stays --------------------------------------------------------


class _WalkBeside(Walk):
    """A walk that tells the fair reference, too, and never lets the last agent go."""

    def __init__(self, beside: Beside) -> None:
        super().__init__(beside.policy)
        self.beside = beside

    def _join(self, event: Event) -> bool:
        names = [n for n in ("d", "b", "e", "a") if n not in self.policy.agents]
        if names:
            self.beside.join(names[0], event.cost, *event.sizes, weight=event.weight)
        return bool(names)

    def _put(self, name: str, size: Size) -> None:
        self.beside.submit(name, *size)

    def _serve(self, event: Event) -> bool:
        given = [
            (one, event.tokens[number % len(event.tokens)])
            for number, one in enumerate(self.policy.running)
        ]
        self.beside.step(
            {one: tokens for one, tokens in given if tokens},
            {one: 1 for one, tokens in given if not tokens},
        )
        return bool(given)

    def _leave(self, event: Event) -> bool:
        here = list(self.policy.agents)
        if len(here) > 1:
            self.beside.leave(pick(here, event.who))
        return len(here) > 1

    def _revise(self, event: Event) -> bool:
        self.beside.revise(pick(list(self.policy.agents), event.who), event.cost)
        return True


def _fair_order(session: Session, history: list[Event]) -> None:
    beside = Beside(session.policy())
    for _ in _WalkBeside(beside).tell_all(history):
        beside.check()


def _fair_pair(session: Session, case: tuple[int, int, int]) -> None:
    """Let a small agent come after a large one, and then a larger one."""
    large, small, tokens = case
    race = Race(session.policy())
    worker = race.run("worker", BIG, (0, 9))
    race.join("large", large + small)
    race.step({worker: tokens})
    race.join("small", small)
    race.join("larger", large + small + 1)
    race.check()


def _tags_stay(session: Session, case: tuple[int, int, bool]) -> None:
    """Two agents whose costs order them otherwise than their tags; then others come."""
    half, more, waits = case
    work = 2 * half
    beside = Beside(session.policy())
    (one,) = beside.join("worker", BIG, (work - 1, 9))
    beside.policy.start(one)
    beside.join("first", work + more)
    beside.step({one: 1})
    # The level is now half the work; so the tags are in this order, the costs not.
    beside.join("second", half + more + 1)
    before, tags = beside.policy.line(), beside.policy.tags()
    if waits:
        beside.step({one: 1})
    for name in ("third", "fourth"):
        beside.join(name, BIG)
        line = [i for i in beside.policy.line() if i in before]
        expect(
            line == before,
            f"{name} came, and of those before it the line {before} is now {line}",
        )
        now = {n: tag for n, tag in beside.policy.tags().items() if n in tags}
        expect(now == tags, f"{name} came, and the tags {tags} are now {now}")


def _tags_stay_anyhow(session: Session, history: list[Event]) -> None:
    policy = session.policy()
    walk = Walk(policy)
    before, tags = policy.line(), policy.tags()
    for event in walk.tell_all(history):
        if event.what == "join":
            line = [one for one in policy.line() if one in before]
            expect(line == before, f"an arrival made the line {before} into {line}")
            now = {name: tag for name, tag in policy.tags().items() if name in tags}
            expect(now == tags, f"an arrival made the tags {tags} into {now}")
        before, tags = policy.line(), policy.tags()


def _tag_at_arrival(session: Session, case: tuple[int, int, bool]) -> None:
    """Let an agent arrive, serve another, and only then let it submit."""
    cost, tokens, first = case
    beside = Beside(session.policy())
    (worker,) = beside.join("worker", BIG, (0, 99))
    beside.policy.start(worker)
    beside.arrive("early", BIG + cost)
    beside.step({worker: tokens})
    beside.join("late", between(BIG + cost - beside.level, Fraction(BIG + cost)))
    if first:
        beside.step({worker: 1})
    beside.submit("early")
    beside.check()


# Who gives way ------------------------------------------------------------------------


def _give_way(session: Session, case: tuple[list[int], list[int]]) -> None:
    """Start agents of some costs, in some order."""
    costs, order = case
    beside = Beside(session.policy())
    ids = [beside.join(f"a{n}", cost, (1, 2))[0] for n, cost in enumerate(costs)]
    for number in order:
        if number < len(ids):
            beside.policy.start(ids[number])
    beside.check_victims()


def _give_way_anyhow(session: Session, history: list[Event]) -> None:
    beside = Beside(session.policy())
    for _ in _WalkBeside(beside).tell_all(history):
        beside.check_victims()


# How fast virtual time goes ----------------------------------------------------------

sizes_of_small = st.lists(st.integers(1, 4), min_size=1, max_size=3)


def _departures(session: Session, case: tuple[list[int], int]) -> None:
    """Serve, at once, so much that the reference finishes all the small agents."""
    small, more = case
    race = Race(session.policy())
    active = len(small) + 2
    work = active * max(small) + more
    worker = race.run("worker", BIG, (work - 1, 9))
    for number, cost in enumerate(small):
        race.join(f"small{number}", cost)
    race.step({worker: 1})
    race.finish(wrong=Fraction(work, active))


def _finished_there(session: Session, case: tuple[list[int], int, int]) -> None:
    """Let the reference finish agents that have started, and run on."""
    small, first, second = case
    race = Race(session.policy())
    active = len(small) + 2
    p = active * max(small) + first - 1
    worker = race.run("worker", BIG, (p, 9))
    for number, cost in enumerate(small):
        race.run(f"small{number}", cost, (0, 9))
    work = race.step({worker: 1})
    for _ in range(second):
        work += race.step({worker: 1})
    race.finish(wrong=work / active)


def _ended(session: Session, case: tuple[Size, int, int]) -> None:
    """Let an agent get all its work before the reference gives it that."""
    size, more, extra = case
    race = Race(session.policy())
    worker = race.run("worker", BIG, (0, 99))
    brief = race.run("brief", kv_token_time(*size) + extra, size)
    race.step({brief: size[1]})
    if not extra:  # else it is cancelled before its end
        race.policy.finish(brief)
    wrong = race.level
    race.leave("brief")
    work = race.step({worker: more})
    race.finish(wrong=wrong + work / 2)  # as if it had been dropped


def _cancelled(session: Session, case: tuple[Size, int, int]) -> None:
    """Cancel an agent early, and serve until the reference is through with it."""
    size, extra, more = case
    got = kv_token_time(*size)
    race = Race(session.policy())
    worker = race.run("worker", BIG + 3 * got + extra, (3 * got + more, 9))
    brief = race.run("brief", got + extra, (size[0], size[1] + 1))
    race.step({brief: size[1]})
    race.leave("brief")
    work = got + race.step({worker: 1})
    until = min(work, Fraction(3 * (got + extra)))
    race.finish(wrong=until / 3 + (work - until) / 2)  # as if it were owed all


def _settled(
    session: Session, case: tuple[Size, Number, Fraction], mistake: _Mistake
) -> None:
    """Let an agent of some weight leave, and serve until the reference is through."""
    size, weight, factor = case
    got = Fraction(kv_token_time(*size))
    cost = got * factor
    race = Race(session.policy())
    worker = race.run("worker", 9 * BIG, (0, 99))
    whole = cost.numerator if cost.denominator == 1 else cost
    brief = race.run("brief", whole, size, weight=weight)
    race.step({brief: size[1]})
    race.policy.finish(brief)
    left_at = race.level
    race.leave("brief")
    share = 2 + Fraction(weight)
    tags = [min(got, cost) / Fraction(weight), mistake(got, cost, Fraction(weight))]
    until = share * max(tags) - got
    work = got + race.step({worker: isqrt(max(0, int(2 * until))) + 2})
    nothing = Fraction(0)
    then = share * max(left_at, tags[1])  # delivered in all when it goes, by mistake
    race.finish(wrong=min(work, then) / share + max(nothing, work - then) / 2)


def _unweighted(got: Fraction, cost: Fraction, weight: Fraction) -> Fraction:
    return cost / weight - (cost - got)


def _beyond(got: Fraction, cost: Fraction, weight: Fraction) -> Fraction:
    return got / weight


def _settled_unweighted(session: Session, case: tuple[Size, Number, Fraction]) -> None:
    """Let an agent of a weight leave that got less than was predicted."""
    _settled(session, case, _unweighted)


def _settled_beyond(session: Session, case: tuple[Size, Number, Fraction]) -> None:
    """Let an agent leave that got more than was predicted, and is still active."""
    _settled(session, case, _beyond)


def _cancelled_unserved(session: Session, case: tuple[int, int]) -> None:
    """Cancel an agent that has got nothing."""
    cost, tokens = case
    race = Race(session.policy())
    worker = race.run("worker", BIG, (0, 99))
    race.join("brief", cost + 50)
    race.leave("brief")
    race.finish(wrong=race.step({worker: tokens}) / 3)


# What is service ----------------------------------------------------------------------


def _prefill(session: Session, case: tuple[list[int], int, int]) -> None:
    """Compute a prompt in chunks, and hold it for some steps."""
    chunks, held, tokens = case
    race = Race(session.policy())
    prompt = sum(chunks)
    worker = race.run("worker", BIG, (prompt, 9))
    other = race.run("other", BIG, (0, 99))
    for chunk in chunks:
        race.step({}, {worker: chunk})
    for _ in range(held):
        race.step({other: 1})
    for _ in range(tokens):
        race.step({worker: 1})
    race.finish(wrong=race.level + Fraction(prompt, 3))


def _recompute(session: Session, case: tuple[int, int, int]) -> None:
    """Take an inference back, and compute again what it had."""
    prompt, tokens, more = case
    race = Race(session.policy())
    worker = race.run("worker", BIG, (prompt, 9))
    got = race.step({worker: tokens}, {worker: prompt})
    race.policy.requeue(worker)
    race.policy.start(worker)
    race.step({}, {worker: prompt + tokens})
    for _ in range(more):
        race.step({worker: 1})
    race.finish(wrong=race.level + min(got, Fraction(prompt + tokens)) / 2)


def _standstill(session: Session, case: tuple[int, int]) -> None:
    """Let an engine take time and deliver nothing."""
    tokens, pauses = case
    race = Race(session.policy())
    worker = race.run("worker", BIG, (0, 99))
    for _ in range(tokens):
        race.step({worker: 1})
        race.policy.advance(1)
    for _ in range(pauses):
        race.step({})
        race.policy.advance(1)
    # One token-step a second would be a slow machine.
    race.finish(wrong=race.level + Fraction(pauses, 2))


def _no_time(session: Session, case: tuple[int, int]) -> None:
    """Deliver much in no time."""
    prompt, tokens = case
    race = Race(session.policy())
    worker = race.run("worker", BIG, (prompt, 9))
    race.step({worker: tokens})
    race.finish(wrong=0)


def _never_back(session: Session, case: tuple[int, int, int]) -> None:
    """Let the reference run out of agents, while one still waits here."""
    work, cost, small = case
    beside = Beside(session.policy())
    (worker,) = beside.join("worker", 1, (work + cost, 9))
    beside.policy.start(worker)
    beside.join("old", cost + small)
    beside.step({worker: 2})  # more than both ask for
    beside.join("new", small)
    beside.check()


# Weights and revisions ----------------------------------------------------------------


def _weighted_tags(session: Session, case: tuple[int, int, Number, bool]) -> None:
    """Two agents, the dearer of which has so much more weight that it is first."""
    cost, more, weight, late = case
    beside = Beside(session.policy())
    light, heavy = ("light", cost, 1), ("heavy", cost + more, 0)
    for name, asked, one in (heavy, light) if late else (light, heavy):
        factor = one or 1 + Fraction(more, cost) + Fraction(weight)
        whole = factor.numerator if factor.denominator == 1 else factor
        beside.join(name, asked, weight=whole)
    beside.check()


def _weighted_rate(session: Session, case: tuple[int, int, int]) -> None:
    """Serve agents of which one has more weight."""
    weight, prompt, tokens = case
    race = Race(session.policy())
    worker = race.run("worker", 50 * BIG, (prompt, 9), weight=1 + weight)
    work = race.step({worker: tokens})
    race.finish(wrong=work / 2)


def _revised(session: Session, case: tuple[int, int, int, int]) -> None:
    """Change predictions so that the order is another."""
    first, second, tokens, back = case
    race = Race(session.policy())
    worker = race.run("worker", BIG, (0, 99))
    race.join("a", first)
    race.join("b", first + second)
    race.step({worker: tokens})
    race.revise("a", first + 2 * second)  # behind b
    race.check()
    race.revise("b", first + 3 * second)  # and b behind it
    race.check()
    if back:
        race.revise("b", back)  # to less than it has had, it may be
        race.check()
        race.step({worker: 1})
    race.join("c", first + second)
    race.check()


def _revised_late(session: Session, case: tuple[int, int, int]) -> None:
    """Let an agent that the reference has finished turn out to want more."""
    cost, more, tokens = case
    race = Race(session.policy())
    worker = race.run("worker", BIG, (2 + 3 * cost, 9))
    race.join("a", cost)
    race.step({worker: tokens})  # the reference has finished a
    race.join("b", more)
    race.revise("a", cost + more + 1)  # from now on, so behind b
    race.check()
    race.step({worker: 1})
    race.join("c", more)
    race.check()


tokens = st.integers(1, 4)
prompts = st.integers(2, 9)
few = st.tuples(st.integers(0, 3), st.integers(2, 3))
over = [Fraction(2), Fraction(3, 2), Fraction(3)]  # what was predicted, to what came
short = st.sampled_from([Fraction(1, 2), Fraction(2, 3), Fraction(3, 4)])
fair = histories(
    "join", "submit", "serve", "serve", "start", "requeue", "finish", "leave", "revise"
)
PROPERTIES = (
    Property(
        "fair-order",
        "The line is in order of the fair reference's finishes.",
        (
            Family(st.tuples(prompts, tokens, st.integers(1, 2)), _fair_pair),
            Family(fair, _fair_order),
        ),
    ),
    Property(
        "tags-stay",
        "No later arrival changes a tag, or the order of those who came before.",
        (
            Family(st.tuples(prompts, tokens, st.booleans()), _tags_stay),
            Family(
                histories("join", "join", "submit", "serve", "start", "finish"),
                _tags_stay_anyhow,
            ),
        ),
    ),
    Property(
        "tag-at-arrival",
        "An agent has its place from when it arrived, not from its first inference.",
        (Family(st.tuples(prompts, tokens, st.booleans()), _tag_at_arrival),),
    ),
    Property(
        "victims-reversed",
        "Of those who run the last in the fair order gives way first.",
        (
            Family(
                st.tuples(
                    st.lists(st.integers(1, 5), min_size=2, max_size=4),
                    st.permutations(range(4)),
                ),
                _give_way,
            ),
            Family(fair, _give_way_anyhow),
        ),
    ),
    Property(
        "rate-at-departures",
        "Where one step crosses several finishes, the rate changes at each of them.",
        (Family(st.tuples(sizes_of_small, prompts), _departures),),
    ),
    Property(
        "active-in-reference",
        "An agent that the fair reference has finished does not count, though it runs.",
        (Family(st.tuples(sizes_of_small, tokens, tokens), _finished_there),),
    ),
    Property(
        "ended-stays",
        "Who ended, or was cancelled, stays in the reference for what it was given.",
        (
            Family(
                st.tuples(
                    st.tuples(st.integers(1, 5), st.integers(2, 4)),
                    st.integers(1, 2),
                    st.integers(0, 2),
                ),
                _ended,
            ),
            Family(
                st.tuples(
                    st.tuples(st.integers(0, 5), tokens),
                    st.integers(5, 20),
                    st.integers(10, 20),
                ),
                _cancelled,
            ),
            Family(st.tuples(prompts, tokens), _cancelled_unserved),
            Family(
                st.tuples(
                    few, st.sampled_from([2, 3, Fraction(1, 2)]), st.sampled_from(over)
                ),
                _settled_unweighted,
            ),
            Family(
                st.tuples(few, st.sampled_from([1, Fraction(1, 2)]), short),
                _settled_beyond,
            ),
        ),
    ),
    Property(
        "prefill-is-nothing",
        "A step that only computes prompts, holds or recomputes them delivers nothing.",
        (
            Family(
                st.tuples(
                    st.lists(prompts, min_size=1, max_size=3),
                    st.integers(0, 3),
                    st.integers(0, 2),
                ),
                _prefill,
            ),
            Family(st.tuples(prompts, tokens, st.integers(0, 2)), _recompute),
        ),
    ),
    Property(
        "delivered-not-nominal",
        "Virtual time follows what is delivered: not steps, nor seconds at some rate.",
        (
            Family(st.tuples(st.integers(0, 3), tokens), _standstill),
            Family(st.tuples(prompts, tokens), _no_time),
        ),
    ),
    Property(
        "never-back",
        "Virtual time stands still while the fair reference is empty; it never resets.",
        (Family(st.tuples(prompts, prompts, tokens), _never_back),),
    ),
    Property(
        "weights",
        "An agent's share, and its tag, are in proportion to its weight.",
        (
            Family(
                st.tuples(prompts, tokens, weights(), st.booleans()), _weighted_tags
            ),
            Family(st.tuples(tokens, prompts, tokens), _weighted_rate),
        ),
    ),
    Property(
        "revise",
        "A revised cost moves the agent's own tag by the difference, and no other.",
        (
            Family(
                st.tuples(prompts, tokens, st.integers(1, 2), st.integers(0, 4)),
                _revised,
            ),
            Family(st.tuples(prompts, prompts, tokens), _revised_late),
        ),
    ),
)
