"""The fit of step times: against made-up engines, and against scipy."""

from random import Random
from statistics import fmean

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numpy", reason="every engine brings it")

import numpy as np

from justitia.engines.calibration.fitting import (
    CalibrationError,
    fit_steps,
    least_squares,
    non_negative,
)
from justitia.engines.calibration.samples import Sample

parts = st.tuples(
    st.floats(1e-4, 1e-1),  # fixed
    st.one_of(st.just(0.0), st.floats(1e-7, 1e-3)),  # a prompt token
    st.one_of(st.just(0.0), st.floats(1e-7, 1e-3)),  # a sequence
    st.one_of(st.just(0.0), st.floats(1e-9, 1e-5)),  # a KV token
)


def steps(random: Random, count: int) -> list[tuple[int, int, int]]:
    """Steps as engines have them: half decode only, half compute prompts, too."""
    made = []
    for number in range(count):
        sequences = random.randrange(1, 200)
        prefill = random.choice((16, 100, 500, 2_000)) if number % 2 else 0
        made.append((prefill, sequences, sequences * random.randrange(8, 400)))
    return made


def took(part: tuple[float, ...], step: tuple[int, ...]) -> float:
    return part[0] + sum(
        each * count for each, count in zip(part[1:], step, strict=True)
    )


def found(samples: list[Sample]) -> tuple[float, ...]:
    fit = fit_steps(samples)
    return fit.fixed, fit.prefill_token, fit.sequence, fit.kv_token


def close(found: tuple[float, ...], part: tuple[float, ...], by: float) -> bool:
    """Whether the two lines say the same of steps of all shapes."""
    shapes = [(0, 1, 10), (0, 200, 2_000), (0, 50, 20_000), (2_000, 1, 2_000)]
    return all(took(found, s) == pytest.approx(took(part, s), rel=by) for s in shapes)


@given(part=parts, seed=st.integers(0, 2**32))
def test_what_is_exactly_linear_is_found(part: tuple[float, ...], seed: int) -> None:
    made = [Sample(*s, took(part, s)) for s in steps(Random(seed), 60)]
    fit = fit_steps(made)
    assert close(found(made), part, 1e-6)
    assert (fit.used, fit.left_out) == (60, 0)
    assert fit.error < 1e-6
    assert fit.r2 > 1 - 1e-6


@given(part=parts, seed=st.integers(0, 2**32))
def test_noise_is_averaged_and_what_is_far_off_left_out(
    part: tuple[float, ...], seed: int
) -> None:
    """Ten of 400 steps take twenty times as long: kernels that were compiled, say."""
    random = Random(seed)
    made = [
        Sample(*s, took(part, s) * random.uniform(0.9, 1.1)) for s in steps(random, 400)
    ]
    for place in random.sample(range(400), 10):
        made[place] = made[place]._replace(seconds=made[place].seconds * 20)
    line = found(made)
    off = [abs(took(line, each[:3]) / took(part, each[:3]) - 1) for each in made]
    assert fmean(off) < 0.05
    assert fit_steps(made).left_out >= 10


@given(st.lists(st.floats(-1e-2, 1e-2), min_size=30, max_size=60), st.randoms())
def test_no_part_is_ever_negative(off: list[float], random: Random) -> None:
    """Also where steps that do more take less."""
    made = [
        Sample(*s, max(1e-5, 0.02 - each - s[1] * 1e-5))
        for s, each in zip(steps(random, len(off)), off, strict=True)
    ]
    assert min(found(made)) >= 0


@given(seed=st.integers(0, 2**32), rows=st.integers(5, 30))
def test_it_is_what_scipy_finds(seed: int, rows: int) -> None:
    nnls = pytest.importorskip("scipy.optimize").nnls
    random = np.random.default_rng(seed)
    design = random.uniform(0, 3, (rows, 4))
    times = random.uniform(0.1, 2, rows)
    weights = random.uniform(0.1, 2, rows)
    scale = np.sqrt(weights) / times
    theirs, _ = nnls(design * scale[:, None], times * scale)
    mine = non_negative(design, times, weights)
    assert mine == pytest.approx(theirs, abs=1e-7)


def test_without_a_negative_part_it_is_least_squares() -> None:
    design = np.array([[1.0, 0], [1, 1], [1, 2], [1, 5]])
    times = np.array([1.0, 2.1, 2.9, 6.2])
    ones = np.ones(4)
    plain = least_squares(design, times, ones)
    assert non_negative(design, times, ones) == pytest.approx(plain)


@pytest.mark.parametrize("count", [0, 1, 19])
def test_a_few_steps_are_too_few(count: int) -> None:
    with pytest.raises(CalibrationError, match=f"^{count} steps were measured"):
        fit_steps([Sample(0, 1, 10, 0.1)] * count)


def test_steps_that_are_all_alike_have_a_time() -> None:
    fit = fit_steps([Sample(0, 2, 10, 0.1)] * 20)
    assert took(
        (fit.fixed, fit.prefill_token, fit.sequence, fit.kv_token), (0, 2, 10)
    ) == (pytest.approx(0.1))
    assert fit.r2 == 1
