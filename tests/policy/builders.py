"""What the tests of the policies are built from; every knob has a default.

A test names only what it is about::

    policy = queue("justitia", agent("A", cost=200, runs=3), agent("B", cost=30))
"""

from collections.abc import Iterable, Iterator, Mapping
from copy import deepcopy
from fractions import Fraction
from numbers import Integral, Rational, Real
from typing import Any, TypeAlias

from justitia.policy import Agent, Inference, Policy, Step, create
from justitia.policy.exact import Number

Anything: TypeAlias = Any
"""What a test passes although the types forbid it."""

VARIANTS: dict[str, tuple[str, dict[str, Any]]] = {
    "fcfs": ("fcfs", {}),
    "sjf": ("sjf", {}),
    "sjf-cost": ("sjf", {"by": "cost"}),
    "agent-fcfs": ("agent-fcfs", {}),
    "srjf": ("srjf", {}),
    "vtc": ("vtc", {}),
    "vtc-priced": (
        "vtc",
        {"prompt_price": Fraction(1, 2), "decode_price": 3},
    ),
    "justitia": ("justitia", {}),
    "justitia-stage": ("justitia", {"tags": "stage"}),
    "justitia-growth": ("justitia", {"growth": 2}),
    "justitia-stage-growth": ("justitia", {"tags": "stage", "growth": Fraction(3, 2)}),
    "justitia-nominal": (
        "justitia",
        {"clock": "nominal", "capacity": 7, "step_seconds": 2},
    ),
    "justitia-stage-reserved": ("justitia", {"tags": "stage", "cost": "reserved"}),
    "justitia-c": ("justitia-c", {}),
    "mlfq": ("mlfq", {}),
    "mlfq-short": (
        "mlfq",
        {
            "quantum": 2,
            "ratio": 3,
            "levels": 4,
            "prefill_seconds": 1,
            "prefill_token_seconds": Fraction(3, 2),
            "starvation_seconds": 6,
            "starvation_steps": 3,
        },
    ),
    "fairserve": ("fairserve", {}),
    "fairserve-strict": (
        "fairserve",
        {
            "prompt_weight": Fraction(1, 2),
            "decode_weight": 3,
            "user_limit": 2,
            "app_limit": 4,
            "window": 7,
            "overload_seconds": 5,
        },
    ),
    "ayo": ("ayo", {}),
}
"""Every policy, with the options that change what it does."""


def make(variant: str) -> Policy:
    """Make a policy by the name of a variant."""
    name, options = VARIANTS[variant]
    return create(name, **options)


def agent(
    id: str = "a",
    cost: Number = 100,
    *,
    weight: Number = 1,
    kind: str = "",
    stage_costs: tuple[Number, ...] = (),
    inferences: int | None = None,
) -> Agent:
    """Make an agent."""
    return Agent(id, cost, weight, kind, stage_costs, inferences)


def inference(
    id: str = "a/0",
    agent: str | None = None,
    p: int = 3,
    d: int = 2,
    *,
    stage: int = 0,
) -> Inference:
    """Make an inference; its agent is what stands before the last slash."""
    return Inference(id, id.rpartition("/")[0] if agent is None else agent, p, d, stage)


def decode(**tokens: int) -> Step:
    """Make a step of nothing but produced tokens; ``__`` in a name is a slash."""
    return Step(decode={name.replace("__", "/"): n for name, n in tokens.items()})


def queue(
    policy: Policy | str,
    *agents: Agent,
    runs: int = 1,
    p: int = 3,
    d: int = 2,
) -> Policy:
    """Let agents arrive, each with `runs` inferences ``a/0``, ``a/1``, … in line."""
    made = create(policy) if isinstance(policy, str) else policy
    for each in agents:
        made.arrive(each)
        for index in range(runs):
            made.submit(inference(f"{each.id}/{index}", p=p, d=d))
    return made


def line(policy: Policy) -> list[str]:
    """Return the ids of the line, checked to be what repeated `pop` gives."""
    ids = [item.id for item in policy.order()]
    twin = deepcopy(policy)
    assert ids == drain(twin)
    head = policy.peek()
    assert (None if head is None else head.id) == (ids[0] if ids else None)
    return ids


def drain(policy: Policy) -> list[str]:
    """Start the whole line; return the ids as they came."""
    ids = []
    while (item := policy.pop()) is not None:
        ids.append(item.id)
        policy._check()
    return ids


