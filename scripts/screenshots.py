"""Take the pictures of the explorer in docs/images: a damaged bookshop, wide and narrow, light and dark.

`make pictures` runs it. Look at the pictures before you commit them.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

from browsing import Chromium
from exploring import exploring
from keywright import connect
from keywright.testing import RedisServer
from keywright.testing.conditions import wait_until
from keywright.testing.damage import plant
from keywright_demo.bookshop import bind, bookshop, fill

FOLDER = Path(__file__).parent.parent / "docs" / "images"
SIZES = {1440: 900, 390: 844}
PAGES = {
    "start": "/",
    "schema": "/schema",
    "table": "/template/bookshop/Book",
    "key": "/key?name=sample-bookshop:book:b7",
    "broken": "",
    "audit": "/audit",
    "edit": "/key/edit?name=sample-bookshop:book:b7",
}


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    executable = shutil.which("chromium")
    if executable is None:
        sys.exit("there is no chromium on PATH. Install Debian's package chromium.")
    browser = Chromium(executable)
    with RedisServer() as server, tempfile.TemporaryDirectory() as folder:
        with connect(server.url, bind()) as db:
            fill(db)
            faults = plant(db, [bookshop], each=1, unknown=3)
        broken = next(each.name for each in faults if each.code == "KW203").decode()
        with exploring(server.url, [bookshop], [bind()], write=True, undo=Path(folder) / "undo") as explored:
            explored.surveyed()
            explored.explorer.db._loop.call_soon_threadsafe(explored.explorer.auditing.start)
            wait_until(lambda: explored.explorer.auditing.tally, "the audit")
            pages = {**PAGES, "broken": f"/key?name={broken}"}
            for width, height in SIZES.items():
                for dark in (False, True):
                    browser.visit(
                        shooting(explored.base, pages, width, height, dark=dark), width=width, dark=dark
                    )
    browser.close()


def shooting(base: str, pages: dict[str, str], width: int, height: int, *, dark: bool) -> Any:
    async def shoot(page: Any) -> None:
        await page.set_viewport_size({"width": width, "height": height})
        for name, path in pages.items():
            await page.goto(base + path)
            await page.wait_for_load_state("networkidle")
            scheme = "dark" if dark else "light"
            await page.screenshot(path=FOLDER / f"explorer-{name}-{width}-{scheme}.png")

    return shoot


if __name__ == "__main__":
    main()
