"""`keywright docs`: every model, every format, and documents that are kept fresh."""

from __future__ import annotations

from pathlib import Path

import pytest

from invoking import invoke_keywright

SHOP = """
from keywright import Id, Keyspace, Value
shop = Keyspace("shop", "What the shop sells.")
stock = Keyspace("stock", "What the shop has.")
class Price(Value[int], key="price:<item>", space=shop):
    "What an item costs."
    item: Id
class Left(Value[int], key="left:<item>", space=stock):
    "How many are left."
    item: Id
"""


def test_a_users_own_keyspaces_become_one_document(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs_shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = invoke_keywright("docs", "docs_shop:shop,stock").stdout
    assert "What an item costs." in text
    assert "How many are left." in text


def test_a_document_is_written_and_checked(tmp_path: Path) -> None:
    path = tmp_path / "new" / "meetup.md"
    assert invoke_keywright("docs", "meetup", "--check", str(path)).exit_code == 1
    assert invoke_keywright("docs", "meetup", "-o", str(path)).exit_code == 0
    current = invoke_keywright("docs", "meetup", "--check", str(path))
    assert (current.exit_code, "up to date" in current.stdout) == (0, True)
    path.write_text(path.read_text().replace("Meetup", "Treffen", 1))
    stale = invoke_keywright("docs", "meetup", "--check", str(path))
    assert stale.exit_code == 1
    assert f"keywright docs meetup --format markdown -o {path}" in stale.stderr


def test_invalid_arguments_of_docs_are_usage_errors(tmp_path: Path) -> None:
    for arguments in (
        ("docs", "nonsense"),
        ("docs", "keywright_meetup.schema:nothing"),
        ("docs", "meetup", "--format", "asyncapi"),
        ("docs", "meetup", "-o", "a", "--check", "b"),
        ("docs", "meetup", "-o", str(tmp_path)),
    ):
        assert invoke_keywright(*arguments).exit_code == 2, arguments
