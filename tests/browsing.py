"""A real browser for tests: one headless Chromium for the whole run, a fresh profile for each visit.

Playwright runs in a thread of its own, since its event loop would be in the way of tests that have one.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import pytest

if TYPE_CHECKING:
    from playwright.async_api import Page

T = TypeVar("T")

ARGUMENTS = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
PATIENCE_MS = 15_000
# Width, and whether it is dark.
SCREENS = [(390, False), (390, True), (1280, False), (1280, True)]
SCREEN_NAMES = ["phone", "phone dark", "desktop", "desktop dark"]


class Chromium:
    """`visit(work)` runs a coroutine function with a new page; the keywords are those of a new profile."""

    def __init__(self, executable: str) -> None:
        self._executable = executable
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._wait(self._start())

    def visit(
        self, work: Callable[[Page], Awaitable[T]], *, width: int = 1280, dark: bool = False, **profile: Any
    ) -> T:
        async def visited() -> T:
            context = await self._browser.new_context(
                viewport={"width": width, "height": 844},
                color_scheme="dark" if dark else "light",
                **profile,
            )
            context.set_default_timeout(PATIENCE_MS)
            try:
                return await work(await context.new_page())
            finally:
                await context.close()

        found: T = self._wait(visited())
        return found

    def close(self) -> None:
        self._wait(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _wait(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(120)

    async def _start(self) -> None:
        from playwright.async_api import async_playwright

        self._playwright = await async_playwright().start()
        self._browser = await self._playwright.chromium.launch(
            executable_path=self._executable, args=ARGUMENTS
        )

    async def _stop(self) -> None:
        await self._browser.close()
        await self._playwright.stop()


async def shoot(page: Page, name: str) -> None:
    """Keep a picture for people to look at, where KEYWRIGHT_SCREENSHOTS names a folder."""
    if folder := os.environ.get("KEYWRIGHT_SCREENSHOTS"):
        await page.screenshot(path=Path(folder) / f"{name}.png", full_page=True)


async def assert_fits(page: Page) -> None:
    """Assert that nothing is wider than the page."""
    excess = await page.evaluate(
        "document.documentElement.scrollWidth - document.documentElement.clientWidth"
    )
    assert excess == 0


@pytest.fixture(scope="session")
def chromium() -> Iterator[Chromium]:
    """Yield the browser. Skip without one, except in CI, where a skipped suite would count as passed."""
    missing = _missing()
    if missing is not None:
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    executable = shutil.which("chromium")
    assert executable is not None
    browser = Chromium(executable)
    yield browser
    browser.close()


def _missing() -> str | None:
    if shutil.which("chromium") is None:
        return "there is no chromium on PATH. Install Debian's package chromium."
    try:
        import playwright  # noqa: F401  # only whether it is there
    except ModuleNotFoundError:
        return "playwright is not installed. Install the development dependencies."
    return None
