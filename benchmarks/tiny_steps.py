"""The step times of a real engine in this process, with the tiny model, for a preset.

Times are of this thread, which is the only one that computes: what else the machine
does counts for little.
"""

from collections.abc import Collection, Mapping, Sequence
from statistics import median
from time import thread_time_ns
from typing import Protocol

from justitia.policy import Policy, create

REPEATS = 5


class Engine(Protocol):
    """What of a `justitia.engines.serving.backend.Backend` is timed."""

    def use(self, policy: Policy) -> None:
        """Start afresh, nothing being in the engine."""

    def add(
        self,
        name: str,
        prompt_tokens: int,
        most_tokens: int,
        claim: Mapping[str, object],
    ) -> None:
        """Send a request."""

    def step(self) -> Collection[str]:
        """Run a step."""


def step_ns(backend: Engine, sequences: int, prompt: int, steps: int) -> list[int]:
    """Return the times of the first step, of all prompts, and of those that follow."""
    backend.use(create("fcfs"))
    for number in range(sequences):
        backend.add(f"{number}", prompt, steps, {})
    times = []
    for _ in range(steps):
        began = thread_time_ns()
        backend.step()
        times.append(thread_time_ns() - began)
    return times


def decode_ns(backend: Engine, sequences: int) -> float:
    """Return the time of a step in which so many sequences decode."""
    return median(
        median(step_ns(backend, sequences, 1, 24)[4:]) for _ in range(REPEATS)
    )


def prefill_ns(backend: Engine, tokens: int) -> float:
    """Return the time of a step that computes so many prompt tokens."""
    return median(
        step_ns(backend, max(1, tokens // 256), min(tokens, 256), 2)[0]
        for _ in range(REPEATS)
    )


def slope(points: Sequence[tuple[float, float]]) -> tuple[float, float]:
    """Return the straight line of least squares: its slope, and its value at 0."""
    mean_x = sum(x for x, _ in points) / len(points)
    mean_y = sum(y for _, y in points) / len(points)
    rise = sum((x - mean_x) * (y - mean_y) for x, y in points)
    run = sum((x - mean_x) ** 2 for x, _ in points)
    return rise / run, mean_y - rise / run * mean_x


def fit(backend: Engine) -> None:
    """Measure, fit, and print the lines of a preset."""
    decode = [(n, decode_ns(backend, n)) for n in (1, 2, 4, 8, 16, 32, 48, 62)]
    prefill = [(n, prefill_ns(backend, n)) for n in (32, 64, 128, 256, 512, 1024)]
    for name, points in (("decode", decode), ("prefill", prefill)):
        for size, nanoseconds in points:
            print(f"# {name} of {size}: {nanoseconds / 1e6:.2f} ms")
    per_sequence, fixed = slope(decode)
    per_token, _ = slope(prefill)
    print(f"step_fixed_ps = {round(fixed * 1e3, -7):_.0f}")
    print(f"step_prefill_token_ps = {round(per_token * 1e3, -4):_.0f}")
    print(f"step_sequence_ps = {round(per_sequence * 1e3, -5):_.0f}")
