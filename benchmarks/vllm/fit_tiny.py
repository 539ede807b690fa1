"""Measures the step times of the tiny model on this machine, for its preset.

    python -m benchmarks.vllm.fit_tiny

prints the lines of ``engines/sim/presets/tiny-llama-cpu.toml``. Needs vLLM.
"""

from benchmarks.tiny_steps import fit
from justitia.engines.vllm.engine import VLLMEngine


def main() -> None:
    """Measure, fit, and print."""
    engine = VLLMEngine()
    fit(engine._open())
    engine.close()


if __name__ == "__main__":
    main()
