"""Measures the step times of the tiny model on this machine, for its preset.

    python -m benchmarks.sglang.fit_tiny

prints the lines of ``engines/sim/presets/tiny-llama-cpu-sglang.toml``. Needs SGLang.
"""

from benchmarks.tiny_steps import fit
from justitia.engines.sglang.engine import SGLangEngine


def main() -> None:
    """Measure, fit, and print."""
    engine = SGLangEngine()
    fit(engine._open())
    engine.close()


if __name__ == "__main__":
    main()
