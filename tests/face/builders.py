"""Files and processes for tests of the face, with a default for every knob."""

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO

from justitia.workloads import AgentSpec, InferenceSpec, write_jsonl

DATA = Path(__file__).parents[2].parent / "shared" / "data"
NO_DATA = "the recorded agents and traces are not beside this checkout"

PRESET = """\
name = "small"
description = "a small engine with round numbers"
source = "made up"
capacity_tokens = 8_192
block_size = 16
max_num_seqs = 64
max_num_batched_tokens = 1_024
step_fixed_ps = 10_000_000_000
step_prefill_token_ps = 0
step_sequence_ps = 0
step_kv_token_ps = 0
swap_token_ps = 0
"""
"""A step takes 10 ms, whatever is in it."""


def agents_file(
    path: str | Path = "agents.jsonl",
    *,
    n: int = 4,
    prompt: int = 100,
    decode: int = 20,
    arrivals: tuple[float, ...] | None = None,
    cancel_after: float | None = None,
) -> str:
    """Write a workload of `n` like agents of two stages; return its path."""
    write_jsonl(
        path,
        [
            AgentSpec(
                f"agent-{k}",
                tuple(InferenceSpec(prompt, decode, stage=stage) for stage in (0, 1)),
                kind="toy",
                arrival=None if arrivals is None else arrivals[k],
                cancel_after=cancel_after,
            )
            for k in range(n)
        ],
    )
    return str(path)


def toml(path: str, **settings: object) -> str:
    """Write settings as TOML, of which JSON's literals are a part; return the path."""
    lines = [f"{key} = {json.dumps(value)}" for key, value in settings.items()]
    Path(path).write_text("\n".join(lines) + "\n")
    return path


def process(
    *arguments: str,
    environment: Mapping[str, str] | None = None,
    python: tuple[str, ...] = (),
    stdout: int | IO[str] = subprocess.PIPE,
) -> subprocess.CompletedProcess[str]:
    """Run ``python -m justitia`` to its end, on the small engine."""
    Path("small.toml").write_text(PRESET)
    return subprocess.run(
        command(*arguments, python=python),
        env=surroundings(environment),
        text=True,
        check=False,
        timeout=60,
        stdout=stdout,
        stderr=subprocess.PIPE,
    )


def command(*arguments: str, python: tuple[str, ...] = ()) -> list[str]:
    return [sys.executable, *python, "-m", "justitia", *arguments]


def surroundings(environment: Mapping[str, str] | None = None) -> dict[str, str]:
    """Return an environment with nothing in it that is not said."""
    return {
        "PATH": "/usr/bin:/bin",
        "PYTHONSAFEPATH": "1",
        "JUSTITIA_PRESET": "./small.toml",
        **(environment or {}),
    }
