"""Hands over to the torchvision that is installed, once torch knows its operators.

Built for CUDA, torchvision cannot load its own library beside a torch for CPUs, and
then fails to be imported over two operators that this library would have declared.
Where it cannot be loaded they are declared here, and nothing more: torch raises
NotImplementedError where one is called.
"""

import sys
from importlib.util import module_from_spec
from pathlib import Path

import torch

from justitia.engines.sglang.cpu import installed

SCHEMAS = (
    "nms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
)


def _loads(folder: Path) -> bool:
    """Return whether the operators' own library can be loaded here."""
    try:
        for library in folder.glob("_C*.so"):
            torch.ops.load_library(str(library))
            return True
    except OSError:
        pass
    return False


_real = installed("torchvision")
if _real is None or _real.loader is None or _real.origin is None:
    raise ModuleNotFoundError("No module named 'torchvision'", name="torchvision")
_module = module_from_spec(_real)
if not _loads(Path(_real.origin).parent):
    _library = torch.library.Library("torchvision", "DEF")
    for _schema in SCHEMAS:
        _library.define(_schema)
    vars(_module)["_declared"] = _library  # declared for as long as this is
sys.modules[__name__] = _module
_real.loader.exec_module(_module)
