"""What SGLang must find in the environment, and what it is told on a CPU."""

import os
import sys

from justitia.engines.serving.surroundings import prepare
from justitia.engines.sglang.cpu import FOLDER

IN_PROCESS = {
    "TRANSFORMERS_VERBOSITY": "error",
    "TORCH_CPP_LOG_LEVEL": "ERROR",
    "TQDM_DISABLE": "1",
}
"""The engine in this process, and quiet."""
ON_CPU = {"SGLANG_USE_CPU_ENGINE": "1"}
"""Without it SGLang looks for a GPU, whatever ``--device`` says."""
TINY_ON_CPU = {"OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
"""For a model whose layers are smaller than what two threads take to agree."""
ARGUMENTS_ON_CPU = {
    "device": "cpu",
    "attention_backend": "torch_native",
    "sampling_backend": "pytorch",
    "grammar_backend": "none",
    "disable_cuda_graph": True,
}
"""Server arguments with which no kernel is asked for that only GPUs have."""


def on_cpu() -> bool:
    """Return whether SGLang is to run on the CPU.

    The variable says so, or nobody says anything and torch finds nothing better.
    """
    said = os.environ.get("SGLANG_USE_CPU_ENGINE")
    if said is not None:
        return said == "1"
    import torch  # noqa: PLC0415 - SGLang brings it

    return not torch.accelerator.is_available()


def use_cpu() -> None:
    """Let this process, and those that it starts, run SGLang on the CPU.

    Puts the stand-ins of `justitia.engines.sglang.cpu` on the path, and only here; not
    for a device that is none.
    """
    prepare(ON_CPU)
    if FOLDER not in sys.path:
        sys.path.insert(0, FOLDER)
    os.environ["PYTHONPATH"] = path_on_cpu(os.environ.get("PYTHONPATH"))


def path_on_cpu(path: str | None) -> str:
    """Return a ``PYTHONPATH`` with the stand-ins first.

    >>> path_on_cpu("/mine").endswith(f"{os.pathsep}/mine")
    True
    """
    others = [
        part for part in (path or "").split(os.pathsep) if part not in ("", FOLDER)
    ]
    return os.pathsep.join([FOLDER, *others])
