"""What the check for machines with a GPU makes of what it finds, and of what it lacks.

``tests/engines/vllm/test_gpu.py`` and SGLang's run it.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.gpu import check
from benchmarks.gpu.findings import Report, Row, report_of
from benchmarks.gpu.reference import Said, compared
from benchmarks.gpu.scale import scale_of
from benchmarks.gpu.table import count, text
from benchmarks.gpu.timing import Stopwatch
from justitia.policy import Agent, Inference, Step, create


def report() -> Report:
    made = Report("vllm", "1.2", "a card", "cpu", {"a fact": 3})
    made.rows.append(Row("fcfs", 1.0, 2.0, 3_000, 4, 5.0, 6.0, 0.07))
    made.rows.append(Row("vtc", 1.0, 2.0, 3_000, 4, None, None, 0.07))
    made.add("holds", True, "so")
    made.add("does not", False, "so not")
    made.add("slow", False, "a busy machine", judged=False)
    return made


def test_only_what_is_judged_counts() -> None:
    assert count([report()]) == (1, 1)
    told = text([report()])
    assert told.splitlines()[-1] == "1 passed, 1 failed"
    assert "  FAIL does not: so not" in told
    assert "  told slow: a busy machine" in told


def test_a_report_is_the_same_after_it_was_written() -> None:
    assert report_of(report().plain()) == report()


def test_the_table_has_its_columns_below_each_other() -> None:
    head, first, second = text([report()]).splitlines()[:3]
    assert head.split()[:3] == ["engine", "version", "policy"]
    assert head.index("policy ") == first.index("fcfs") == second.index("vtc")
    assert len(head) == len(first) == len(second)


@pytest.mark.parametrize(
    ("outputs", "found"),
    [
        ([[1, 2, 3, 9], [4]], (4, 4)),
        ([[1, 7, 3, 9], [4]], (2, 3)),  # what follows one that differs is other text
        ([[7, 2, 3, 9], [5]], (0, 2)),
        ([[1, 2], []], (2, 2)),
    ],
)
def test_tokens_are_compared_up_to_the_first_that_differs(
    outputs: list[list[int]], found: tuple[int, int]
) -> None:
    said = [Said([0], [1, 2, 3]), Said([0], [4])]
    assert compared(said, outputs) == found


def test_a_stopwatch_counts_what_is_inside_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Each look at the clock is a second later: a verb takes one, whatever it calls."""
    ticks = iter(range(1_000))
    monkeypatch.setattr("benchmarks.gpu.timing.perf_counter", lambda: next(ticks))
    watch = Stopwatch()
    policy = watch.on(create("justitia"))
    policy.arrive(Agent("a", cost=100))
    policy.submit(Inference("a/0", "a", 10, 5))
    assert watch.seconds == 2
    assert [one.id for one in policy.order()] == ["a/0"]
    assert (
        watch.seconds == 4
    )  # one for the inference, one to know that there is no more
    policy.start("a/0")
    policy.serve(Step({}, {"a/0": 1}))
    assert list(policy.victims()) != []
    assert policy.finish("a/0")
    assert watch.seconds == 9
    policy._check()


def test_a_stopwatch_survives_an_error() -> None:
    watch = Stopwatch()
    policy = watch.on(create("fcfs"))
    with pytest.raises(Exception, match="a/0"):
        policy.start("a/0")
    before = watch.seconds
    policy.arrive(Agent("a", cost=100))
    assert watch.seconds > before


@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_the_cache_holds_what_is_to_run_at_once_and_a_whole_request(
    device: str,
) -> None:
    scale = scale_of(device)
    assert scale.cache >= scale.context
    assert scale.budget < scale.context - 8  # so that there are prompts that are cut
    assert scale.running <= scale.budget
    assert scale_of(device, 100).running == 100


# What it lacks ------------------------------------------------------------------------


@pytest.fixture
def no_gpu(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(check, "gpu", lambda: False)
    return iter(())


def test_without_a_gpu_it_says_so(
    no_gpu: None, capsys: pytest.CaptureFixture[str]
) -> None:
    assert check.main(["--engine", "vllm"]) == 2
    assert "nvidia-smi finds no GPU here; --device cpu" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("python", "reason"),
    [("no/such/python", "cannot be run"), (sys.executable, "cannot be used with")],
)
def test_an_engine_that_is_not_there_is_named(
    python: str,
    reason: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(check, "_ASK", "raise SystemExit('it has no {0}')")
    code = check.main(["--device", "cpu", "--vllm-python", python])
    err = capsys.readouterr().err
    assert code == 2
    assert err.startswith("check: vllm")
    assert reason in err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    "given",
    [
        ["--engine", "sim"],
        ["--device", "tpu"],
        ["--arguments", "3"],
        ["--arguments", "{"],
        ["--arguments", '{"tensor_parallel_size": 2}'],
        ["--running", "0"],
    ],
)
def test_what_cannot_be_asked_for(given: list[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        check.main(given)
    assert stopped.value.code == 2


def test_a_part_that_dies_is_a_failure(tmp_path: Path) -> None:
    made = check.read(tmp_path / "none.json", "sglang-served", "cuda", -9)
    assert count([made]) == (0, 1)
    assert "sglang-served runs to its end: exit code -9" in text([made])
