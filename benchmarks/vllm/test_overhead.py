"""What the policy costs inside vLLM, beside the native scheduler in the same run.

    tox run -e vllm -- benchmarks/vllm

Both sides take turns, step by step, so that a busy machine slows both alike.
"""

import gc
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, median
from time import perf_counter, thread_time
from typing import Any

import pytest

from benchmarks.conftest import Figures
from benchmarks.medians import interval
from justitia.engines.serving.prompts import made_up
from justitia.engines.serving.surroundings import prepare, quietly
from justitia.engines.tiny import make_tiny_model
from justitia.engines.vllm.engine import TINY_ARGUMENTS
from justitia.engines.vllm.surroundings import IN_PROCESS, TINY_ON_CPU

if find_spec("vllm") is None:
    pytest.skip("vLLM is not installed; see docs/vllm.md", allow_module_level=True)
prepare(IN_PROCESS | TINY_ON_CPU)
pytestmark = pytest.mark.filterwarnings("ignore")

MOST_WITHOUT, MOST_WITH = 1.10, 1.25
"""Of `schedule()` over the native one's, without and with reservation."""
LEAST_TOKENS = 0.95
"""Of tokens a second over the native engine's."""
ROUNDS = 200
PAIRS = 15
PROMPT, DECODE = 64, 400
"""Of the requests whose steps are timed without a model."""
REQUESTS, TOKENS = 128, 64
"""Of a run on the engine: requests, and tokens that each produces."""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Make the tiny model."""
    with quietly():
        return make_tiny_model(tmp_path_factory.mktemp("tiny") / "model")


# The scheduler, without a model -------------------------------------------------------


def stepper(model: Path, running: int, **knobs: Any) -> Callable[[], float]:
    """Return what runs a step and returns the seconds of its `schedule()`.

    So many requests decode, in agents of 8, and as many wait behind them for a seat, or
    for memory where that is set aside: then the head is looked at in every step.
    """
    from tests.engines.vllm.real import Driver, make_scheduler  # noqa: PLC0415

    room: dict[str, int] = {"blocks": 8192, "seqs": running}
    if knobs.get("justitia", {}).get("admission") == "max":
        blocks = -(-(PROMPT + DECODE) // 32)
        room = {"blocks": running * blocks + 1, "seqs": 2 * running}
    driver = Driver(
        make_scheduler(model, batched=8192, **room, **knobs),
        check=False,
    )
    for number in range(2 * running):
        agent = {"agent": f"{number // 8}"}
        driver.add(f"r{number}", PROMPT, DECODE, claim=agent)
    schedule, seconds = driver.scheduler.schedule, 0.0

    def timed(*args: Any, **kwargs: Any) -> Any:
        nonlocal seconds
        began = thread_time()
        output = schedule(*args, **kwargs)
        seconds = thread_time() - began
        return output

    driver.scheduler.schedule = timed  # type: ignore[method-assign]

    def step() -> float:
        assert driver.advance()
        return seconds

    for _ in range(10):
        step()
    assert len(driver.scheduler.running) == running
    return step


@pytest.mark.parametrize("running", [64, 256])
def test_schedule(model: Path, running: int, figures: Figures) -> None:
    """Compare ours, with and without reservation, with the native one."""
    with quietly():
        steps = [
            stepper(model, running, native="fcfs"),
            stepper(model, running, justitia={"admission": "none"}),
            stepper(model, running, justitia={"admission": "max"}),
        ]
    times: list[list[float]] = [[], [], []]
    gc.disable()
    try:
        for turn in range(ROUNDS):
            for place in range(3):
                which = (turn + place) % 3
                times[which].append(steps[which]())
    finally:
        gc.enable()
    native, without, reserved = map(middle, times)
    figures.notes.append(
        f"vLLM schedule(), {running} running: native {native * 1e6:,.0f} us, justitia "
        f"x {without / native:.3f}, with admission max x {reserved / native:.3f}"
    )
    assert without / native <= MOST_WITHOUT
    assert reserved / native <= MOST_WITH


def middle(times: list[float]) -> float:
    """Return the mean without the fastest and the slowest twentieth.

    Not the median: the policy is told of equal steps together, in every eighth.
    """
    cut = len(times) // 20
    return fmean(sorted(times)[cut : len(times) - cut])


# The engine, with the tiny model ------------------------------------------------------


@pytest.fixture(scope="module")
def engines(model: Path) -> Iterator[list[Any]]:
    """Start vLLM twice in this process: native, and with the policy."""
    with quietly():
        from vllm import EngineArgs, LLMEngine  # noqa: PLC0415 - takes 10 s

        made = [
            LLMEngine.from_engine_args(
                EngineArgs(
                    **TINY_ARGUMENTS | {"num_gpu_blocks_override": 512},
                    model=str(model),
                    disable_log_stats=True,
                    use_tqdm_on_load=False,
                    scheduler_cls=scheduler,
                )
            )
            for scheduler in (None, "justitia.engines.vllm.Scheduler")
        ]
    yield made
    with quietly():
        for engine in made:
            engine.engine_core.shutdown()


def load(engine: Any, first: int) -> None:
    """Send 128 requests of 64 + 64 tokens, in agents of 8."""
    from vllm import SamplingParams, TokensPrompt  # noqa: PLC0415

    for number in range(first, first + REQUESTS):
        params = SamplingParams(
            temperature=0.0,
            ignore_eos=True,
            max_tokens=TOKENS,
            detokenize=False,
            extra_args={"justitia_agent": f"{number // 8}"},
        )
        prompt = TokensPrompt(prompt_token_ids=made_up(number + 1, 64, 512))
        engine.add_request(f"{number}", prompt, params)


def tokens_a_second(engines: list[Any], first: int) -> list[float]:
    """Run the same load on each engine, and return its tokens a second.

    They take a step each by turns: what else the machine does is the same to both.
    """
    seconds = [0.0 for _ in engines]
    for engine in engines:
        load(engine, first)
    turn = 0
    while any(engine.has_unfinished_requests() for engine in engines):
        for place in range(len(engines)):
            which = (place + turn) % len(engines)
            if engines[which].has_unfinished_requests():
                began = perf_counter()
                engines[which].step()
                seconds[which] += perf_counter() - began
        turn += 1
    return [REQUESTS * TOKENS / each for each in seconds]


def test_tokens_a_second(engines: list[Any], figures: Figures) -> None:
    """Compare the whole engine, native and with the policy."""
    ratios = []
    for pair in range(PAIRS + 1):
        native, ours = tokens_a_second(engines, pair * REQUESTS)
        if pair:  # the first warms up
            ratios.append(ours / native)
    low, high, confidence = interval(ratios)
    figures.notes.append(
        f"vLLM tokens a second, {PAIRS} pairs: justitia x {median(ratios):.3f} of "
        f"native, {confidence:.0%} interval {low:.3f} to {high:.3f}"
    )
    assert median(ratios) >= LEAST_TOKENS
