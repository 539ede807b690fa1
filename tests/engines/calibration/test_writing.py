"""A fit as a preset's file, which is read as it was written."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("numpy", reason="every engine brings it")

from justitia.engines.calibration.fitting import StepFit
from justitia.engines.calibration.writing import preset_of, toml
from justitia.engines.serving.backend import Limits
from justitia.engines.sim import load_preset

LIMITS = Limits(2048, 1, 64, 1024, "sglang")
text = st.text(min_size=1, max_size=30).filter(str.strip)
some = text.filter(lambda told: not any(0xD800 <= ord(c) <= 0xDFFF for c in told))
times = st.floats(0, 1).map(lambda each: each or 0.0)


def fit(fixed: float, prefill: float, sequence: float, kv: float) -> StepFit:
    return StepFit(
        fixed, prefill, sequence, kv, error=0.01, r2=0.99, used=100, left_out=0
    )


@given(
    st.tuples(some, some, some),
    st.tuples(st.floats(1e-6, 1), times, times, times),
    some,
)
def test_what_is_written_is_read(
    tmp_path_factory: pytest.TempPathFactory,
    texts: tuple[str, str, str],
    parts: tuple[float, float, float, float],
    note: str,
) -> None:
    name, description, source = texts
    made = preset_of(
        fit(*parts), LIMITS, name=name, description=description, source=source
    )
    path = tmp_path_factory.mktemp("preset") / "mine.toml"
    path.write_bytes(toml(made, {note: note}).encode())
    assert load_preset(path) == made
    told = made.step_fixed_ps, made.step_prefill_token_ps, made.step_sequence_ps
    for seconds, ps in zip(parts, told, strict=False):
        assert ps == pytest.approx(seconds * 1e12, rel=1e-3, abs=1)


def test_what_it_looks_like() -> None:
    made = preset_of(
        fit(1.23456e-3, 3e-6, 4e-5, 0), LIMITS, name="mine", description="d", source="s"
    )
    assert toml(made, {"Fit": "good\nrules = 3"}) == (
        '# Fit: good?rules = 3\n\nname = "mine"\ndescription = "d"\nsource = "s"\n'
        "capacity_tokens = 2_048\nblock_size = 1\nmax_num_seqs = 64\n"
        "max_num_batched_tokens = 1_024\nstep_fixed_ps = 1_235_000_000\n"
        "step_prefill_token_ps = 3_000_000\nstep_sequence_ps = 40_000_000\n"
        'step_kv_token_ps = 0\nswap_token_ps = 0\nrules = "sglang"\n'
    )


def test_what_is_no_text_is_not_written() -> None:
    made = preset_of(
        fit(1e-3, 0, 0, 0), LIMITS, name="\udc80 \x7f", description="d", source="s"
    )
    told = toml(made, {"Model": "\udc80"}).encode().decode()
    assert 'name = "? \\u007f"' in told
    assert told.startswith("# Model: ?\n")


def test_a_preset_is_a_file_of_the_current_folder(tmp_path: Path) -> None:
    made = preset_of(fit(1e-3, 0, 0, 0), LIMITS, name="m", description="d", source="s")
    (tmp_path / "m.toml").write_text(toml(made, {}))
    assert load_preset(tmp_path / "m.toml").rules == "sglang"