def victims(policy: Policy) -> list[str]:
    """Return the ids of the running, the first to give way first."""
    return [item.id for item in policy.victims()]


# Everything that an object holds, to see that nothing has changed -------------


def state(value: object) -> object:
    """Return all that is reachable from `value`, as something to compare with ``==``.

    Objects become their class and attributes, references among them numbers, so equal
    states are equal whatever the addresses.
    """
    seen: dict[int, int] = {}
    keep: list[object] = []

    def walk(item: object) -> object:
        if item is None or isinstance(item, bool | int | float | str | Fraction | type):
            return (type(item).__name__, repr(item))
        if id(item) in seen:
            return ("seen", seen[id(item)])
        seen[id(item)] = len(seen)
        keep.append(item)
        if isinstance(item, Mapping):
            return ("map", [(walk(k), walk(v)) for k, v in item.items()])
        if isinstance(item, set | frozenset):
            return ("set", sorted(map(repr, item)))
        if isinstance(item, list | tuple):
            return (type(item).__name__, [walk(part) for part in item])
        return (type(item).__name__, [(n, walk(v)) for n, v in _attributes(item)])

    return walk(value)


def _attributes(item: object) -> Iterator[tuple[str, object]]:
    names: list[str] = []
    for kind in type(item).__mro__:
        slots = vars(kind).get("__slots__", ())
        names += [slots] if isinstance(slots, str) else slots
    names += sorted(getattr(item, "__dict__", {}))
    for name in dict.fromkeys(names):
        if hasattr(item, name):
            yield name, getattr(item, name)


# Numbers that are not Python's own --------------------------------------------


class _Foreign:
    """What numpy's scalars are to us: registered, with a way to become a Python one."""

    def __init__(self, value: Number) -> None:
        self.value = value

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r})"

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)


class ForeignReal(_Foreign):
    """Such as numpy.float32."""


class ForeignInt(_Foreign):
    """Such as numpy.int64."""


class ForeignRational(_Foreign):
    """Such as gmpy2.mpq."""

    @property
    def numerator(self) -> int:
        """Of its lowest terms."""
        return Fraction(self.value).numerator

    @property
    def denominator(self) -> int:
        """Of its lowest terms."""
        return Fraction(self.value).denominator


Real.register(ForeignReal)
Integral.register(ForeignInt)
Rational.register(ForeignRational)


def label(value: object) -> str:
    """Return a value as the id of a test: plain ASCII, so that it can be selected."""
    try:
        return repr(value)[:40]
    except ValueError:  # more digits than Python prints
        return f"huge {type(value).__name__}"


NAN, INF = float("nan"), float("inf")
NOT_NUMBERS: tuple[object, ...] = (
    NAN, INF, -INF, "12", "", None, True, False, 1j, b"1", [], (1,), {},
    ForeignReal(NAN), ForeignReal(INF), 10**400, Fraction(10**400), -(10**400),
    10**5000, Fraction(10**5000), [10**5000],
)  # fmt: skip
"""Refused wherever a number is asked for."""
NOT_WORK: tuple[object, ...] = (
    *NOT_NUMBERS, -1, -1.5, -5e-324, Fraction(-1, 2), ForeignInt(-1), ForeignReal(-1)
)  # fmt: skip
"""Refused where a number must not be negative."""
NOT_POSITIVE: tuple[object, ...] = (
    *NOT_WORK, 0, 0.0, -0.0, ForeignInt(0), 5e-324, Fraction(1, 10**400)
)  # fmt: skip
"""Refused as a cost or weight."""
NOT_COUNTS: tuple[object, ...] = (
    *NOT_NUMBERS, -1, 1.0, 1.5, Fraction(2), 2**63, ForeignReal(1), ForeignInt(-1)
)  # fmt: skip
"""Refused as a number of tokens."""
NOT_IDS: tuple[object, ...] = (
    "", None, 1, 1.5, True, b"a", ("a",), [], {}, set(), 10**5000, [10**5000]
)  # fmt: skip
"""Refused as an id."""


def pick(items: Iterable[Any], index: int) -> Any:  # noqa: ANN401 - of any items
    """Return one of `items`, which must not be empty."""
    choice = list(items)
    return choice[index % len(choice)]
