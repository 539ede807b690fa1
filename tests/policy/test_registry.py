"""Policies by name, ours and others'."""

from typing import Any

import pytest

from justitia.policy import Policy, PolicyError, create, names, register, registry
from justitia.policy.fcfs import FCFS
from tests.policy.builders import NOT_IDS, Anything, agent, label, line, queue

BUILT_IN = [
    "justitia", "justitia-c", "fcfs", "agent-fcfs", "sjf", "srjf", "vtc", "mlfq",
    "fairserve", "ayo",
]  # fmt: skip


@pytest.fixture(autouse=True)
def _clean(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_FACTORIES", dict(registry._FACTORIES))


def test_the_names_there_are() -> None:
    assert set(BUILT_IN) <= set(names())
    for name in names():
        policy = create(name)
        assert isinstance(policy, Policy)
        assert policy.name == name
        assert create(name) is not policy
        assert type(policy).__doc__


@pytest.mark.parametrize("bad", [*NOT_IDS, "fifo", "FCFS"], ids=label)
def test_a_wrong_name_lists_the_right_ones(bad: Anything) -> None:
    with pytest.raises(PolicyError) as caught:
        create(bad)
    assert ", ".join(BUILT_IN[:3]) in str(caught.value)
    with pytest.raises(PolicyError, match="there are: justitia, "):
        registry.options(bad)


def test_a_wrong_option_lists_the_right_ones() -> None:
    with pytest.raises(PolicyError, match=r"'sjf' has no option 'size'; it takes: by$"):
        create("sjf", size=1)
    with pytest.raises(PolicyError, match=r"has no option 'x'; it takes: none$"):
        create("fcfs", x=1)
    with pytest.raises(PolicyError, match=r"takes: prompt_price, decode_price$"):
        create("vtc", prompt_price=1, price=1)
    with pytest.raises(PolicyError, match="'self'"):
        create("vtc", **{"self": 1})


def test_options_are_told() -> None:
    assert registry.options("fcfs") == []
    assert registry.options("justitia") == registry.options("justitia-c") == [
        "tags", "cost", "growth", "clock", "capacity", "step_seconds"
    ]  # fmt: skip


class Backwards(FCFS):
    """The newest first."""

    name = "backwards"

    def __init__(self, *, sign: int = -1) -> None:
        super().__init__()
        self.sign = sign

    def key(self, entry: Any) -> tuple[object, ...]:  # noqa: ANN401
        return (self.sign * entry.seq,)


def test_a_policy_of_somebody_else() -> None:
    register("backwards", Backwards)
    assert names()[-1] == "backwards"
    assert line(queue("backwards", agent("A"), runs=3)) == ["A/2", "A/1", "A/0"]
    forwards = queue(create("backwards", sign=1), agent("A"), runs=2)
    assert line(forwards) == ["A/0", "A/1"]
    with pytest.raises(PolicyError, match="no option 'signs'; it takes: sign"):
        create("backwards", signs=1)
    with pytest.raises(PolicyError, match="there is a policy 'backwards' already"):
        register("backwards", Backwards)
    with pytest.raises(PolicyError, match="there is a policy 'fcfs' already"):
        register("fcfs", Backwards)


def test_a_factory_may_be_a_function_that_takes_anything() -> None:
    def made(*things: int, **options: int) -> Policy:
        return Backwards(**options)

    register("made", made)
    assert registry.options("made") == []
    assert line(queue(create("made", sign=1), agent("A"), runs=2)) == ["A/0", "A/1"]
    register("plain", lambda *things, sign=1: Backwards(sign=sign))
    assert registry.options("plain") == ["sign"]
    with pytest.raises(PolicyError, match="no option 'things'; it takes: sign"):
        create("plain", things=1)


@pytest.mark.parametrize("bad", NOT_IDS, ids=label)
def test_names_that_are_refused(bad: Anything) -> None:
    before = names()
    with pytest.raises(PolicyError, match="name must be a str that is not empty"):
        register(bad, Backwards)
    assert names() == before


@pytest.mark.parametrize(
    "bad", [None, 1, "Backwards", Backwards()], ids=lambda bad: type(bad).__name__
)
def test_factories_that_are_refused(bad: Anything) -> None:
    with pytest.raises(PolicyError, match="must be callable"):
        register("bad", bad)
    assert "bad" not in names()
