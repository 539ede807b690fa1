"""What learning needs is not loaded before something has been learned."""

import subprocess
import sys

import pytest

HEAVY = (
    "joblib", "numpy", "safetensors", "scipy", "sklearn", "tokenizers", "torch",
    "transformers",
)  # fmt: skip


def loaded(program: str) -> list[str]:
    """Return which of the heavy modules a program has loaded at its end."""
    tail = f"; import sys; print(*[n for n in {HEAVY} if n in sys.modules])"
    ran = subprocess.run(
        [sys.executable, "-c", program + tail],
        check=True,
        capture_output=True,
        text=True,
    )
    return ran.stdout.split()


@pytest.mark.parametrize(
    "program",
    [
        "import justitia.predictors as p; [p.create(n) for n in ('mean', 'max')]",
        "import justitia.predictors.model",
        "import justitia.engines.serving as s; s.load_settings({}, {})",
    ],
)
def test_nothing_heavy_is_imported(program: str) -> None:
    assert loaded(program) == []


def test_a_model_predicts_without_torch() -> None:
    from tests.predictors import installed

    if installed.MISSING:
        pytest.skip(installed.REASON)
    found = loaded("import justitia.predictors.files")
    assert {"torch", "sklearn", "scipy", "transformers", "joblib"}.isdisjoint(found)
