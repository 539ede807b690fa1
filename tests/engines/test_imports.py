"""What an engine brings is not loaded before it is asked for."""

import subprocess
import sys

import pytest

HEAVY = ("sglang", "tokenizers", "torch", "transformers", "vllm")


@pytest.mark.parametrize(
    "module",
    [
        "justitia.engines",
        "justitia.engines.registry",
        "justitia.engines.serving",
        "justitia.engines.serving.run",
        "justitia.engines.tiny",
        "justitia.engines.vllm",
        "justitia.engines.vllm.engine",
        "justitia.running",
    ],
)
def test_nothing_heavy_is_imported(module: str) -> None:
    program = (
        f"import sys, {module}\n"
        "from justitia.engines.registry import create_engine\n"
        "create_engine('sim')\n"
        f"print(*[name for name in {HEAVY} if name in sys.modules])"
    )
    ran = subprocess.run(
        [sys.executable, "-c", program], check=True, capture_output=True, text=True
    )
    assert ran.stdout.strip() == ""
