"""What stands in for packages of GPUs is there on a CPU only, and computes nothing.

Each case is a process of its own: what a process has imported stays.
"""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

from justitia.engines.serving.surroundings import flags
from justitia.engines.sglang import surroundings
from justitia.engines.sglang.cpu import FOLDER
from justitia.engines.sglang.surroundings import on_cpu, path_on_cpu

NAMES = ("sgl_kernel", "torchvision")
needs_sglang = pytest.mark.skipif(
    find_spec("sglang") is None,
    reason="SGLang is not installed; tox run -e sglang does it",
)


def python(code: str, environment: Mapping[str, str | None] | None = None) -> str:
    """Run some Python, and return what it printed; None takes a variable away."""
    variables = {**os.environ, **(environment or {})}
    done = subprocess.run(
        [sys.executable, "-P", "-W", "ignore", "-c", code],
        env={name: value for name, value in variables.items() if value is not None},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def outside(path: str | None) -> str:
    """Return a ``PYTHONPATH`` without the stand-ins."""
    parts = (path or "").split(os.pathsep)
    return os.pathsep.join(part for part in parts if part and part != FOLDER)


SEEN = """
import json, os, sys
from justitia.engines.sglang.cpu import FOLDER
from justitia.engines.sglang.surroundings import on_cpu, use_cpu
from justitia.engines.sglang.engine import SGLangEngine
if on_cpu():
    use_cpu()
print(json.dumps([FOLDER in sys.path, FOLDER in os.environ.get("PYTHONPATH", "")]))
"""


@pytest.mark.parametrize(("said", "there"), [("1", True), ("0", False)])
def test_they_are_on_the_path_for_a_cpu_and_never_for_a_gpu(
    said: str, there: bool
) -> None:
    environment = {
        "SGLANG_USE_CPU_ENGINE": said,
        "PYTHONPATH": outside(os.environ.get("PYTHONPATH")),
    }
    assert json.loads(python(SEEN, environment)) == [there, there]


@needs_sglang
def test_a_device_that_torch_finds_is_no_cpu(monkeypatch: pytest.MonkeyPatch) -> None:
    import torch

    monkeypatch.delenv("SGLANG_USE_CPU_ENGINE", raising=False)
    for found in (True, False):
        monkeypatch.setattr(torch.accelerator, "is_available", lambda f=found: f)
        assert on_cpu() is not found


def test_nothing_of_them_is_imported_by_their_names_from_the_package() -> None:
    code = "import sys, justitia.engines.sglang.surroundings as s; "
    code += f"print([n for n in {NAMES} if n in sys.modules])"
    assert python(code) == "[]\n"


@needs_sglang
def test_every_function_raises_and_says_what_it_is() -> None:
    code = """
from justitia.engines.sglang.surroundings import use_cpu
use_cpu()
import sgl_kernel
from justitia.engines.sglang.cpu import installed
assert installed("sgl_kernel") is None
assert len(sgl_kernel.NAMES) == 8
for name in sgl_kernel.NAMES:
    try:
        getattr(sgl_kernel, name)(1, some=2)
    except NotImplementedError as error:
        print(error)
"""
    said = python(code, {"SGLANG_USE_CPU_ENGINE": "1"}).splitlines()
    assert len(said) == 8
    assert all("is a stand-in of justitia's" in line for line in said)
    assert "sgl_kernel.verify_tree_greedy_cpu" in said[-1]


@needs_sglang
def test_torchvision_is_the_installed_one_and_its_operators_compute_nothing() -> None:
    code = """
from justitia.engines.sglang.surroundings import use_cpu
use_cpu()
import torch, torchvision
from torchvision.transforms.functional import to_pil_image
print(torchvision.__file__)
for operator in (torch.ops.torchvision.nms, torch.ops.torchvision.qnms):
    try:
        operator(torch.zeros(1, 4), torch.zeros(1), 0.5)
    except NotImplementedError:
        print("raised")
"""
    where, *said = python(code, {"SGLANG_USE_CPU_ENGINE": "1"}).splitlines()
    assert not Path(where).is_relative_to(FOLDER)
    assert said == ["raised", "raised"]


def test_what_is_installed_is_preferred(tmp_path: Path) -> None:
    """A build of the kernels for CPUs, say, wherever it is on the path."""
    (tmp_path / "sgl_kernel.py").write_text("NAMES = 'the real one'\n")
    code = f"""
import sys
sys.path[:0] = [{FOLDER!r}, {str(tmp_path)!r}]
import sgl_kernel
print(sgl_kernel.NAMES, sgl_kernel.__file__ == {str(tmp_path / "sgl_kernel.py")!r})
"""
    assert python(code) == "the real one True\n"


def test_a_path_and_flags() -> None:
    joined = os.pathsep.join
    assert path_on_cpu(None) == FOLDER
    assert path_on_cpu(joined(["/mine", FOLDER])) == joined([FOLDER, "/mine"])
    assert flags({"device": "cpu", "disable_cuda_graph": True, "page_size": 1}) == [
        "--device",
        "cpu",
        "--disable-cuda-graph",
        "--page-size",
        "1",
    ]


@needs_sglang
def test_server_arguments_for_a_cpu_are_ones_that_sglang_has() -> None:
    code = """
from justitia.engines.sglang.surroundings import ARGUMENTS_ON_CPU, use_cpu
use_cpu()
from sglang.srt.server_args import ServerArgs
ServerArgs(model_path="m", **ARGUMENTS_ON_CPU)
print("taken")
"""
    assert python(code, {"SGLANG_USE_CPU_ENGINE": "1"}).endswith("taken\n")
    assert surroundings.ARGUMENTS_ON_CPU["device"] == "cpu"
