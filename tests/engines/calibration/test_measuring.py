"""Measuring an engine whose steps take what a line says: that line is found."""

import pytest

pytest.importorskip("numpy", reason="every engine brings it")

from justitia.engines.calibration.fitting import fit_steps
from justitia.engines.calibration.loads import of_agents, shapes
from justitia.engines.calibration.measuring import measure
from justitia.engines.calibration.samples import Sample
from justitia.engines.serving.backend import Limits
from tests.engines.calibration.fake import TRUTH, LinearEngine, OnClock


@pytest.mark.parametrize("depth", [1, 2])
def test_the_line_is_found_whatever_is_in_flight(depth: int) -> None:
    engine = LinearEngine(depth=depth)
    told: list[tuple[int, int]] = []
    samples = measure(
        engine, rounds=1, progress=lambda *done: told.append(done), kind=OnClock
    )
    fit = fit_steps(samples)
    found = fit.fixed, fit.prefill_token, fit.sequence, fit.kv_token
    assert found == pytest.approx(TRUTH, rel=1e-3)
    assert fit.left_out == 0
    assert told[-1][0] == told[-1][1] == len(told)
    engine.close()


def test_the_rounds_are_of_the_same_loads_in_other_orders() -> None:
    engine = LinearEngine()
    one = measure(engine, rounds=1, kind=OnClock)
    two = measure(engine, rounds=2, kind=OnClock)
    did = [each[:3] for each in two]
    assert did[: len(one)] == [each[:3] for each in one]
    assert len(two) > 1.5 * len(one)
    assert did[len(one) :] != did[: len(one)]


@pytest.mark.parametrize(
    "limits",
    [
        Limits(2_016, 32, 64, 1_024, "vllm"),
        Limits(1_000_000, 16, 256, 8_192, "vllm"),
        Limits(64, 1, 1, 16, "sglang"),
        Limits(100, 1, 1_000, 100_000, "sglang"),
    ],
    ids=str,
)
@pytest.mark.parametrize("room", [64, 512, 131_072])
def test_loads_are_within_what_there_is_room_for(limits: Limits, room: int) -> None:
    room = min(room, limits.capacity_tokens)
    made = list(shapes(limits, room))
    assert {name for name, _ in made} >= {"decode", "prompt"}
    for name, (count, prompt, decode) in made:
        assert count >= 1
        assert min(prompt, decode) >= 1
        assert prompt + decode <= room
        if name != "prompt":
            assert count <= limits.max_num_seqs
        assert count * (prompt + decode) <= limits.capacity_tokens + 2 * count
    for agent in of_agents(room, 3, None):
        for one in agent.inferences:
            assert one.prompt_tokens + one.decode_tokens <= max(room, 2)


def test_a_sample_is_what_it_says() -> None:
    assert Sample(1, 2, 3, 0.5)._asdict() == {
        "prefill_tokens": 1,
        "sequences": 2,
        "kv_tokens": 3,
        "seconds": 0.5,
    }
