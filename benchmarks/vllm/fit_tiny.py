"""Measures the step times of the tiny model on this machine, for its preset.

    python -m benchmarks.vllm.fit_tiny

prints the lines of ``engines/sim/presets/tiny-llama-cpu.toml``. Needs vLLM.
"""

from collections.abc import Sequence
from statistics import median
from time import perf_counter_ns
from typing import TYPE_CHECKING

from justitia.engines.vllm.engine import VLLMEngine
from justitia.policy import create

if TYPE_CHECKING:  # the engine imports it once it has set the threads
    from justitia.engines.vllm.backend import VLLMBackend

REPEATS = 5


def step_ns(
    backend: "VLLMBackend", sequences: int, prompt: int, steps: int
) -> list[int]:
    """Return the times of the first step, of all prompts, and of those that follow."""
    backend.use(create("fcfs"))
    for number in range(sequences):
        backend.add(f"{number}", prompt, steps, {})
    times = []
    for _ in range(steps):
        began = perf_counter_ns()
        backend.step()
        times.append(perf_counter_ns() - began)
    return times


def decode_ns(backend: "VLLMBackend", sequences: int) -> float:
    """Return the time of a step in which so many sequences decode."""
    return median(
        median(step_ns(backend, sequences, 1, 24)[4:]) for _ in range(REPEATS)
    )


def prefill_ns(backend: "VLLMBackend", tokens: int) -> float:
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


def main() -> None:
    """Measure, fit, and print."""
    engine = VLLMEngine()
    backend = engine._open()
    decode = [(n, decode_ns(backend, n)) for n in (1, 2, 4, 8, 16, 32, 48, 62)]
    prefill = [(n, prefill_ns(backend, n)) for n in (32, 64, 128, 256, 512, 1024)]
    engine.close()
    for name, points in (("decode", decode), ("prefill", prefill)):
        for size, nanoseconds in points:
            print(f"# {name} of {size}: {nanoseconds / 1e6:.2f} ms")
    per_sequence, fixed = slope(decode)
    per_token, _ = slope(prefill)
    print(f"step_fixed_ps = {round(fixed * 1e3, -7):_.0f}")
    print(f"step_prefill_token_ps = {round(per_token * 1e3, -4):_.0f}")
    print(f"step_sequence_ps = {round(per_sequence * 1e3, -5):_.0f}")


if __name__ == "__main__":
    main()
