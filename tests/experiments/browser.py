"""A headless Chromium, where there is one."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


CONTRAST = """
() => {
  const canvas = document.createElement('canvas').getContext('2d',
    {willReadFrequently: true});
  const rgb = (colour) => {
    canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const light = (colour) => rgb(colour)
    .map(v => v / 255).map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4)
    .reduce((sum, v, k) => sum + v * [0.2126, 0.7152, 0.0722][k], 0);
  const behind = (element) => {
    for (let e = element; e; e = e.parentElement) {
      const colour = getComputedStyle(e).backgroundColor;
      if (colour !== 'rgba(0, 0, 0, 0)') return colour;
    }
    return 'rgb(255, 255, 255)';
  };
  const all = 'p, li, td, th, a, figcaption, dt, dd, span, i, svg';
  return [...document.querySelectorAll(all)]
    .map(e => {
      const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
      return [(Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05),
              e.tagName, e.className.toString()];
    }).sort((x, y) => x[0] - y[0])[0];
}
"""
"""The least contrast of any text with what is behind it, by WCAG 2."""


def options() -> dict[str, Any]:
    """Return what starts the browser on the path; skip the test where there is none.

    With ``JUSTITIA_BROWSER=required`` it fails there.
    """
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        why = f"there is no browser here: none of {', '.join(NAMES)}"
        if os.environ.get("JUSTITIA_BROWSER") == "required":
            pytest.fail(why)
        pytest.skip(why)
    # A container seldom has what Chromium's own sandbox needs.
    return {"executable_path": found, "args": ["--no-sandbox"]}


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a browser; see `options`."""
    found = options()
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(**found)
        try:
            yield started
        finally:
            started.close()
