"""What the policy costs inside SGLang, beside the native order in the same run.

    tox run -e sglang -- benchmarks/sglang

Two engines, in processes of their own as a server has them, run the same requests by
turns; the one without a setting of justitia's has SGLang's own fcfs.
"""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

import pytest

from benchmarks.conftest import Figures
from benchmarks.medians import interval
from justitia.engines.serving.prompts import made_up
from justitia.engines.serving.surroundings import prepare, quietly
from justitia.engines.sglang.surroundings import (
    ARGUMENTS_ON_CPU,
    IN_PROCESS,
    TINY_ON_CPU,
    use_cpu,
)
from justitia.engines.tiny import make_tiny_model

if find_spec("sglang") is None:
    pytest.skip("SGLang is not installed; see docs/sglang.md", allow_module_level=True)
prepare(IN_PROCESS | TINY_ON_CPU)
use_cpu()
pytestmark = pytest.mark.filterwarnings("ignore")

LEAST_TOKENS = 0.95
"""Of tokens a second over the native engine's."""
PAIRS = 9
REQUESTS, PROMPT, TOKENS = 256, 32, 128
"""Of a run: requests, and the tokens of each prompt and output."""
SERVER = {
    "context_length": 512,
    "max_total_tokens": 10_240,
    "max_running_requests": 64,
    "chunked_prefill_size": 1024,
    "skip_tokenizer_init": True,
    "sleep_on_idle": True,  # else the one that waits takes a core
    "log_level": "error",
}
SETTING = "JUSTITIA_POLICY"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the tiny model."""
    with quietly():
        return make_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


@pytest.fixture(scope="module")
def engines(model: Path) -> Iterator[list[Any]]:
    """Start SGLang twice: native, and with the policy."""
    with quietly():
        from sglang import Engine  # noqa: PLC0415 - takes 10 s

        made = []
        for policy in (None, "justitia"):
            if policy is not None:
                os.environ[SETTING] = policy
            made.append(
                Engine(model_path=str(model), **ARGUMENTS_ON_CPU, **SERVER)  # type: ignore[arg-type]
            )
            os.environ.pop(SETTING, None)
    yield made
    for engine in made:
        engine.shutdown()


def tokens_a_second(engine: Any, first: int) -> float:
    """Run the same load, in agents of 8, and return the tokens a second."""
    numbers = range(first, first + REQUESTS)
    began = perf_counter()
    outputs = engine.generate(
        input_ids=[made_up(number + 1, PROMPT, 512) for number in numbers],
        sampling_params=[
            {
                "temperature": 0.0,
                "ignore_eos": True,
                "max_new_tokens": TOKENS,
                "custom_params": {"justitia": {"agent": f"{number // 8}"}},
            }
            for number in numbers
        ],
    )
    seconds = perf_counter() - began
    produced = sum(one["meta_info"]["completion_tokens"] for one in outputs)
    assert produced == REQUESTS * TOKENS
    return produced / seconds


def test_tokens_a_second(engines: list[Any], figures: Figures) -> None:
    """Compare the whole engine, native and with the policy, in interleaved pairs."""
    ratios = []
    for pair in range(PAIRS + 1):
        first = pair * REQUESTS
        order = (0, 1) if pair % 2 else (1, 0)
        rates = {which: tokens_a_second(engines[which], first) for which in order}
        if pair:  # the first warms up
            ratios.append(rates[1] / rates[0])
    low, high, confidence = interval(ratios)
    figures.notes.append(
        f"SGLang tokens a second, {PAIRS} pairs: justitia x {median(ratios):.3f} of "
        f"native fcfs, {confidence:.0%} interval {low:.3f} to {high:.3f}"
    )
    assert median(ratios) >= LEAST_TOKENS
