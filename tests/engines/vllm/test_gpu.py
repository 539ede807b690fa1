"""The check for machines with a GPU, on the real vLLM; on a CPU everywhere."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.engines.gpu import check_on_a_cpu, check_on_a_gpu

if find_spec("vllm") is None:
    pytest.skip(
        "vLLM is not installed; tox run -e vllm does it", allow_module_level=True
    )


def test_on_a_cpu(tmp_path: Path) -> None:
    check_on_a_cpu("vllm", tmp_path)


@pytest.mark.gpu
def test_on_a_gpu(tmp_path: Path) -> None:
    check_on_a_gpu("vllm", tmp_path)
