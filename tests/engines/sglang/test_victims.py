"""Who gives way when SGLang's cache is full and nothing was set aside."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from justitia.engines.serving import Agents, Claim
from justitia.policy import create
from justitia.policy.fcfs import FCFS
from justitia.policy.ledger import Entry
from tests.engines.sglang.stepped import Script, Stepped, giving_way, stepped


def test_who_gives_way() -> None:
    """Who the policy says, last to be taken first; the dismissed before, ours never."""
    agents = Agents(create("fcfs"), now=lambda: 0.0, linger=60)
    for rid in ("a", "b", "c"):
        agents.submit(rid, Claim(agent=rid), 10, 10)
        agents.start(rid)
    assert [*agents.victims()] == ["c", "b", "a"]
    agents.dismiss("b")
    assert giving_way(agents, ["c", None, "b", "a"]) == [1, 3, 0, 2]


@pytest.fixture(scope="module")
def scheduler(model: Path) -> Iterator[Stepped]:
    """A scheduler that guesses, with 512 KV tokens."""
    with stepped(model, overlap=False) as made:
        yield made


def test_sglang_counts_as_it_does(scheduler: Stepped) -> None:
    """What reservation changes in SGLang is as it was."""
    from sglang.srt.managers import schedule_policy

    assert schedule_policy.CLIP_MAX_NEW_TOKENS == 4_096


def test_the_policys_victims(scheduler: Stepped) -> None:
    """Last come, first served: the first to come give way, and SGLang takes those."""

    class Last(FCFS):
        def __init__(self) -> None:
            super().__init__()
            self.back: list[str] = []

        def key(self, entry: Entry) -> tuple[object, ...]:
            return (-entry.seq,)

        def requeue(self, inference_id: str) -> None:
            assert inference_id == next(self.victims()).id
            super().requeue(inference_id)
            self.back.append(inference_id)

    policy = Last()
    scheduler.use(policy)

    def script() -> Script:
        for n in range(8):
            scheduler.send(f"{n}", 40, 50, token=10 + n)
        yield

    scheduler.play(script())
    assert policy.back
    assert len(scheduler.ended()) == 8
