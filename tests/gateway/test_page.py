"""The page at ``/`` in a headless Chromium, in front of a gateway that runs."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest

pytest.importorskip("uvicorn", reason="the extra gateway is not installed")

from playwright.async_api import Page, ViewportSize, async_playwright, expect

from tests.experiments.browser import CONTRAST, options
from tests.gateway.fault_server import Faults
from tests.gateway.live import Live, gateway, request, run

expect.set_options(timeout=30_000)
HOSTILE = "<img src=http://evil.test/x onerror=alert(1)>"
TENANTS = [{"name": "acme", "keys": ["key-a"]}, {"name": "beta", "keys": ["key-b"]}]
Open = Callable[..., Coroutine[Any, Any, Page]]


@contextlib.asynccontextmanager
async def looking(live: Live, *, fails: int = 0) -> AsyncIterator[Open]:
    """Give what opens the page; whatever it complains of fails the test.

    Parameters
    ----------
    fails
        How many answers the browser itself may complain of.
    """
    said: list[str] = []
    asked: list[str] = []
    found = options()
    async with async_playwright() as playwright:
        chromium = await playwright.chromium.launch(**found)

        async def opened(width: int = 1200, scheme: str = "light") -> Page:
            page = await chromium.new_page(
                viewport=ViewportSize(width=width, height=900),
                color_scheme=scheme,  # type: ignore[arg-type]
            )
            page.set_default_timeout(30_000)
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.on("dialog", lambda dialog: said.append(dialog.message))
            page.on("request", lambda request: asked.append(request.url))
            await page.goto(live.url)
            return page

        try:
            yield opened
        finally:
            await chromium.close()
    paths = ["/", "/icon.svg", "/page.css", "/page.js", "/v1/state"]
    assert set(asked) <= {live.url + path for path in paths}
    assert len([one for one in said if "Failed to load" in one]) == len(said) == fails


async def busy(
    live: Live, stack: contextlib.AsyncExitStack, agent: str, tokens: int, **more: Any
) -> None:
    """Let an agent have a request for so many tokens, until the stack ends."""
    headers = {"x-justitia-agent-id": agent, **more.pop("headers", {})}
    body = request(max_tokens=tokens, **{"user": "hold", **more})
    task = asyncio.create_task(
        live.http.post("/v1/completions", json=body, headers=headers)
    )
    stack.callback(task.cancel)
    here, before = live.dispatcher, len(live.dispatcher)
    await live.until(lambda: len(here) > before)


def told(page: Page, table: str, column: int) -> Any:
    return page.locator(f"#{table} tbody tr > :nth-child({column})")


def test_agents_are_shown_in_their_order_and_as_they_come_and_go() -> None:
    async def doing() -> None:
        faults = Faults()
        async with (
            gateway(faults, engine={"capacity": 1000}) as live,
            contextlib.AsyncExitStack() as stack,
        ):
            await busy(live, stack, "first", 900)
            await busy(live, stack, "large", 800)
            await busy(live, stack, HOSTILE, 500)
            async with looking(live) as opened:
                page = await opened()
                names = told(page, "agents", 2)
                await expect(names).to_have_text(["first", HOSTILE, "large"])
                places = told(page, "agents", 1)
                await expect(places).to_have_text(["runs", "1", "2"])
                assert await page.locator("#agents img").count() == 0
                await expect(told(page, "engines", 3)).to_have_text(["up"])
                await expect(told(page, "engines", 4)).to_contain_text(["of 1,000"])
                bar = page.locator("#engines [role=meter]")
                assert float(await bar.get_attribute("aria-valuenow") or 0) > 90
                # The page is not loaded again: it hears of what happens.
                await page.evaluate("window.same = true")
                await busy(live, stack, "small", 99)
                await expect(names).to_have_text(["first", "small", HOSTILE, "large"])
                faults.release.set()
                await expect(page.locator("#nobody")).to_be_visible()
                assert await page.evaluate("window.same")
                await live.rests()
                await live.http.delete("/v1/agents/small")
                await expect(told(page, "completions", 2)).to_have_text(["1"])
                await expect(page.locator("#starts")).to_contain_text("first starts")

    run(doing())


def test_all_can_be_read_on_any_screen_and_nothing_is_cut_off() -> None:
    async def doing() -> None:
        async with (
            gateway(Faults(), engine={"capacity": 1000}, tenants=TENANTS) as live,
            contextlib.AsyncExitStack() as stack,
        ):
            key = {"authorization": "Bearer key-a"}
            await busy(live, stack, "runs", 900, headers=key)
            await busy(live, stack, "w" * 256, 800, headers=key)
            grounds = []
            async with looking(live) as opened:
                for width, scheme in ((1200, "light"), (390, "light"), (390, "dark")):
                    page = await opened(width, scheme)
                    await page.fill("#key", "key-a")
                    await page.press("#key", "Enter")
                    await expect(told(page, "agents", 2)).to_have_count(2)
                    wide = await page.evaluate("document.documentElement.scrollWidth")
                    assert wide <= width
                    contrast, *where = await page.evaluate(CONTRAST)
                    assert contrast >= 4.5, where
                    ground = "getComputedStyle(document.body).backgroundColor"
                    grounds.append(await page.evaluate(ground))
                    heads = page.locator("#agents thead th[scope=col]")
                    assert await heads.count() == 11
                    assert await page.locator("#agents tbody th[scope=row]").count()
                    await page.close()
            assert grounds[0] == grounds[1] != grounds[2]

    run(doing())


def test_nothing_is_there_then_an_engine_then_it_is_down() -> None:
    async def doing() -> None:
        faults = Faults(well=False)
        limits = {"health_seconds": 0.05}
        async with (
            gateway(faults, ready=False, limits=limits) as live,
            looking(live) as opened,
        ):
            page = await opened()
            said = page.locator("#said")
            await expect(said).to_have_text("Live · no engine is up")
            await expect(told(page, "engines", 3)).to_have_text(["down"])
            for empty in ("#nobody", "#none-ended"):
                await expect(page.locator(empty)).to_be_visible()
            await expect(page.locator("#agents")).to_be_hidden()
            await expect(page.locator("#lag-now")).to_have_text("0 token-steps")
            faults.well = True
            await expect(told(page, "engines", 3)).to_have_text(["up"])
            await expect(said).to_have_text("Live")
            faults.well = False
            await expect(told(page, "engines", 3)).to_have_text(["down"])

    run(doing())


def test_with_keys_each_sees_its_own_and_the_operator_all() -> None:
    async def doing() -> None:
        more: dict[str, Any] = {"tenants": TENANTS, "operator_key": "key-o"}
        async with (
            gateway(Faults(), engine={"capacity": 1000}, **more) as live,
            contextlib.AsyncExitStack() as stack,
        ):
            await busy(
                live, stack, "own", 900, headers={"authorization": "bearer key-a"}
            )
            await busy(
                live, stack, "secret-plan", 900,
                headers={"authorization": "Bearer key-b", "x-justitia-kind": "plan"},
            )  # fmt: skip
            async with looking(live, fails=1) as opened:
                page = await opened()
                await expect(page.locator("#door")).to_be_visible()
                await expect(page.locator("#all")).to_be_hidden()
                await page.fill("#key", "wrong")
                await page.click("#door button")
                await expect(page.locator("#wrong")).to_contain_text("does not know")
                await page.fill("#key", "key-a")
                await page.click("#door button")
                await expect(told(page, "agents", 2)).to_have_text(["own"])
                await expect(told(page, "tenants", 1)).to_have_text(
                    ["acme", "all others"]
                )
                await page.reload()  # the tab keeps the key, and no address has it
                await expect(told(page, "agents", 2)).to_have_text(["own"])
                assert "secret" not in await page.content()
                assert "plan" not in await page.content()
                await page.click("#forget")
                await expect(page.locator("#door")).to_be_visible()
                assert await page.evaluate("sessionStorage.length") == 0
                await page.fill("#key", "key-o")
                await page.click("#door button")
                await expect(told(page, "agents", 2)).to_have_text(
                    ["own", "secret-plan"]
                )
                await expect(told(page, "agents", 3)).to_have_text(["acme", "beta"])

    run(doing())
