"""The report as a browser shows it: nothing asked for, nothing cut off, readable."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page

from justitia.experiments import EXPERIMENTS, Store, contents, run
from tests.experiments.browser import CONTRAST, browser
from tests.experiments.small import scope


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A report with tables, figures, a paper's columns and intervals."""
    folder = tmp_path_factory.mktemp("report")
    size = scope(seeds=2)
    chosen = ("cost", "noise")
    needed = [one for name in chosen for one in EXPERIMENTS[name].cells(size)]
    found = run(needed, Store(folder / "cells", "1"))
    sections = [EXPERIMENTS[name].section(size, found) for name in chosen]
    for name, content in contents(
        sections, size, version="1", command="justitia experiment cost"
    ):
        (folder / name).write_bytes(content)
    return folder / "report.html"


@pytest.fixture(scope="module")
def chromium(page_file: Path) -> Iterator[Browser]:
    """A browser for the tests of this file."""
    with browser() as started:
        yield started


def shown(
    chromium: Browser, file: Path, width: int = 1200, scheme: str = "light"
) -> Page:
    """Open a page; whatever it asks for or complains of fails the test."""
    page = chromium.new_page(
        viewport={"width": width, "height": 900},
        color_scheme=scheme,  # type: ignore[arg-type]
    )
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: said.append(request.url))
    page.goto(file.as_uri())
    assert said == [file.as_uri()]
    return page


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390])
def test_nothing_is_cut_off_and_all_can_be_read(
    chromium: Browser, page_file: Path, width: int, scheme: str
) -> None:
    page = shown(chromium, page_file, width, scheme)
    assert page.title().startswith("The paper's tables, anew")
    # What is wider than the window scrolls in its own box.
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.locator("table").count() >= 4
    contrast, *where = page.evaluate(CONTRAST)
    assert contrast >= 4.5, where
    picture = page.screenshot(full_page=True)
    assert len(picture) > 50_000
    page.close()


def test_figures_are_drawn(chromium: Browser, page_file: Path) -> None:
    page = shown(chromium, page_file)
    figures = page.locator("figure svg")
    assert figures.count() == 2
    for place in range(2):
        box = figures.nth(place).bounding_box()
        assert box is not None
        assert box["width"] > 300
        assert box["height"] > 150
        assert figures.nth(place).get_attribute("aria-label")
    page.close()


def test_the_page_is_dark_where_that_is_wanted(
    chromium: Browser, page_file: Path
) -> None:
    ground = "getComputedStyle(document.body).backgroundColor"
    found = {}
    for scheme in ("light", "dark"):
        page = shown(chromium, page_file, scheme=scheme)
        found[scheme] = page.evaluate(ground)
        page.emulate_media(media="print")
        assert page.evaluate(ground) == "rgb(255, 255, 255)"
        page.close()
    assert found["light"] == "rgb(255, 255, 255)"
    assert found["dark"] != found["light"]


def test_it_can_be_printed(chromium: Browser, page_file: Path) -> None:
    """On A4 no table is wider than the page."""
    page = shown(chromium, page_file, width=688)  # A4 less its margins, at 96 dpi
    page.emulate_media(media="print")
    wide = page.evaluate(
        "[...document.querySelectorAll('table')]"
        ".map(t => t.getBoundingClientRect().width).sort((a, b) => b - a)[0]"
    )
    assert wide <= 688
    assert page.pdf(prefer_css_page_size=True, format="A4").startswith(b"%PDF")
    page.close()
