import importlib.util
import sys
from dataclasses import FrozenInstanceError, fields
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from justitia.engines.sim.preset import (
    MOST,
    Preset,
    PresetError,
    load_preset,
    preset_names,
)
from justitia.policy import PolicyError

ROOT = Path(__file__).parents[3]
PROFILES = ROOT.parent / "shared" / "data" / "profiles"
TOKENS = st.integers(0, 10**6)
MEASURED = {"tiny-llama-cpu", "tiny-llama-cpu-sglang"}
"""Not fitted to profiles."""
STEP = (
    "step_fixed_ps",
    "step_prefill_token_ps",
    "step_sequence_ps",
    "step_kv_token_ps",
)
NUMBERS = (
    "capacity_tokens",
    "block_size",
    "max_num_seqs",
    "max_num_batched_tokens",
    *STEP,
    "swap_token_ps",
)


def table(**changed: object) -> dict[str, Any]:
    """Fields of a good preset, some changed."""
    return {
        "name": "toy",
        "description": "a toy",
        "source": "made up",
        "capacity_tokens": 64,
        "block_size": 16,
        "max_num_seqs": 4,
        "max_num_batched_tokens": 32,
        "step_fixed_ps": 1000,
        "step_prefill_token_ps": 100,
        "step_sequence_ps": 10,
        "step_kv_token_ps": 1,
        "swap_token_ps": 7,
        **changed,
    }


def write(path: Path, values: dict[str, Any]) -> Path:
    def toml(value: object) -> str:
        if isinstance(value, bool):
            return str(value).lower()
        return f'"{value}"' if isinstance(value, str) else repr(value)

    path.write_text("".join(f"{key} = {toml(v)}\n" for key, v in values.items()))
    return path


# --- loading ------------------------------------------------------------------------


def test_shipped_presets_have_the_capacities_of_the_testbeds() -> None:
    found = {name: load_preset(name).capacity_tokens for name in preset_names()}
    assert found == {
        "llama-13b-4xv100-16g": 36_800,
        "llama-7b-a100-40g": 40_960,
        "qwen2.5-32b-h800-80g": 24_800,
        "tiny-llama-cpu": 63 * 32,  # a block of the 64 is vLLM's null block
        "tiny-llama-cpu-sglang": 2_048,
    }


@pytest.mark.parametrize("name", preset_names())
def test_shipped_preset_is_named_as_its_file_and_says_where_it_is_from(
    name: str,
) -> None:
    preset = load_preset(name)
    assert preset.name == name
    assert preset.description
    assert preset.source
    if name not in MEASURED:
        assert (preset.block_size, preset.max_num_seqs) == (16, 256)
        assert preset.max_num_batched_tokens == 2048


def test_shipped_7b_steps_are_of_the_size_that_the_card_allows() -> None:
    preset = load_preset("llama-7b-a100-40g")
    # 13.2 GB of weights at 1.2 TB/s; then 19 GB of KV beside them.
    assert 10e9 < preset.duration_ps(0, 1, 500) < 13e9
    assert 20e9 < preset.duration_ps(0, 60, 36_000) < 32e9
    assert 120e9 < preset.duration_ps(2048, 1, 2048) < 250e9


@pytest.mark.parametrize("as_text", [False, True])
def test_own_file_is_loaded_by_path(tmp_path: Path, as_text: bool) -> None:
    path = write(tmp_path / "own.toml", table())
    assert load_preset(str(path) if as_text else path) == Preset(**table())


def test_own_file_needs_no_toml_ending_where_a_separator_tells(tmp_path: Path) -> None:
    path = write(tmp_path / "own", table())
    assert load_preset(str(path)) == Preset(**table())


def test_own_file_is_found_by_its_ending(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "own.toml", table())
    monkeypatch.chdir(tmp_path)
    assert load_preset("own.toml") == Preset(**table())


def test_preset_is_frozen_and_slotted() -> None:
    preset = Preset(**table())
    with pytest.raises(FrozenInstanceError):
        preset.block_size = 1  # type: ignore[misc]
    assert not hasattr(preset, "__dict__")


