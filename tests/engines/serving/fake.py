"""A stand-in for a real engine: a token a step for each of so many."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from justitia.engines.serving.agents import Agents
from justitia.engines.serving.backend import Backend
from justitia.engines.serving.claims import read_claim
from justitia.policy import Policy


@dataclass
class _Request:
    prompt: int
    most: int
    produced: int = 0


class FakeBackend(Backend):
    """Starts the head of the line while it has seats; faults are overridden methods."""

    def __init__(self, policy: Policy, *, seats: int = 2, room: int = 100) -> None:
        self.agents = Agents(policy, now=lambda: 0.0, linger=1e9, most=10**9)
        self.capacity = self.context = room
        self.seats = seats
        self.requests: dict[str, _Request] = {}
        self.batch: list[str] = []
        self.aborted: list[str] = []
        self.claims: dict[str, Mapping[str, object]] = {}
        self.steps = 0

    def add(
        self,
        name: str,
        prompt_tokens: int,
        most_tokens: int,
        claim: Mapping[str, object],
    ) -> None:
        assert prompt_tokens >= 1
        assert most_tokens >= 1
        self.claims[name] = claim
        request_id = f"{name}-x"
        self.requests[request_id] = _Request(prompt_tokens, most_tokens)
        self.agents.submit(request_id, read_claim(claim), prompt_tokens, most_tokens)

    def abort(self, names: Collection[str]) -> None:
        for name in names:
            self.aborted.append(name)
            self.end(f"{name}-x")

    def step(self) -> list[str]:
        self.steps += 1
        while len(self.batch) < self.seats and (head := self.agents.head()):
            self.agents.start(head)
            self.batch.append(head)
        prefill = {r: self.requests[r].prompt for r in self.batch}
        prefill = {r: p for r, p in prefill.items() if not self.requests[r].produced}
        for request_id in self.batch:
            self.requests[request_id].produced += 1
        self.agents.serve(prefill, dict.fromkeys(self.batch, 1))
        ended = [r for r in self.batch if self.over(self.requests[r])]
        for request_id in ended:
            self.end(request_id)
        return [self.name(request_id) for request_id in ended]

    def over(self, request: _Request) -> bool:
        return request.produced >= request.most

    def end(self, request_id: str) -> None:
        self.requests.pop(request_id, None)
        if request_id in self.batch:
            self.batch.remove(request_id)
        self.agents.finish(request_id)

    def preempt(self) -> None:
        """Put the last that runs back in line."""
        self.agents.requeue(self.batch.pop())

    def name(self, request_id: str) -> str:
        return request_id.rpartition("-")[0]

    def usage(self) -> float:
        return 0.5
