"""Builds the site: pages, reference, navigation, then the generator, then the texts for language models."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from website.diagrams import diagram_rules
from website.llms import full_text, overview
from website.navigation import Item, navigation, toml
from website.reference import reference_pages
from website.sources import ROOT, Sources

__all__ = ["BuildError", "build", "generate", "write_pages"]

HERE = Path(__file__).parent


class BuildError(Exception):
    """The generator reported a warning or failed; it has the output."""


def build(folder: Path) -> int:
    """Build the site into `site` of a folder. Return the number of pages. Raise BuildError for a warning."""
    pages = folder / "pages"
    shutil.rmtree(pages, ignore_errors=True)
    shutil.rmtree(folder / "site", ignore_errors=True)
    items = write_pages(pages)
    generate(folder, items)
    (folder / "site" / "llms.txt").write_text(overview(pages, items), "utf-8")
    (folder / "site" / "llms-full.txt").write_text(full_text(pages, items), "utf-8")
    return sum(1 for _ in (folder / "site").rglob("*.html"))


def write_pages(pages: Path) -> list[Item]:
    """Write the Markdown of the site into a folder and return its navigation."""
    sources = Sources(pages)
    for place, text in reference_pages().items():
        sources.add(place, text)
    sources.write()
    (pages / "assets").mkdir(exist_ok=True)
    style = [(HERE / "site.css").read_text("utf-8"), *diagram_rules()]
    (pages / "assets" / "site.css").write_text("\n".join(style), "utf-8")
    for script in (HERE / "vendor").glob("*.js"):
        shutil.copyfile(script, pages / "assets" / script.name)
    return navigation(pages)


def generate(folder: Path, items: Sequence[Item]) -> None:
    """Run the generator on `pages` of a folder. Raise BuildError for a warning, such as a broken link."""
    configuration = (HERE / "zensical.toml").read_text("utf-8")
    filled = configuration.replace("\nnav = []\n", f"\nnav = {toml(items)}\n")
    (folder / "zensical.toml").write_text(filled, "utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "zensical", "build", "--strict", "--clean", "--config-file", "zensical.toml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},  # for website.anchors
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode:
        raise BuildError(re.sub(r"\x1b\[[0-9;]*m", "", done.stdout).partition("\nTraceback")[0])
