"""What any scheduler should keep, whatever its order."""

import gc
from collections.abc import Iterator
from fractions import Fraction
from types import (
    BuiltinFunctionType,
    FunctionType,
    MethodType,
    ModuleType,
)

from hypothesis import strategies as st

from justitia.policy import Agent, Inference, Step
from justitia.proofs.properties.base import Family, Property, expect
from justitia.proofs.properties.walks import (
    ALL,
    NAMES,
    Event,
    Walk,
    histories,
    lives,
)
from justitia.proofs.recorder import Recorder, Session, id_of

History = list[Event]


# Who is there ---------------------------------------------------------------------


def _total(session: Session, history: History) -> None:
    policy = session.policy()
    for _ in Walk(policy).tell_all(history):
        _look(policy)


def _total_then(session: Session, history: History) -> None:
    policy = session.policy()
    for _ in Walk(policy).tell_all(history):
        pass
    _look(policy)


def _look(policy: Recorder) -> None:
    """Ask for the line and the running, and compare with the books."""
    line = policy.line()
    running = [one.id for one in policy.victims()]
    for found, books, where in (
        (line, policy.waiting, "in order()"),
        (running, policy.running, "in victims()"),
    ):
        twice = sorted({one for one in found if found.count(one) > 1})
        lost = [one for one in books if one not in found]
        more = [one for one in found if one not in books]
        expect(not twice, f"{twice} are twice {where}")
        expect(not lost, f"{lost} are lost: not {where}")
        expect(not more, f"{more} are {where}, and should not be")
    head = policy.peek()
    first = line[0] if line else None
    expect(
        (None if head is None else head.id) == first,
        f"peek() is {head and head.id!r}, and order() begins with {first!r}",
    )


def _order_is_pops(session: Session, history: History) -> None:
    policy = session.policy()
    for _ in Walk(policy).tell_all(history):
        pass
    line, popped = policy.line(), list[str | None]()
    for expected in line:
        head = policy.peek()
        expect(head is not None, f"the line ends after {popped}, and was {line}")
        started = policy.pop()
        popped.append(started.id if started else None)
        expect(
            head is not None and popped[-1] == head.id == expected,
            f"repeated pop gave {popped}, and order() was {line}",
        )


def _start_returns(session: Session, history: History) -> None:
    policy = session.policy()
    for event in Walk(policy).tell_all(history):
        if event.what == "start":
            one = list(policy.running)[-1]
            expect(
                id_of(policy.started) == one,
                f"start({one!r}) answered {policy.started!r}, and not the inference",
            )


# Steps --------------------------------------------------------------------------------


def _passes_over(session: Session, history: History) -> None:
    """Tell of steps of who does not run; a twin is not told of them."""
    policy, twin = session.policy(), session.unseen()
    strangers = ["nobody/0"]
    for _ in Walk(policy, twin).tell_all(history):
        strangers += [one for one in _live(policy) if one not in strangers]
        step = {one: 1 for one in strangers if one not in policy.running}
        policy.serve(Step(step, dict(step)))
    _look(policy)
    _alike(policy, twin, "that was not told of who does not run")


def _served_stranger(session: Session, case: tuple[str, int]) -> None:
    """Tell of a step in which one is named that does not run; a twin is not told.

    A newcomer is before the marker if that one was served, and else behind.
    """
    stranger, tokens = case
    policy, twin = session.policy(), session.unseen()
    for one in (policy, twin):
        one.arrive(Agent("mark", 1000))
        one.submit(Inference("mark/0", "mark", 0, 9))
        one.arrive(Agent("worker", 100))
        for number in range(2):
            one.submit(Inference(f"worker/{number}", "worker", 0, 99))
            one.start(f"worker/{number}")
        one.finish("worker/1")
    policy.serve(Step({}, {"worker/0": 1, stranger: tokens}))
    twin.serve(Step({}, {"worker/0": 1}))
    for one in (policy, twin):
        one.arrive(Agent("new", Fraction(3997, 4)))  # a level of 3/4 decides
        one.submit(Inference("new/0", "new", 0, 1))
    _alike(policy, twin, f"that was not told of {stranger}")


def _step_stays(session: Session, history: History) -> None:
    """Look at the steps that were told of afterwards."""
    policy = session.policy()
    walk = Walk(policy)
    for event in history:
        if event.what != "serve":
            walk.tell(event)
            continue
        decode = dict.fromkeys(policy.running, event.tokens[0])
        step = Step(dict.fromkeys(decode, 1), dict(decode))
        policy.serve(step)
        kept = step.prefill == dict.fromkeys(decode, 1) and step.decode == decode
        expect(kept, f"of a step of {decode} the object left {dict(step.decode)}")


