"""`keywright explain` has a page for every finding, in the terminal and as JSON."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from invoking import Invoke
from keywright.keyspace.proof import rules
from keywright.tools.audit import CODES
from keywright.tools.finding_pages import all_pages

ROOT = Path(__file__).parents[2]


def test_a_code_is_explained_by_its_page(invoke: Invoke) -> None:
    done = invoke("explain", "KW402")
    assert done.exit_code == 0
    words = " ".join(done.stdout.split())
    assert words.startswith("KW402 missing-inverse A relation whose other side does not know of it.")
    assert "The forward side decides" in words
    assert "](" not in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("name", ["missing-inverse", "kw402", "overlapping-templates", "names parse back"])
def test_words_codes_of_a_check_and_its_rules_are_explained_too(invoke: Invoke, name: str) -> None:
    assert invoke("explain", name).exit_code == 0


def test_several_codes_are_explained_in_their_order(invoke: Invoke) -> None:
    done = invoke("explain", "KW501", "KW101", "--format", "json")
    assert [each["code"] for each in json.loads(done.stdout)] == ["KW501", "KW101"]


def test_without_a_code_all_are_listed(invoke: Invoke) -> None:
    done = invoke("explain")
    for page in all_pages():
        assert page.code in done.stdout
    data = json.loads(invoke("explain", "--format", "json").stdout)
    assert [each["code"] for each in data] == [page.code for page in all_pages()]
    assert data[0].keys() == {"code", "word", "title", "level", "source", "text"}


@pytest.mark.parametrize(
    ("name", "near"),
    [("KW403x", "KW403"), ("missing-invers", "missing-inverse"), ("names-parse", "names-parse-back")],
)
def test_an_unknown_code_is_answered_with_the_nearest(invoke: Invoke, name: str, near: str) -> None:
    done = invoke("explain", name)
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"Did you mean {near}?" in done.stderr


def test_every_code_of_the_audit_and_of_the_check_has_a_page() -> None:
    codes = {page.code for page in all_pages()}
    source = Path(rules.__file__).read_text("utf-8")
    of_check = set(re.findall(r'Finding\(\s*"([a-z-]+)"', source)) | {"refused-declaration"}
    assert set(CODES) | of_check <= codes
    sections = set(
        re.findall(r"^## (.*)$", (ROOT / "docs/findings/check.md").read_text("utf-8"), re.MULTILINE)
    )
    assert sections == of_check
