"""The pages on concepts name each rule of `check`, and each answer of a server that is waited for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from keywright.engine.delivery import UNREADY
from keywright.keyspace.proof import rules

DOCS = Path(__file__).parents[1] / "docs"
CONCEPTS = DOCS / "concepts"


def test_the_page_on_proofs_names_every_rule_of_check() -> None:
    emitted = set(re.findall(r'Finding\(\s*"([a-z-]+)"', Path(rules.__file__).read_text()))
    named = set(re.findall(r"`([a-z]+(?:-[a-z]+)*)`", (CONCEPTS / "proofs.md").read_text()))
    assert len(emitted) > 20
    assert emitted - named == set()


def test_the_page_on_retries_names_every_answer_that_is_waited_for() -> None:
    page = (CONCEPTS / "retries.md").read_text()
    assert {code for code in UNREADY if code not in page} == set()


@pytest.mark.parametrize("folder", ["concepts", "compare"])
def test_the_index_of_a_folder_lists_every_page(folder: str) -> None:
    pages = DOCS / folder
    listed = set(re.findall(r"\]\((\S+\.md)\)", (pages / "README.md").read_text()))
    assert {path.name for path in pages.glob("*.md")} - {"README.md"} - listed == set()
