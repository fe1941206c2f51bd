"""Pages of the documentation: links lead somewhere, tables have headers, pages that the code names exist."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pytest

ROOT = Path(__file__).parents[1]
LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)(?: \"[^\"]*\")?\)|(?:href|src)=\"([^\"]+)\"")
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)
ANCHOR = re.compile(r"<a (?:id|name)=\"([^\"]+)\">")
FENCE = re.compile(r"^(```|~~~).*?^\1 *$", re.MULTILINE | re.DOTALL)
RULE = re.compile(r"\|(?: ?:?-+:? ?\|)+")
PAGE = re.compile(r"(?<![\w/.-])((?:[\w.-]+/)*docs/[\w/-]+\.md)")


def tracked(*patterns: str) -> list[Path]:
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns]
    listed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [path for line in sorted(listed.splitlines()) if (path := ROOT / line).is_file()]


PAGES = tracked("*.md")
WRITTEN = [page for page in PAGES if not page.read_text("utf-8").startswith("<!-- Made by")]


@cache
def prose(page: Path) -> str:
    """Return the page without code blocks and code spans."""
    return re.sub(r"`[^`\n]*`", "", FENCE.sub("", page.read_text("utf-8")))


@cache
def anchors(page: Path) -> frozenset[str]:
    """Return the anchors of a page: its headings, as GitHub spells them, and its own anchors."""
    text = FENCE.sub("", page.read_text("utf-8"))
    found = set(ANCHOR.findall(text))
    for heading in HEADING.findall(text):
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
        slug = re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")
        same = sum(1 for each in found if re.fullmatch(re.escape(slug) + r"(-\d+)?", each))
        found.add(f"{slug}-{same}" if same else slug)
    return frozenset(found)


def broken(page: Path) -> list[str]:
    problems = []
    for markdown, html in LINK.findall(prose(page)):
        link = markdown or html
        if re.match(r"[a-z][a-z0-9+.-]*:", link):
            continue
        path, _, anchor = unquote(link).partition("#")
        target = (page.parent / path).resolve() if path else page
        if not target.exists():
            problems.append(f"{link}: there is no such file")
        elif anchor and target.suffix == ".md" and anchor not in anchors(target):
            problems.append(f"{link}: there is no such heading or anchor")
    return problems


def uneven(text: str) -> list[str]:
    """Return the rows of tables that have another number of cells than the header of their table."""
    problems = []
    columns = None
    for above, line in pairwise(text.splitlines()):
        if RULE.fullmatch(line):
            columns = cells(above)
        elif not line.startswith("|"):
            columns = None
        if columns is not None and cells(line) != columns:
            problems.append(line)
    return problems


def cells(row: str) -> int:
    return len(re.findall(r"(?<!\\)\|", row)) - 1


def test_there_are_pages_to_look_at() -> None:
    assert ROOT / "README.md" in PAGES
    assert len(PAGES) > 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_relative_link_of_a_page_leads_somewhere(page: Path) -> None:
    assert broken(page) == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_table_of_a_page_has_a_header(page: Path) -> None:
    lines = FENCE.sub("", page.read_text("utf-8")).splitlines()
    headers = [above for above, line in pairwise(lines) if RULE.fullmatch(line)]
    assert [header for header in headers if not re.search(r"\w", header)] == []


@pytest.mark.parametrize("page", WRITTEN, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_row_of_a_table_has_as_many_cells_as_its_header(page: Path) -> None:
    assert uneven(FENCE.sub("", page.read_text("utf-8"))) == []


def test_a_row_with_a_cell_too_few_is_found() -> None:
    text = "| a | b |\n|---|---|\n| 1 | x \\| y |\n| 3 |\n\n| not | a | table |\n"
    assert uneven(text) == ["| 3 |"]


def test_every_page_that_the_code_names_exists() -> None:
    """A system names its own pages from its folder, and others from the root."""
    named = {
        (page, source)
        for source in tracked("src/*.py", "systems/*/src/*.py", "demo/src/*.py", "benchmarks/*.py")
        for page in PAGE.findall(source.read_text("utf-8"))
    }
    assert named
    missing = [
        (page, str(source.relative_to(ROOT)))
        for page, source in sorted(named)
        if not any(
            (folder / page).is_file()
            for folder in (ROOT, *source.parents[:-1])
            if ROOT in (folder, *folder.parents)
        )
    ]
    assert missing == []


def test_a_broken_link_is_found(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    other = tmp_path / "other.md"
    other.write_text("# One `two`\n## Same\n## Same\n")
    page.write_text(
        "[a](other.md#one-two) [b](other.md#same-1) [c](other.md#three) [d](nowhere.md) [e](#here)\n"
    )
    assert [problem.partition(":")[0] for problem in broken(page)] == [
        "other.md#three",
        "nowhere.md",
        "#here",
    ]