# Staying and coming back ----------------------------------------------------------


def _head_stays(session: Session, history: History) -> None:
    policy = session.policy()
    for _ in Walk(policy).tell_all(history):
        _refused(policy)


def _refused(policy: Recorder) -> None:
    head = policy.peek()
    if head is None:
        return
    before = policy.line()
    policy.refuse(head.id)
    after = policy.peek()
    expect(
        after is not None and after.id == head.id,
        f"{head.id!r} was refused, and now the head is {after and after.id!r}",
    )
    expect(
        (line := policy.line()) == before,
        f"{head.id!r} was refused, and the line {before} is now {line}",
    )


def _large_head(session: Session, case: tuple[int, int, int]) -> None:
    """Refuse a large head again and again, with small ones behind it."""
    size, small, times = case
    policy = session.policy()
    policy.arrive(Agent("a", 1))
    policy.submit(Inference("a/0", "a", size, 1))
    for number in range(small):
        policy.arrive(Agent(f"b{number}", 100))
        policy.submit(Inference(f"b{number}/0", f"b{number}", 0, 1))
    for _ in range(times):
        _refused(policy)


def _comes_back(session: Session, case: tuple[History, int]) -> None:
    """Start some and take them back before a step: no trace of it is left."""
    history, some = case
    policy = session.policy()
    for _ in Walk(policy).tell_all(history):
        pass
    before, started = policy.line(), []
    for _ in range(some):
        if (head := policy.peek()) is not None:
            policy.start(head.id)
            started.append(head.id)
    for one in started:
        policy.requeue(one)
    line = policy.line()
    expect(
        line == before,
        f"{started} were started and taken back, and the line {before} is now {line}",
    )


def _charged_once(session: Session, case: tuple[History, History]) -> None:
    """Take back and start again what was started last: a twin that does not agrees."""
    history, after = case
    policy, twin = session.policy(), session.unseen()
    walk = Walk(policy, twin)
    for event in walk.tell_all(history):
        last = walk.last_started
        if event.what == "serve" and last is not None and last in policy.running:
            policy.requeue(last)
            policy.start(last)
            # It computes its prompt again, and what it has produced.
            again = Step({last: policy.running[last].prompt_tokens + 1})
            policy.serve(again)
            twin.serve(again)
    for _ in walk.tell_all(after):
        pass
    _alike(policy, twin, "that did not take back what it started")


def _alike(policy: Recorder, twin: Recorder, who: str) -> None:
    """Compare all that two show."""
    ours, other = policy.line(), twin.line()
    expect(ours == other, f"the line is {ours}, and that of a twin {who} {other}")
    mine, others = policy.tags(), twin.tags()
    expect(mine == others, f"the tags are {mine}, and those of a twin {who} {others}")
    gone = [one.id for one in policy.victims()]
    others_gone = [one.id for one in twin.victims()]
    expect(
        gone == others_gone,
        f"the victims are {gone}, and those of a twin {who} {others_gone}",
    )


# What is not there, or must not be --------------------------------------------------


def _unknown_ids(session: Session, history: History) -> None:
    policy, twin = session.policy(), session.unseen()
    gone: list[tuple[str, str]] = [("finish", "nobody/0"), ("leave", "nobody")]
    walk = Walk(policy, twin)
    for event in walk.tell_all(history):
        for verb, one in gone:
            there = policy.agents if verb == "leave" else _live(policy)
            if one not in there:
                expect(
                    not getattr(policy, verb)(one),
                    f"{verb}({one!r}) is said to be True, and it was not there",
                )
        if event.what == "join":
            name = list(policy.agents)[-1]
            gone += [("finish", f"{name}/0"), ("leave", name)]
    _alike(policy, twin, "that was not told of ids that are not there")
    for verb, one in [("finish", one) for one in _live(policy)] + [
        ("leave", name) for name in policy.agents
    ]:
        said = getattr(policy, verb)(one)
        expect(said, f"{verb}({one!r}) is said to be False, and it was there")
    _look(policy)


def _live(policy: Recorder) -> dict[str, Inference]:
    return {**policy.waiting, **policy.running}


def _bad_input(session: Session, case: tuple[History, int]) -> None:
    history, which = case
    policy, twin = session.policy(), session.unseen()
    for _ in Walk(policy, twin).tell_all(history):
        for number, (verb, argument, why) in enumerate(_wrong(policy)):
            if which not in (number, _ANY):
                continue
            expect(
                policy.is_refused(verb, *argument),
                f"{verb} {why} was not refused with a PolicyError",
            )
    _look(policy)
    _alike(policy, twin, "that was not told of what was refused")


