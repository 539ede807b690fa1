"""Skips the module that imports it where the extra ``predictors`` is not installed."""

import pytest

from tests.predictors.installed import MISSING, REASON

if MISSING:
    pytest.skip(REASON, allow_module_level=True)
