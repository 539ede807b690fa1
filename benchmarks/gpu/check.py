"""Checks both real engines on a GPU, and prints one table.

    python benchmarks/gpu/check.py
    python benchmarks/gpu/check.py --engine vllm --model PATH --json out.json
    python benchmarks/gpu/check.py --vllm-python .vllm/bin/python \
        --sglang-python .sglang/bin/python
    python benchmarks/gpu/check.py --engine vllm --device cpu

For a machine with one NVIDIA GPU, vLLM and SGLang from their own wheels, and justitia
installed beside them. The two cannot share an environment: either can have a Python of
its own. Without a model one of a billion random weights is made. ``--device cpu`` is
the same on CPU builds, with a tiny model. docs/gpu.md says what is checked.

Ends with ``N passed, M failed``; the exit code is 1 if any failed, and 2 if there is
nothing to run.
"""

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic

HERE = Path(__file__).resolve().parent
ROOT = str(HERE.parents[1])
if ROOT not in sys.path:
    sys.path.append(ROOT)  # behind all else: for benchmarks.gpu alone

from benchmarks.gpu.findings import Report, report_of  # noqa: E402
from benchmarks.gpu.part import SAID  # noqa: E402
from benchmarks.gpu.scale import scale_of  # noqa: E402
from benchmarks.gpu.table import count, text  # noqa: E402

ENGINES = {"vllm": ("vllm",), "sglang": ("sglang", "sglang-served")}
"""The parts of each."""
PART_SECONDS = 900
"""After which a part is given up."""
_ASK = "from justitia.engines.{0}.version import check_version; print(check_version())"


class Unusable(Exception):
    """Nothing can be run; says why."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Check what was asked for; return the exit code."""
    given = parsed(arguments)
    pythons = {"vllm": given.vllm_python, "sglang": given.sglang_python}
    engines = list(ENGINES) if given.engine == "both" else [given.engine]
    began = monotonic()
    try:
        if given.device == "cuda" and not gpu():
            raise Unusable(
                "nvidia-smi finds no GPU here; --device cpu runs the same on the "
                "engines' CPU builds"
            )
        for engine in engines:
            installed(engine, pythons[engine])
        with TemporaryDirectory() as folder:
            reports = list(run_all(given, engines, pythons, Path(folder)))
    except Unusable as reason:
        print(f"check: {reason}", file=sys.stderr)
        return 2
    print(text(reports), flush=True)
    print(f"{monotonic() - began:.0f} s", file=sys.stderr)
    if given.json is not None:
        passed, failed = count(reports)
        content = {
            "schema": 1,
            "passed": passed,
            "failed": failed,
            "reports": [report.plain() for report in reports],
        }
        Path(given.json).write_text(json.dumps(content, indent=1) + "\n")
    return 1 if count(reports)[1] else 0


def parsed(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Return what was typed."""
    parser = argparse.ArgumentParser(
        description="Check the real engines with the policy inside them, on a GPU."
    )
    parser.add_argument("--engine", choices=(*ENGINES, "both"), default="both")
    parser.add_argument("--model", metavar="PATH", help="default: one is made")
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--json", metavar="FILE", help="write all of it there, too")
    parser.add_argument(
        "--running",
        type=int,
        metavar="N",
        help="sequences that run at once where throughput is compared (default: 256, "
        "on a CPU 64)",
    )
    parser.add_argument(
        "--arguments",
        default="{}",
        metavar="JSON",
        help="more of the engine's own arguments, as a JSON object",
    )
    for engine in ENGINES:
        parser.add_argument(
            f"--{engine}-python",
            default=sys.executable,
            metavar="PATH",
            help=f"the Python that has {engine} (default: this one)",
        )
    given = parser.parse_args(arguments)
    try:
        more = json.loads(given.arguments)
    except ValueError:
        more = None
    if not isinstance(more, dict):
        parser.error("--arguments: must be a JSON object")
    if more and given.engine == "both":
        parser.error("--arguments: are for one engine; name it with --engine")
    if given.running is not None and given.running < 1:
        parser.error("--running: must be at least 1")
    return given


def gpu() -> bool:
    """Return whether there is an NVIDIA GPU."""
    try:
        ran = subprocess.run(["nvidia-smi", "-L"], capture_output=True, check=False)
    except OSError:
        return False
    return ran.returncode == 0 and b"GPU" in ran.stdout


def installed(engine: str, python: str) -> None:
    """Raise `Unusable` unless an engine that is known is there."""
    try:
        ran = subprocess.run(
            [python, "-P", "-c", _ASK.format(engine)],
            capture_output=True,
            text=True,
            check=False,
        )
    except OSError as error:
        raise Unusable(f"{engine}: {python} cannot be run: {error.strerror}") from None
    if ran.returncode:
        reason = (ran.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise Unusable(
            f"{engine} cannot be used with {python}: {reason} (--{engine}-python names "
            "another Python, --engine leaves an engine out)"
        )


def run_all(
    given: argparse.Namespace,
    engines: Sequence[str],
    pythons: dict[str, str],
    folder: Path,
) -> Iterator[Report]:
    """Make the model, run the parts of each engine, and yield a report for each."""
    model = Path(given.model) if given.model else folder / "model"
    device, running = given.device, scale_of(given.device, given.running).running
    asked = [str(model), device, str(folder / SAID)]
    if part(pythons[engines[0]], "model", *asked):
        raise Unusable(f"no model could be made or read at {model}")
    for engine in engines:
        reports = []
        for name in ENGINES[engine]:
            out = folder / f"{name}.json"
            asked = [str(model), device, str(running), given.arguments, str(out)]
            code = part(pythons[engine], name, *asked)
            reports.append(read(out, name, device, code))
        first, *others = reports
        for other in others:
            first.facts |= other.facts
            first.findings += other.findings
        yield first


def part(python: str, *arguments: str) -> int:
    """Run a part to its end, its output on standard error; return its exit code."""
    print(f"check: {arguments[0]} …", file=sys.stderr, flush=True)
    process = subprocess.Popen(
        [python, "-P", str(HERE / "part.py"), *arguments],
        stdout=sys.stderr,
        start_new_session=True,
    )
    try:
        return process.wait(PART_SECONDS)
    except subprocess.TimeoutExpired:
        return 124
    finally:  # with what it started, also where this is interrupted
        with suppress(ProcessLookupError):
            os.killpg(process.pid, 9)
        process.wait()


def read(out: Path, name: str, device: str, code: int) -> Report:
    """Return what a part has found; of one that died, that."""
    if out.exists():
        return report_of(json.loads(out.read_text()))
    report = Report(name.partition("-")[0], "", "", device)
    report.add(f"{name} runs to its end", False, f"exit code {code}")
    return report


if __name__ == "__main__":
    sys.exit(main())
