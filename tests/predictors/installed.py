"""Whether the extra ``predictors`` is there, which the tests of what learns need."""

from importlib.util import find_spec

MISSING = ", ".join(
    name
    for name in ("joblib", "numpy", "safetensors", "sklearn", "torch", "transformers")
    if find_spec(name) is None
)
"""What of it is not installed."""
REASON = f"the extra predictors is not installed: no {MISSING}"
