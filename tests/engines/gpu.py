"""`benchmarks/gpu/check.py` as a user runs it."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


def check(engine: str, device: str, folder: Path) -> dict[str, Any]:
    """Run the check, which must pass; return its report."""
    out = folder / "out.json"
    ran = subprocess.run(
        [
            sys.executable,
            "benchmarks/gpu/check.py",
            *("--engine", engine, "--device", device, "--json", str(out)),
        ],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    told = json.loads(out.read_text())
    assert told["failed"] == 0
    assert ran.stdout.splitlines()[-1] == f"{told['passed']} passed, 0 failed"
    (report,) = told["reports"]
    assert (report["engine"], report["device"]) == (engine, device)
    assert [row["policy"] for row in report["rows"]] == ["fcfs", "vtc", "justitia"]
    assert all(row["tokens_a_second"] > 0 for row in report["rows"])
    assert "calibrated step" in report["facts"]
    assert isinstance(report, dict)
    return report


def check_on_a_cpu(engine: str, folder: Path) -> None:
    told = judged(check(engine, "cpu", folder))
    assert "greedy tokens are those of transformers" in told
    assert "justitia: no lag above the bound" in told
    assert "prefix caching: a prompt is found again" in told
    assert "chunked prefill: a long prompt is computed in parts" in told
    assert "of native" not in told  # told, but not judged by a busy machine


def check_on_a_gpu(engine: str, folder: Path) -> None:
    told = judged(check(engine, "cuda", folder))
    assert "CUDA graphs are on" in told
    assert "tokens a second, 256 running: at least 0.98 of native" in told
    assert "justitia: below 0.5 ms a step, 256 running" in told


def judged(report: dict[str, Any]) -> str:
    """Return what was judged, in one line."""
    return "; ".join(one["name"] for one in report["findings"] if one["judged"])
