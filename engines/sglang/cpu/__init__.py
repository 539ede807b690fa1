"""Stand-ins for two packages that SGLang imports on a CPU, and never uses there.

SGLang declares both for machines with a GPU. On a CPU it imports a few names of
``sgl_kernel`` whose build for CPUs is on no package index, and ``torchvision``, whose
published build is for CUDA and cannot be imported beside a torch without. `FOLDER` is
put on the path by `justitia.engines.sglang.surroundings`, only where the device is a
CPU. A package that is installed and works is handed over to, and wherever one of these
is really called, it raises NotImplementedError.

Nothing in the adapter imports them; they are found by the names that SGLang asks for.
"""

import sys
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path

FOLDER = str(Path(__file__).resolve().parent)
"""What goes on the path."""


def installed(name: str) -> ModuleSpec | None:
    """Return where the package of that name is, other than here; None if nowhere."""
    elsewhere = [path for path in sys.path if str(Path(path).resolve()) != FOLDER]
    return PathFinder.find_spec(name, elsewhere)
