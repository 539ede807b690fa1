"""What the simulated engine is made of: its memory, its limits, its step times.

A preset is a small TOML file. `load_preset` takes the name of a shipped one or the path
of your own; ``docs/presets.md`` explains every key and where the shipped numbers come
from.
"""

import tomllib
from dataclasses import dataclass, fields
from importlib import resources
from os import PathLike, fspath, sep
from pathlib import Path
from typing import Any

from justitia.policy import PolicyError

SUFFIX = ".toml"
MOST = 10**15
"""The largest number in a preset: a step part of a quarter of an hour per token. It is
there so that a slip of the pen is an error and not a simulation that never ends."""

_SEPARATORS = ("/", sep)


class PresetError(PolicyError):
    """A preset that cannot be used; says which file and field, and what is allowed."""


@dataclass(frozen=True, slots=True)
class Preset:
    """One engine on one machine, as the simulator knows it.

    Times are whole picoseconds, so that the time of a run is exact, the same on every
    machine, and a run of equal steps can be added up at once. Whatever made the object
    (a file, `dataclasses.replace`, a test) has passed the same checks.

    Parameters
    ----------
    name
        What results print.
    description
        Model, precision and cards, for people.
    source
        Where the times come from, for people.
    capacity_tokens
        M, the KV tokens that fit in GPU memory; a positive multiple of `block_size`.
    block_size
        KV tokens to a block of the cache.
    max_num_seqs
        Most sequences in one step.
    max_num_batched_tokens
        Most tokens computed in one step: prompt tokens and one per decoding sequence.
    step_fixed_ps
        Picoseconds that every step takes.
    step_prefill_token_ps
        Picoseconds per prompt token computed in the step.
    step_sequence_ps
        Picoseconds per sequence in the step's batch.
    step_kv_token_ps
        Picoseconds per KV token held.
    swap_token_ps
        Picoseconds per KV token moved between GPU and host memory, either way.
    rules
        Whose rules say what a step runs, one of `ENGINES`: ``"vllm"`` mixes prompts and
        decoding, ``"sglang"`` has steps of their own for prompts.

    Raises
    ------
    PresetError
        For a field of a wrong type or out of its range. A bool is not a number, nor is
        a float a whole one.

    Examples
    --------
    >>> preset = load_preset("llama-7b-a100-40g")
    >>> preset.capacity_tokens, preset.block_size
    (40960, 16)
    """

    name: str
    description: str
    source: str
    capacity_tokens: int
    block_size: int
    max_num_seqs: int
    max_num_batched_tokens: int
    step_fixed_ps: int
    step_prefill_token_ps: int
    step_sequence_ps: int
    step_kv_token_ps: int
    swap_token_ps: int
    rules: str = "vllm"

    def __post_init__(self) -> None:
        _check(
            f"preset {_shown(self.name)}",
            {f.name: getattr(self, f.name) for f in fields(self)},
        )

    def duration_ps(
        self,
        prefill_tokens: int,
        sequences: int,
        kv_tokens: int,
        swapped_tokens: int = 0,
    ) -> int:
        """Return how long one step takes.

        Parameters
        ----------
        prefill_tokens
            Prompt tokens computed in the step.
        sequences
            Sequences in its batch.
        kv_tokens
            KV tokens held during it.
        swapped_tokens
            KV tokens moved out or in for it.

        Returns
        -------
        int
            Picoseconds; at least `step_fixed_ps`. O(1), and linear in each argument:
            the sum over steps is the step count times the fixed part plus the duration
            parts of the summed arguments.
        """
        return (
            self.step_fixed_ps
            + self.step_prefill_token_ps * prefill_tokens
            + self.step_sequence_ps * sequences
            + self.step_kv_token_ps * kv_tokens
            + self.swap_token_ps * swapped_tokens
        )


ENGINES = ("vllm", "sglang")
"""Whose rules `sim` has."""
_TEXT = ("name", "description", "source")
_POSITIVE = (
    "capacity_tokens",
    "block_size",
    "max_num_seqs",
    "max_num_batched_tokens",
)
_STEP = (
    "step_fixed_ps",
    "step_prefill_token_ps",
    "step_sequence_ps",
    "step_kv_token_ps",
)
_KEYS = tuple(f.name for f in fields(Preset))
_OPTIONAL = "rules"


