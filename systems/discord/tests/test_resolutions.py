"""Citations of the page of resolutions lead somewhere."""

from __future__ import annotations

import re
from pathlib import Path

SYSTEM = Path(__file__).parents[1]
PAGE = SYSTEM / "docs" / "resolutions.md"
CITED = re.compile(r"resolutions\.md((?:,? ?#[a-z0-9]+)+)")


def _citations() -> list[tuple[str, str]]:
    files = [*SYSTEM.glob("src/**/*.py"), *SYSTEM.glob("tests/**/*.py"), *SYSTEM.glob("docs/*.md")]
    return [
        (file.name, anchor)
        for file in files
        for cited in CITED.findall(file.read_text())
        for anchor in re.findall(r"#([a-z0-9]+)", cited)
    ]


def test_every_cited_resolution_is_on_the_page() -> None:
    anchors = set(re.findall(r'<a id="([a-z0-9]+)">', PAGE.read_text()))
    cited = _citations()
    assert len(cited) > 100
    assert [each for each in cited if each[1] not in anchors] == []


def test_the_page_has_every_resolution_once() -> None:
    anchors = re.findall(r'<a id="(a\d+)">', PAGE.read_text())
    assert anchors == [f"a{number}" for number in range(1, 88)]