# --- errors -------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["", "llama", "..", "LLAMA-7B-A100-40G", "__init__"])
def test_unknown_name_lists_the_valid_ones(name: str) -> None:
    with pytest.raises(PolicyError) as caught:
        load_preset(name)
    assert isinstance(caught.value, PresetError)
    assert repr(name) in str(caught.value)
    for known in preset_names():
        assert known in str(caught.value)


@pytest.mark.parametrize("name", ["missing.toml", "a/b", "nul\0.toml"])
def test_file_that_cannot_be_read(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(PresetError, match="cannot read preset"):
        load_preset(name)


def test_folder_is_no_preset(tmp_path: Path) -> None:
    with pytest.raises(PresetError, match="cannot read preset"):
        load_preset(tmp_path)


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe", b"name = 1\nname = 2"])
def test_file_that_is_no_toml(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(PresetError, match=r"bad\.toml: not a TOML file"):
        load_preset(path)


@pytest.mark.parametrize("key", [f.name for f in fields(Preset) if f.name != "rules"])
def test_missing_field(key: str, tmp_path: Path) -> None:
    values = table()
    del values[key]
    path = write(tmp_path / "own.toml", values)
    with pytest.raises(PresetError, match=rf"own\.toml: {key} is missing; it must be"):
        load_preset(path)


def test_unknown_key_is_named_even_where_it_is_a_misspelt_one(tmp_path: Path) -> None:
    values = table(step_fixed_ms=1)
    del values["step_fixed_ps"]
    path = write(tmp_path / "own.toml", values)
    with pytest.raises(PresetError, match=r"own\.toml: unknown key 'step_fixed_ms'"):
        load_preset(path)


def bad_values() -> list[tuple[str, object]]:
    wrong: list[tuple[str, object]] = []
    for key in NUMBERS:
        least = 0 if key.endswith("_ps") else 1
        wrong += [(key, v) for v in (True, 16.0, "16", least - 1, -16, MOST + 1, [16])]
    for key in ("name", "description", "source"):
        wrong += [(key, v) for v in (1, "", "  ", False)]
    return wrong


@pytest.mark.parametrize(("key", "value"), bad_values())
def test_wrong_field_names_file_field_value_and_what_is_allowed(
    key: str, value: object, tmp_path: Path
) -> None:
    path = write(tmp_path / "own.toml", table(**{key: value}))
    with pytest.raises(PresetError) as caught:
        load_preset(path)
    text = str(caught.value)
    assert f"own.toml: {key} is {value!r}; it must be a " in text
    if key in NUMBERS:
        assert f"whole number from {0 if key.endswith('_ps') else 1} to " in text


@pytest.mark.parametrize("literal", ["0x" + "f" * 5000, "[" + "1, " * 5000 + "]"])
def test_endless_value_is_shortened_in_the_message(
    literal: str, tmp_path: Path
) -> None:
    path = write(tmp_path / "own.toml", table(block_size="LONG"))
    path.write_text(path.read_text().replace('"LONG"', literal))
    with pytest.raises(PresetError, match=r"own\.toml: block_size is ") as caught:
        load_preset(path)
    assert len(str(caught.value)) < 300 + len(str(path))


def test_nested_beyond_reason_is_no_preset(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text("name = " + "[" * 100_000)
    with pytest.raises(PresetError, match="not a TOML file"):
        load_preset(path)


def test_capacity_must_be_whole_blocks(tmp_path: Path) -> None:
    path = write(tmp_path / "own.toml", table(capacity_tokens=65))
    with pytest.raises(
        PresetError,
        match=r"own\.toml: capacity_tokens is 65; .* multiple of block_size, .* 16",
    ):
        load_preset(path)


def test_steps_must_take_time(tmp_path: Path) -> None:
    path = write(tmp_path / "own.toml", table(**dict.fromkeys(STEP, 0)))
    with pytest.raises(PresetError, match=r"own\.toml: .*step_kv_token_ps are all 0"):
        load_preset(path)


@pytest.mark.parametrize("kept", STEP)
def test_one_positive_time_is_enough(kept: str) -> None:
    preset = Preset(**table(**dict.fromkeys(STEP, 0), swap_token_ps=0) | {kept: 5})
    assert preset.duration_ps(1, 1, 1) == 5


@pytest.mark.parametrize("key", ["capacity_tokens", "step_fixed_ps"])
def test_object_made_in_code_passes_the_same_checks(key: str) -> None:
    with pytest.raises(PresetError, match=rf"preset 'toy': {key} is -16"):
        Preset(**table(**{key: -16}))
    with pytest.raises(PresetError, match=r"preset 3: name is 3"):
        Preset(**table(name=3))


# --- time ---------------------------------------------------------------------------


def test_duration_is_the_sum_of_its_parts() -> None:
    preset = Preset(**table())
    assert preset.duration_ps(0, 0, 0) == 1000
    assert preset.duration_ps(2, 0, 0) == 1200
    assert preset.duration_ps(0, 3, 0) == 1030
    assert preset.duration_ps(0, 0, 5) == 1005
    assert preset.duration_ps(0, 0, 0, 2) == 1014
    assert preset.duration_ps(2, 3, 5, 2) == 1249


@pytest.mark.parametrize("name", preset_names())
@given(step=st.tuples(TOKENS, TOKENS, TOKENS, TOKENS), more=TOKENS)
def test_duration_is_whole_and_never_falls(
    name: str, step: tuple[int, int, int, int], more: int
) -> None:
    preset = load_preset(name)
    short = preset.duration_ps(*step)
    assert type(short) is int
    assert short > 0
    for place in range(4):
        longer = list(step)
        longer[place] += more
        assert preset.duration_ps(*longer) >= short


@pytest.mark.parametrize("name", preset_names())
@given(
    steps=st.integers(1, 500), sequences=st.integers(1, 256), kv=st.integers(1, 40_960)
)
def test_a_run_of_decode_steps_adds_up_in_closed_form(
    name: str, steps: int, sequences: int, kv: int
) -> None:
    # What a simulator needs to jump over steps in which nobody comes or goes: the batch
    # is the same, and each of its sequences holds one KV token more in every step.
    preset = load_preset(name)
    one_by_one = sum(
        preset.duration_ps(0, sequences, kv + sequences * k) for k in range(steps)
    )
    grown = sequences * steps * (steps - 1) // 2
    assert one_by_one == (
        steps * preset.duration_ps(0, sequences, kv) + preset.step_kv_token_ps * grown
    )


@given(
    steps=st.integers(1, 10**9),
    prefill=TOKENS,
    sequences=TOKENS,
    kv=TOKENS,
    swap=TOKENS,
)
def test_a_run_of_equal_steps_is_exactly_their_number_times_one(
    steps: int, prefill: int, sequences: int, kv: int, swap: int
) -> None:
    preset = load_preset("llama-7b-a100-40g")
    one = preset.duration_ps(prefill, sequences, kv, swap)
    summed = preset.duration_ps(
        steps * prefill, steps * sequences, steps * kv, steps * swap
    )
    assert steps * one == summed + (steps - 1) * preset.step_fixed_ps


# --- the fit ------------------------------------------------------------------------


@pytest.fixture(scope="module")
def script() -> ModuleType:
    pytest.importorskip("numpy", reason="the fit needs numpy")
    if not PROFILES.is_dir():
        pytest.skip("the published profiles are not beside this checkout")
    name = "fit_presets"
    spec = importlib.util.spec_from_file_location(
        name, ROOT / "benchmarks" / f"{name}.py"
    )
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses look their module up there
    try:
        spec.loader.exec_module(module)
    finally:
        del sys.modules[name]
    return module


@pytest.fixture(scope="module")
def result(script: ModuleType) -> object:
    computed: object = script.compute(PROFILES)
    return computed


def test_fit_reproduces_the_shipped_files(script: ModuleType, result: object) -> None:
    written = script.files(result)
    fitted = set(preset_names()) - MEASURED
    assert {name.removesuffix(".toml") for name in written} == fitted
    for name, text in written.items():
        shipped = ROOT / "engines" / "sim" / "presets" / name
        assert shipped.read_bytes() == text.encode(), name


def test_docs_show_what_the_fit_prints(script: ModuleType, result: object) -> None:
    page = (ROOT / "docs" / "presets.md").read_text(encoding="utf-8")
    assert script.report(result) in page
