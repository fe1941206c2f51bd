"""docs/proof.md names tests that exist, and commands that the Makefile has."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "proof.md").read_text()
TESTS = sorted(set(re.findall(r"`([\w/]+\.py)::(test_\w+)`", PAGE)))


def test_the_page_names_many_tests() -> None:
    assert len(TESTS) > 60


@pytest.mark.parametrize(("path", "name"), TESTS, ids=[name for _, name in TESTS])
def test_a_test_that_the_page_names_exists(path: str, name: str) -> None:
    assert re.search(rf"^(async )?def {name}\(", (ROOT / path).read_text(), re.MULTILINE)


@pytest.mark.parametrize("target", sorted(set(re.findall(r"`make (\w+)`", PAGE))))
def test_a_command_that_the_page_names_exists(target: str) -> None:
    assert f"\n{target}: " in (ROOT / "Makefile").read_text()
