"""Speed and memory of the simulator: 100,000 inferences."""

import subprocess
import sys

import pytest

from benchmarks.conftest import Figures

AGENTS = 9_500
INFERENCES = 100_000
SECONDS = 60
MEBIBYTES = 1024

PROGRAM = """
import re, sys, time
from justitia.engines.scenario import build
from justitia.engines.sim import SimEngine, load_preset
from justitia.policy import create
from justitia.predictors import Oracle

began = time.perf_counter()
preset = load_preset("llama-7b-a100-40g")
scenario = build(preset, agents=int(sys.argv[2]))
record = SimEngine(preset).run(scenario.agents, create(sys.argv[1]), Oracle())
took = time.perf_counter() - began
# Of this process alone: getrusage would count what it was forked from.
peak = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1]) / 1024
print(len(record.inferences), record.steps, took, peak)
"""


@pytest.mark.parametrize("policy", ["justitia", "vtc"])
def test_a_hundred_thousand_inferences(figures: Figures, policy: str) -> None:
    """Simulate them in a process of its own, workload and all."""
    ran = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM, policy, str(AGENTS)],
        check=True,
        capture_output=True,
        text=True,
    )
    inferences, steps, took, peak = (float(word) for word in ran.stdout.split())
    figures.notes.append(
        f"sim, {policy}: {inferences:,.0f} inferences, {steps:,.0f} steps, "
        f"{took:.1f} s, {peak:,.0f} MiB"
    )
    assert inferences >= INFERENCES
    assert took <= SECONDS
    assert peak <= MEBIBYTES
