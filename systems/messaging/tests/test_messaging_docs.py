"""The pages of messaging: the generated document is current, cited resolutions exist."""

from __future__ import annotations

import re
from pathlib import Path

from invoking import invoke_keywright

FOLDER = Path(__file__).parents[1]
DOCS = FOLDER / "docs"


def test_the_generated_document_is_current() -> None:
    done = invoke_keywright("docs", "spectacles-streams", "--check", str(DOCS / "streams.md"))
    assert done.exit_code == 0, done.stderr


def test_every_cited_resolution_exists() -> None:
    anchors = set(re.findall(r'<a id="([^"]+)">', (DOCS / "resolutions.md").read_text()))
    modules = [*FOLDER.glob("src/**/*.py"), *FOLDER.glob("tests/*.py")]
    cited = {
        anchor for module in modules for anchor in re.findall(r"resolutions\.md#([\w-]+)", module.read_text())
    }
    assert cited
    assert cited <= anchors