def preset_names() -> tuple[str, ...]:
    """Return the names of the shipped presets, in alphabetical order."""
    return tuple(
        sorted(
            entry.name.removesuffix(SUFFIX)
            for entry in resources.files("justitia.engines.sim")
            .joinpath("presets")
            .iterdir()
            if entry.name.endswith(SUFFIX)
        )
    )


def load_preset(name_or_path: str | PathLike[str]) -> Preset:
    """Load a shipped preset by its name, or one of your own by its path.

    Parameters
    ----------
    name_or_path
        A name of `preset_names`; or the path of a TOML file of the same form, which is
        any path object, and any string that has a path separator or ends in ``.toml``.

    Raises
    ------
    PresetError
        For an unknown name (lists the valid ones), a file that cannot be read or is no
        TOML, and any wrong field (names the file, the field, its value and what is
        allowed).
    """
    text = fspath(name_or_path)
    if (
        not isinstance(name_or_path, str)
        or text.endswith(SUFFIX)
        or any(separator in text for separator in _SEPARATORS)
    ):
        return _parse(text, _read(text))
    # The name is looked up in the list and never joined to a folder unchecked.
    known = preset_names()
    if text not in known:
        raise PresetError(
            f"unknown preset {text!r}; shipped are {', '.join(known)}; "
            f"a file of your own needs a path that has a / or ends in {SUFFIX}"
        )
    shipped = resources.files("justitia.engines.sim").joinpath("presets", text + SUFFIX)
    return _parse(text + SUFFIX, shipped.read_bytes())


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise PresetError(f"cannot read preset {path!r}: {error}") from error


def _parse(where: str, content: bytes) -> Preset:
    """Make a preset of a file's content; `where` names the file in errors."""
    try:
        table = tomllib.loads(content.decode())
    except (ValueError, RecursionError) as error:  # bad TOML and bad UTF-8; deep lists
        raise PresetError(f"{where}: not a TOML file in UTF-8: {error}") from error
    # A misspelt key is both unknown and missing: the unknown one tells more.
    for key in table:
        if key not in _KEYS:
            raise PresetError(
                f"{where}: unknown key {_shown(key)}; allowed are {', '.join(_KEYS)}"
            )
    for key in _KEYS:
        if key not in table and key != _OPTIONAL:
            raise PresetError(f"{where}: {key} is missing; {_allowed(key)}")
    _check(where, {_OPTIONAL: ENGINES[0]} | table)
    return Preset(**table)


def _shown(value: object) -> str:
    """Return a value for an error message, which a file must not make endless."""
    try:
        text = repr(value)
    except ValueError:  # Python refuses to print whole numbers of thousands of digits
        text = "a very long number"
    return text if len(text) <= 80 else text[:77] + "..."


def _allowed(key: str) -> str:
    """Say in words what a field may be."""
    if key in _TEXT:
        return "it must be a string that is not blank"
    if key == _OPTIONAL:
        return f"it must be one of {', '.join(ENGINES)}"
    return f"it must be a whole number from {int(key in _POSITIVE)} to {MOST}"


def _check(where: str, table: dict[str, Any]) -> None:
    """Refuse a wrong field.

    Raises
    ------
    PresetError
        Names `where`, the field, its value and what is allowed.
    """
    for key in _KEYS:
        value = table[key]
        if key in _TEXT:
            good = isinstance(value, str) and bool(value.strip())
        elif key == _OPTIONAL:
            good = isinstance(value, str) and value in ENGINES
        else:
            # type() and not isinstance(): True is an int to Python, not to a preset.
            good = type(value) is int and int(key in _POSITIVE) <= value <= MOST
        if not good:
            raise PresetError(f"{where}: {key} is {_shown(value)}; {_allowed(key)}")
    capacity, block = table["capacity_tokens"], table["block_size"]
    if capacity % block:
        raise PresetError(
            f"{where}: capacity_tokens is {capacity}; it must be a multiple of "
            f"block_size, which is {block}"
        )
    if not any(table[key] for key in _STEP):
        raise PresetError(
            f"{where}: {', '.join(_STEP)} are all 0; at least one must be positive, "
            "or time would stand still"
        )
