"""Hypothesis profiles, and the guard against bare top-level names.

``HYPOTHESIS_PROFILE`` chooses the profile: ``quick`` (the default), ``ci`` (the same
examples in every run), ``long`` (a thousand new ones; the seed is in the report's
head, and ``--hypothesis-seed`` repeats it), or ``mutation`` (to see quickly whether a
mutant fails, not how small a failure can be). Nothing here is timed, so a busy machine
makes a run slow and never red.
"""

import os
import random
import sys
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings

# Where CI is set Hypothesis starts from a derandomised profile: each says its own.
settings.register_profile(
    "quick",
    max_examples=40,
    stateful_step_count=40,
    derandomize=False,
    deadline=None,
)
settings.register_profile(
    "ci",
    max_examples=200,
    derandomize=True,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "long",
    max_examples=1_000,
    stateful_step_count=200,
    derandomize=False,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.register_profile(
    "mutation",
    max_examples=40,
    stateful_step_count=30,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
PROFILE = os.environ.get("HYPOTHESIS_PROFILE", "quick")
settings.load_profile(PROFILE)

_BARE = {
    "engines", "experiments", "gateway", "policy", "predictors", "proofs", "workloads"
}  # fmt: skip


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    """Give the long run a seed that can be told."""
    if PROFILE == "long" and config.getoption("--hypothesis-seed") is None:
        config.option.hypothesis_seed = str(random.SystemRandom().getrandbits(64))


def pytest_report_header(config: pytest.Config) -> list[str]:
    """Say how to run the same examples again."""
    seed = config.getoption("--hypothesis-seed")
    return [] if seed is None else [f"hypothesis seed: {seed} ({PROFILE})"]


@pytest.fixture(autouse=True, scope="session")
def _no_bare_imports() -> Iterator[None]:
    """Fail when a folder was imported by its bare name, as a second copy."""
    yield
    stray = _BARE & sys.modules.keys()
    assert not stray, f"imported without the justitia. prefix: {sorted(stray)}"


def pytest_runtest_setup(item: pytest.Item) -> None:
    """Skip what needs a GPU where there is none."""
    if item.get_closest_marker("gpu") is not None:
        from benchmarks.gpu.check import gpu

        if not gpu():
            pytest.skip("nvidia-smi finds no GPU here; see docs/gpu.md")
