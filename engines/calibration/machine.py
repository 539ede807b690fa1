"""What a calibration says of where it was made."""

import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

_LIBRARIES = ("torch", "transformers", "triton")


def machine() -> str:
    """Return what computes: the GPUs, or the processor."""
    names = _gpus()
    if names:
        return ", ".join(f"{names.count(n)} x {n}" for n in dict.fromkeys(names))
    try:
        lines = Path("/proc/cpuinfo").read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == "model name" and value.strip():
            return f"a CPU, {value.strip()}"
    return f"a CPU, {platform.machine()}"


def libraries() -> str:
    """Return the versions of what computes, as far as it is there."""
    found = []
    for name in _LIBRARIES:
        try:
            found.append(f"{name} {version(name)}")
        except PackageNotFoundError:
            continue
    return ", ".join(found) or "no torch"


def _gpus() -> list[str]:
    try:
        import torch  # noqa: PLC0415 - engines bring it
    except ImportError:
        return []
    if not torch.cuda.is_available():
        return []
    return [torch.cuda.get_device_name(n) for n in range(torch.cuda.device_count())]
