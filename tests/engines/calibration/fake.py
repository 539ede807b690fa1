"""A stand-in for a real engine, whose steps take what a line says they do."""

from collections import deque
from pathlib import Path

from justitia.engines.calibration.recording import Recorded
from justitia.engines.serving.agents import Agents
from justitia.engines.serving.backend import Limits, ReusableBackend, lasting
from justitia.engines.serving.engine import LiveEngine
from justitia.engines.sim import Preset, load_preset
from justitia.policy import Policy, create
from tests.engines.serving.fake import FakeBackend

TRUTH = (3e-3, 7e-6, 50e-6, 11e-9)
"""Seconds of a step, of a prompt token, of a sequence and of a KV token in it."""
_NANO = 10**9


class Clock:
    """A time that passes only where somebody lets it."""

    now = 0

    @classmethod
    def read(cls) -> int:
        return cls.now


class OnClock(Recorded):
    """A run whose time is that one."""

    _clock = staticmethod(Clock.read)


class Linear(FakeBackend, ReusableBackend):
    """Steps take what `TRUTH` says of them; `depth` of them are in flight."""

    def __init__(self, policy: Policy, *, depth: int = 1, seats: int = 16) -> None:
        super().__init__(policy, seats=seats, room=300)
        self.depth = depth
        self.capacity = 2_000
        self.closed = False
        self._held: dict[str, int] = {}
        self._in_flight: deque[tuple[float, list[str]]] = deque()

    @property
    def limits(self) -> Limits:
        return Limits(self.capacity, 1, self.seats, 512, "vllm")

    def use(self, policy: Policy) -> None:
        assert not self.requests
        self._in_flight.clear()
        self.agents: Agents = lasting(policy)

    def step(self) -> list[str]:
        """Begin a step, and wait for the first in flight where there are enough."""
        self.steps += 1
        began = self._begin()
        if began and len(self._in_flight) < self.depth:
            return []
        if not self._in_flight:
            return []
        seconds, ended = self._in_flight.popleft()
        Clock.now += round(seconds * _NANO)
        for request_id in ended:
            self.end(request_id)
            self._held.pop(request_id, None)
        return [self.name(request_id) for request_id in ended]

    def _begin(self) -> bool:
        while len(self.batch) < self.seats and (head := self.agents.head()):
            self.agents.start(head)
            self.batch.append(head)
        going = [r for r in self.batch if not self.over(self.requests[r])]
        if not going:
            return False
        fresh = [r for r in going if not self.requests[r].produced]
        prefill = {r: self.requests[r].prompt for r in fresh}
        for request_id in going:
            self.requests[request_id].produced += 1
            more = prefill.get(request_id, 1)
            self._held[request_id] = self._held.get(request_id, 0) + more
        # A prompt of one token is none to an engine: it only decodes.
        prefill = {r: count for r, count in prefill.items() if count > 1}
        self.agents.serve(prefill, dict.fromkeys(going, 1))
        fixed, token, sequence, kv = TRUTH
        seconds = fixed + token * sum(prefill.values()) + sequence * len(going)
        seconds += kv * sum(self._held.values())
        ended = [r for r in going if self.over(self.requests[r])]
        self._in_flight.append((seconds, ended))
        return True

    def close(self) -> None:
        self.closed = True


class LinearEngine(LiveEngine[Linear]):
    """An engine of those."""

    name = "vllm"

    def __init__(self, preset: Preset | None = None, *, depth: int = 1) -> None:
        super().__init__(preset=preset or load_preset("tiny-llama-cpu"))
        self.depth = depth

    def version(self) -> str:
        return "1.2.3"

    def prepare(self) -> None:
        pass

    def start(self, folder: Path) -> Linear:
        return Linear(create("fcfs"), depth=self.depth)