_ANY = -1
"""Stands for every call in `_wrong`; any other number for one of them."""


def _wrong(policy: Recorder) -> Iterator[tuple[str, tuple[object, ...], str]]:
    """Yield calls that must be refused, each with what is wrong about it."""
    yield "submit", (Inference("x/0", "x", 0, 1),), "of an agent that is not there"
    yield "start", ("x/0",), "of an inference that is not there"
    yield "requeue", ("x/0",), "of an inference that is not there"
    yield "revise", ("x", 1), "of an agent that is not there"
    for one in list(policy.agents)[:1]:
        yield "arrive", (Agent(one, 7),), "of an agent that is there already"
    for one in list(policy.waiting)[:1]:
        again = Inference(one, policy.waiting[one].agent, 0, 1)
        yield "submit", (again,), "of an inference that is waiting already"
        yield "requeue", (one,), "of an inference that is not running"
    for one in list(policy.running)[:1]:
        again = Inference(one, policy.running[one].agent, 0, 1)
        yield "submit", (again,), "of an inference that is running"
        yield "start", (one,), "of an inference that is running"


# The same again -----------------------------------------------------------------------


def _deterministic(session: Session, history: History) -> None:
    policy, twin = session.policy(), session.unseen()
    for _ in Walk(policy, twin, backwards=True).tell_all(history):
        _alike(policy, twin, "that was told the same")


def _served_at_once(session: Session, case: tuple[int, int]) -> None:
    """Tell two of steps in which several agents are served, in opposite orders."""
    agents, steps = case
    policy, twin = session.policy(), session.unseen()
    names = NAMES[:agents]
    for one in (policy, twin):
        for name in names:
            one.arrive(Agent(name, 10))
            for number in range(2):
                one.submit(Inference(f"{name}/{number}", name, 1, 5))
        for name in names:
            one.start(f"{name}/0")
    for _ in range(steps):
        policy.serve(Step({}, {f"{name}/0": 1 for name in names}))
        twin.serve(Step({}, {f"{name}/0": 1 for name in names[::-1]}))
        _alike(policy, twin, "that was told the same in another order")


def _equals(session: Session, case: tuple[list[int], int, int]) -> None:
    """Let agents that are alike arrive, their names in any order."""
    order, runs, cost = case
    policy = session.policy()
    names = [NAMES[number] for number in order]
    for name in names:
        policy.arrive(Agent(name, cost))
    for name in names:
        for number in range(runs):
            policy.submit(Inference(f"{name}/{number}", name, 1, 1))
    line = [one.agent for one in policy.order()]
    first = list(dict.fromkeys(line))
    expect(
        first == names,
        f"agents that are alike came as {names}, and stand in line as {first}",
    )


def _shuffled(order: list[int]) -> bool:
    names = [NAMES[number] for number in order]
    return names != sorted(names)


def _in_one_agent(session: Session, order: list[int]) -> None:
    """Let inferences of one agent that are alike be submitted, with any ids."""
    policy = session.policy()
    policy.arrive(Agent("a", 10))
    ids = [f"a/{number}" for number in order]
    for one in ids:
        policy.submit(Inference(one, "a", 1, 1))
    line = policy.line()
    expect(line == ids, f"inferences that are alike came as {ids}, and stand as {line}")


# Nothing left, nothing out of order ---------------------------------------------------


def _no_leak(session: Session, history: History) -> None:
    """Let everybody end and leave, and one more come and go; then look for the ids."""
    policy = session.policy()
    names = [f"agent {name}" for name in NAMES]  # no words of somebody's settings
    walk, seen = Walk(policy, names=names), set[str]()
    for _ in walk.tell_all(history):
        seen |= {*policy.agents, *_live(policy)}
    for one in list(_live(policy)):
        policy.finish(one)
    for name in list(policy.agents):
        policy.leave(name)
    policy.arrive(Agent("the last", 3))
    policy.submit(Inference("the last/0", "the last", 1, 2))
    policy.pop()
    policy.serve(Step({}, {"the last/0": 2}))
    policy.finish("the last/0")
    policy.leave("the last")
    left = sorted(_strings(policy.wrapped) & seen)
    expect(not left, f"everybody has left, and {left} are still in the object")


