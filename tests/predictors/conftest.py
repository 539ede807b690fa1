"""What the tests of predictors need: that the libraries may warn.

Tests that need what the extra ``predictors`` brings import `tests.predictors.extra`,
which skips them, with the reason, where it is not installed.
"""

from pathlib import Path

import pytest

from tests.predictors.installed import MISSING
from tests.warned import let_warn

if MISSING:
    # What is collected for its doctests and cannot be imported stays half imported:
    # nobody who imports it after that would be skipped.
    collect_ignore = ["extra.py", "models.py"]

_WARNINGS = (
    "ignore::DeprecationWarning",
    "ignore::PendingDeprecationWarning",
    "ignore::FutureWarning",
    "ignore::UserWarning:torch",
    "ignore::ResourceWarning",
)
"""Of torch, transformers and scikit-learn: nothing that we could do about."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Let the libraries of this folder's tests warn."""
    let_warn(items, Path(__file__).parent, _WARNINGS)
