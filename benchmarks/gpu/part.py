"""A part of the check, in a process of its own, which `check.py` starts.

    part.py model FOLDER DEVICE          makes the model (unless it is there) and asks
                                         transformers what it says: FOLDER/said.json
    part.py vllm|sglang|sglang-served FOLDER DEVICE RUNNING ARGUMENTS OUT

Whatever goes wrong is a failed finding: other parts run all the same.
"""

import json
import sys
from dataclasses import asdict
from importlib.util import find_spec
from pathlib import Path
from traceback import print_exc

ROOT = str(Path(__file__).resolve().parents[2])
if ROOT not in sys.path:
    sys.path.append(ROOT)  # behind all else: for benchmarks.gpu alone

SAID = "said.json"


def make(folder: Path, device: str, said: Path) -> None:
    """Make the model, and take down what transformers makes of it."""
    if device == "cpu" and find_spec("sglang") is not None:
        from justitia.engines.sglang.surroundings import use_cpu  # noqa: PLC0415

        use_cpu()  # its transformers do not load without the stand-ins
    from benchmarks.gpu.reference import reference  # noqa: PLC0415
    from benchmarks.gpu.scale import scale_of  # noqa: PLC0415
    from justitia.engines.tiny import make_tiny_model  # noqa: PLC0415

    scale = scale_of(device)
    make_tiny_model(folder, context=scale.context, shape=scale.shape)
    found = [asdict(one) for one in reference(folder, device)]
    said.write_text(json.dumps(found))


def run(name: str, model: str, device: str, *given: str) -> None:
    """Run a part, and write its report."""
    running, more, out = given
    from benchmarks.gpu.findings import Report  # noqa: PLC0415
    from benchmarks.gpu.parts import PARTS  # noqa: PLC0415
    from benchmarks.gpu.reference import Said  # noqa: PLC0415
    from benchmarks.gpu.scale import scale_of  # noqa: PLC0415

    said = [Said(**one) for one in json.loads(Path(out).with_name(SAID).read_text())]
    try:
        report = PARTS[name](
            model, scale_of(device, int(running)), device, json.loads(more), said
        )
    except Exception as error:
        print_exc()
        report = Report(name.partition("-")[0], "", "", device)
        report.add(f"{name} runs to its end", False, f"{type(error).__name__}: {error}")
    Path(out).write_text(json.dumps(report.plain()))


if __name__ == "__main__":
    if sys.argv[1] == "model":
        make(Path(sys.argv[2]), sys.argv[3], Path(sys.argv[4]))
    else:
        run(*sys.argv[1:])
