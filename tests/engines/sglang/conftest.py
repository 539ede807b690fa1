"""What SGLang must find before it is imported, its warnings, and a model.

Tests of this folder that need SGLang are skipped, with the reason, where it is not
installed.
"""

from importlib.util import find_spec
from pathlib import Path

import pytest

from justitia.engines.serving.surroundings import prepare
from justitia.engines.sglang.surroundings import (
    IN_PROCESS,
    TINY_ON_CPU,
    on_cpu,
    use_cpu,
)
from tests.warned import let_warn

prepare(IN_PROCESS | TINY_ON_CPU)

if find_spec("sglang") is None:
    # What is collected for its doctests and cannot be imported stays half imported:
    # nobody who imports it after that would be skipped.
    collect_ignore = ["live.py", "offline.py", "servers.py", "stepped.py"]
elif on_cpu():
    use_cpu()

_WARNINGS = (
    "ignore::DeprecationWarning",
    "ignore::PendingDeprecationWarning",
    "ignore::FutureWarning",
    "ignore::UserWarning",
    "ignore::ResourceWarning",
    "ignore::ImportWarning",
    "ignore::RuntimeWarning",
)
"""Of SGLang, torch and transformers: nothing that we could do about."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the libraries of this folder's tests warn."""
    let_warn(items, Path(__file__).parent, _WARNINGS)


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny model, made once a session."""
    if find_spec("sglang") is None:
        pytest.skip("SGLang is not installed; tox run -e sglang does it")
    from justitia.engines.tiny import make_tiny_model

    return make_tiny_model(tmp_path_factory.mktemp("tiny") / "model", context=4096)