def _strings(root: object) -> set[str]:
    """Return the strings that an object holds, itself, in its class, or through others.

    Neither modules nor what functions can see are looked into, but what they enclose.
    """
    found: set[str] = set()
    seen: set[int] = set()
    todo: list[object] = [root]
    for kind in type(root).__mro__:
        todo += [value for name, value in vars(kind).items() if name[:2] != "__"]
    while todo:
        item = todo.pop()
        if id(item) in seen:
            continue
        seen.add(id(item))
        if isinstance(item, str):
            found.add(item)
        elif isinstance(item, dict):  # of which gc does not tell keys that are strings
            todo += [*dict.keys(item), *dict.values(item), *gc.get_referents(item)]
        elif isinstance(item, FunctionType):
            todo += [*(item.__closure__ or ()), *(item.__defaults__ or ())]
        elif isinstance(item, MethodType):
            todo += [item.__self__, item.__func__]
        elif not isinstance(item, type | ModuleType | BuiltinFunctionType):
            names = _attributes(item)
            seen.add(id(names))  # what attributes are called is nobody's id
            todo += [*names.values(), *gc.get_referents(item)]
    return found


def _attributes(item: object) -> dict[str, object]:
    try:
        names = object.__getattribute__(item, "__dict__")
    except AttributeError:
        return {}
    return names if isinstance(names, dict) else {}


def _checks(session: Session, history: History) -> None:
    policy = session.policy()
    policy._check()
    for _ in Walk(policy).tell_all(history):
        policy._check()


anything = histories(*ALL)
lived = lives()
wrongs = st.sampled_from([*range(9), *[_ANY] * 9])  # one at a time when it shrinks

PROPERTIES = (
    Property(
        "total",
        "All that was submitted and has not ended is in order() or in victims(), once.",
        (Family(anything, _total), Family(lived, _total_then)),
    ),
    Property(
        "start-returns",
        "start answers with the inference that it starts.",
        (Family(anything, _start_returns),),
    ),
    Property(
        "steps-pass-over",
        "Ids in a step that do not run are passed over; the step stays as it is.",
        (
            Family(
                st.tuples(
                    st.sampled_from(["mark/0", "worker/1", "nobody/0"]),
                    st.integers(1, 4),
                ),
                _served_stranger,
            ),
            Family(histories("start", "serve", most=6), _step_stays),
            Family(anything, _passes_over),
        ),
    ),
    Property(
        "order-is-pops",
        "order() is what repeated pop gives, and peek() is its head.",
        (Family(anything, _order_is_pops), Family(lived, _order_is_pops)),
    ),
    Property(
        "head-stays",
        "An inference that is refused stays the head: nothing is filled in past it.",
        (
            Family(
                st.tuples(st.integers(1, 9), st.integers(1, 3), st.integers(1, 3)),
                _large_head,
            ),
            Family(anything, _head_stays),
        ),
    ),
    Property(
        "requeue-returns",
        "What is taken back returns to its place, and nothing is charged twice.",
        (
            Family(st.tuples(anything, st.integers(1, 3)), _comes_back),
            Family(
                st.tuples(
                    histories("start", "serve", "serve", most=6),
                    histories("join", "start", most=4),
                ),
                _charged_once,
            ),
        ),
    ),
    Property(
        "unknown-ids",
        "finish and leave return whether the id was there, and change nothing if not.",
        (Family(anything, _unknown_ids), Family(lived, _unknown_ids)),
    ),
    Property(
        "bad-input",
        "A wrong state, a duplicate, an unknown agent are refused and change nothing.",
        (
            Family(st.tuples(anything, wrongs), _bad_input),
            Family(st.tuples(lived, wrongs), _bad_input),
        ),
    ),
    Property(
        "deterministic",
        "The same history gives the same answers, in whatever order a step lists ids.",
        (
            Family(st.tuples(st.integers(2, 4), st.integers(1, 3)), _served_at_once),
            Family(anything, _deterministic),
        ),
    ),
    Property(
        "first-come-ties",
        "Of equals the first to come is first, whatever their ids.",
        (
            Family(
                st.tuples(
                    st.lists(
                        st.integers(0, 5), min_size=2, max_size=4, unique=True
                    ).filter(_shuffled),
                    st.integers(1, 2),
                    st.integers(1, 9),
                ),
                _equals,
            ),
            Family(
                st.lists(st.integers(0, 9), min_size=2, max_size=4, unique=True),
                _in_one_agent,
            ),
        ),
    ),
    Property(
        "no-leak",
        "When all have ended and left, the object holds none of their ids.",
        (Family(anything, _no_leak), Family(lived, _no_leak)),
    ),
    Property(
        "checks",
        "_check(), the object's own test of its state, passes after every verb.",
        (Family(anything, _checks), Family(lived, _checks)),
        verb="_check",
    ),
)
