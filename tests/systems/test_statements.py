"""Every statement of the source documents has an entry with keys or tests that exist."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import pytest
from scripts.statements import Document, Statement, documents, is_test, page, sources

from keywright.tools.plugins import load_model, model_names

SOURCES = sources()
DOCUMENTS = [pytest.param(each, id=each.prefix) for source in SOURCES for each in documents(source)]
# As read in the documents, by an independent reader.
COUNTS = {"C": 13, "D": 61, "R": 17, "S": 21}


@cache
def templates() -> frozenset[str]:
    """The templates of every model, as its document prints them."""
    spaces = [space for model in model_names() for space in load_model(model).described().spaces]
    return frozenset(key.full_template for space in spaces for key in space.keys)


def test_every_source_document_has_statements() -> None:
    assert {each.prefix: each.count for source in SOURCES for each in documents(source)} == COUNTS


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_statement_has_one_entry(document: Document) -> None:
    expected = [f"{document.prefix}{number}" for number in range(1, document.count + 1)]
    assert [each.id for each in document.statements] == expected


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_entry_says_what_fulfils_it(document: Document) -> None:
    empty = [each.id for each in document.statements if not each.says or not (each.keys or each.tests)]
    assert empty == []


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_key_is_declared(document: Document) -> None:
    named = {key for each in document.statements for key in each.keys}
    assert named - templates() == set()


@pytest.mark.parametrize("document", DOCUMENTS)
def test_every_named_test_exists(document: Document) -> None:
    assert [name for each in document.statements for name in each.tests if not is_test(name)] == []


@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.parts[-3])
def test_the_page_is_up_to_date(source: Path) -> None:
    assert (source.parent / "coverage.md").read_text() == page(documents(source)), (
        "python scripts/statements.py"
    )


def test_a_test_that_does_not_exist_is_seen() -> None:
    here = "tests/systems/test_statements.py"
    assert is_test(f"{here}::test_a_test_that_does_not_exist_is_seen")
    assert not is_test(f"{here}::test_another")
    assert not is_test("tests/systems/test_none.py::test_x")
    assert not is_test(here)


def test_a_difference_is_on_the_page() -> None:
    statement = Statement("X1", "It is so.", ("a|b",), ("tests/t.py::test_x",), "It is not, because.")
    written = page([Document("The document", "X", 1, (statement,))])
    assert (
        "| X1 | It is so.<br>**Difference.** It is not, because. | `a\\|b`<br>[test_x](../../../tests/t.py) |"
        in written
    )
    assert "1 statements, 1 of them" in written
