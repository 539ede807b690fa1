"""How time and memory grow with the number of inferences, in a process of its own."""

import json
import subprocess
import sys
from collections.abc import Mapping
from typing import Any

from justitia.engines.base import EngineError
from justitia.experiments.cells import Outcome

AN_AGENT = 10.4
"""Inferences of an agent of the mix, in the mean."""


def grow(
    *,
    policy: str,
    seed: int,
    preset: str,
    inferences: int,
    options: Mapping[str, Any] | None = None,
) -> Outcome:
    """Run one policy on about so many inferences, at density 2.

    A new process, so that its memory is that of this run alone.
    """
    given = {
        "policy": policy,
        "seed": seed,
        "preset": preset,
        "agents": max(1, round(inferences / AN_AGENT)),
        "options": dict(options or {}),
    }
    ran = subprocess.run(
        [sys.executable, "-P", "-m", "justitia.experiments.tasks.grown"],
        input=json.dumps(given),
        capture_output=True,
        text=True,
        check=False,
    )
    if ran.returncode:
        raise EngineError(
            f"its process ended with {ran.returncode}: {ran.stderr.strip()[-500:]}"
        )
    outcome: Outcome = json.loads(ran.stdout)
    return outcome
