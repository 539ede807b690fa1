"""A headless Chromium, where there is one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


@contextmanager
def browser() -> Iterator[Browser]:
    """Start the browser that is on the path; skip the test where there is none.

    With ``JUSTITIA_BROWSER=required`` it fails there.
    """
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        why = f"there is no browser here: none of {', '.join(NAMES)}"
        if os.environ.get("JUSTITIA_BROWSER") == "required":
            pytest.fail(why)
        pytest.skip(why)
    with sync_playwright() as playwright:
        # A container seldom has what Chromium's own sandbox needs.
        started = playwright.chromium.launch(
            executable_path=found, args=["--no-sandbox"]
        )
        try:
            yield started
        finally:
            started.close()
