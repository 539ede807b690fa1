"""`justitia calibrate`: what it takes, says, writes and returns.

``tests/engines/vllm/test_gpu.py`` and its like measure the real engines.
"""

from pathlib import Path

import pytest

pytest.importorskip("numpy", reason="every engine brings it")

from justitia import calibrating
from justitia.engines import EngineError
from justitia.engines.calibration import measuring
from justitia.engines.sim import load_preset
from justitia.policy import create
from tests.engines.calibration.fake import Linear, LinearEngine, OnClock
from tests.face.conftest import Justitia


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> LinearEngine:
    """Stands where the real engine would."""
    made = LinearEngine()
    monkeypatch.setattr(calibrating, "create_engine", lambda name, **_: made)
    monkeypatch.setattr(measuring.measure, "__kwdefaults__", {
        **(measuring.measure.__kwdefaults__ or {}), "kind": OnClock,
    })  # fmt: skip
    return made


def test_a_preset_is_written_and_can_be_run(
    engine: LinearEngine, justitia: Justitia
) -> None:
    ran = justitia("calibrate", "--engine", "vllm", "--out", "mine.toml")
    assert ran.code == 0, ran.err
    path, times, quality, command = ran.out.splitlines()
    assert path.startswith("mine.toml: the tiny Llama of engines/tiny.py on ")
    assert path.endswith(" in vllm 1.2.3")
    assert (
        times == "3 ms a step, 7 us a prompt token, 50 us a sequence, 11 ns a KV token"
    )
    assert quality.startswith("mean error 0.0%, R2 1.000, ")
    assert command == "justitia run --preset mine.toml"
    assert "measure: done (1 of 1)" in ran.err
    assert engine._backend is None  # it was let go
    preset = load_preset("mine.toml")
    assert preset.name == "tiny-vllm"
    assert preset.step_fixed_ps == pytest.approx(3e9, rel=1e-3)
    assert (preset.capacity_tokens, preset.max_num_seqs) == (2_000, 16)
    assert quality in preset.source
    comments = [c for c in Path("mine.toml").read_text().splitlines() if c[:1] == "#"]
    assert comments[1] == "# Engine: vllm 1.2.3"
    assert [c.partition(":")[0] for c in comments] == [
        "# Written by", "# Engine", "# Machine", "# Python", "# Rounds, seed", "# Fit",
    ]  # fmt: skip
    used = justitia("run", "--preset", "mine.toml", "--agents", "3")
    assert used.code == 0, used.err
    assert "preset tiny-vllm (2,000 KV tokens)" in used.out


def test_standard_output_has_the_preset_and_nothing_else(
    engine: LinearEngine, justitia: Justitia, tmp_path: Path
) -> None:
    ran = justitia("calibrate", "--engine", "vllm", "--name", "my own", "--rounds", "1")
    assert ran.code == 0, ran.err
    (tmp_path / "out.toml").write_text(ran.out)
    assert load_preset(tmp_path / "out.toml").name == "my own"


def test_the_same_seed_measures_the_same(
    engine: LinearEngine, justitia: Justitia
) -> None:
    given = ("calibrate", "--engine", "vllm", "--rounds", "1", "--seed", "5")
    assert justitia(*given).out == justitia(*given).out


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ([], "--engine: must be one of vllm, sglang\n"),
        (["--engine", "sim"], "--engine: must be one of vllm, sglang, not 'sim'"),
        (
            ["--engine", "vllm", "--rounds", "0"],
            "--rounds: must be a whole number from",
        ),
        (["--engine", "vllm", "--rounds", "1.5"], "--rounds: must be a whole number"),
        (["--engine", "vllm", "--seed", "-1"], "--seed: must be a whole number from 0"),
        (["--engine", "vllm", "--model", " "], "--model: must not be empty"),
        (["--engine", "vllm", "--name", ""], "--name: must not be empty"),
        (["--engine", "vllm", "--out", ""], "--out: must not be empty"),
        (["--what"], "See: justitia calibrate --help"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_cannot_be_calibrated_is_told(
    given: list[str], error: str, justitia: Justitia
) -> None:
    ran = justitia("calibrate", *given)
    assert ran.code == 2
    assert error in ran.err
    assert not ran.out


def test_an_engine_that_is_not_there_is_a_failure(
    monkeypatch: pytest.MonkeyPatch, justitia: Justitia
) -> None:
    def missing(name: str, **_: object) -> LinearEngine:
        raise EngineError(f"engine {name!r} cannot be used here")

    monkeypatch.setattr(calibrating, "create_engine", missing)
    ran = justitia("calibrate", "--engine", "sglang", "--out", "mine.toml")
    assert (ran.code, ran.out) == (1, "")
    assert "engine 'sglang' cannot be used here" in ran.err
    assert not Path("mine.toml").exists()


def test_a_place_that_cannot_be_written_is_told_before_anything_runs(
    engine: LinearEngine, justitia: Justitia
) -> None:
    ran = justitia("calibrate", "--engine", "vllm", "--out", "no/such/mine.toml")
    assert ran.code == 2
    assert "no/such/mine.toml: cannot be written" in ran.err
    assert engine._backend is None


@pytest.mark.parametrize("interrupted", [True, False])
def test_what_stops_it_leaves_the_file_that_was_there(
    engine: LinearEngine,
    justitia: Justitia,
    monkeypatch: pytest.MonkeyPatch,
    interrupted: bool,
) -> None:
    """Ctrl-C, or an engine that fails: nothing is half written; it is closed."""
    error = KeyboardInterrupt() if interrupted else EngineError("the engine stalled")
    made: list[Linear] = []

    class Stopped(Linear):
        def step(self) -> list[str]:
            if self.steps > 400:
                raise error
            return super().step()

    def start(folder: Path) -> Linear:
        made.append(Stopped(create("fcfs")))
        return made[0]

    monkeypatch.setattr(engine, "start", start)
    Path("mine.toml").write_text("before")
    ran = justitia("calibrate", "--engine", "vllm", "--out", "mine.toml")
    assert ran.code == (130 if interrupted else 1)
    assert ("interrupted" if interrupted else "the engine stalled") in ran.err
    assert Path("mine.toml").read_text() == "before"
    assert [path.name for path in Path().iterdir() if "part" in path.name] == []
    assert made[0].closed
