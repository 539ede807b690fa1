"""The check for machines with a GPU, on the real vLLM; on a CPU everywhere."""

from importlib.util import find_spec
from pathlib import Path

import pytest

from tests.engines.gpu import check, judged

if find_spec("vllm") is None:
    pytest.skip(
        "vLLM is not installed; tox run -e vllm does it", allow_module_level=True
    )


def test_on_a_cpu(tmp_path: Path) -> None:
    report = check("vllm", "cpu", tmp_path)
    assert "greedy tokens are those of transformers" in judged(report)
    assert "justitia: no lag above the bound" in judged(report)
    assert "prefix caching: a prompt is found again" in judged(report)
    assert "chunked prefill: a long prompt is computed in parts" in judged(report)
    assert "of native" not in judged(report)  # told, but not judged by a busy machine


@pytest.mark.gpu
def test_on_a_gpu(tmp_path: Path) -> None:
    report = check("vllm", "cuda", tmp_path)
    assert "CUDA graphs are on" in judged(report)
    assert "tokens a second, 256 running: at least 0.98 of native" in judged(report)
    assert "justitia: below 0.5 ms a step, 256 running" in judged(report)
