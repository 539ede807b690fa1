"""Libraries that warn of what we could do nothing about."""

from collections.abc import Iterable
from pathlib import Path

import pytest


def let_warn(
    items: Iterable[pytest.Item], folder: Path, warnings: Iterable[str]
) -> None:
    """Let the libraries of a folder's tests warn."""
    for item in items:
        if folder in item.path.parents:
            for warning in warnings:
                item.add_marker(pytest.mark.filterwarnings(warning))
