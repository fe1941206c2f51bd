"""`keywright docs`: every model, every format, and documents that are kept fresh."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import redis

from dumps import dump_of
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


@pytest.fixture
def dump(redis_url: str, tmp_path: Path) -> Path:
    with redis.Redis.from_url(redis_url) as client:
        client.mset({"price:1": 10, "price:2": 20, "left:1": 3, "secret-street-7": "x"})
        client.expire("left:1", 1000)
        return dump_of(client, tmp_path / "dump.rdb")


def test_a_document_of_a_dump_has_the_counts_of_each_key(
    dump: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "docs_shop.py").write_text(SHOP)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    text = invoke_keywright("docs", "docs_shop:shop,stock", "--rdb", "dump.rdb").stdout
    data = json.loads(
        invoke_keywright("docs", "docs_shop:shop,stock", "--rdb", "dump.rdb", "--format", "json").stdout
    )
    page = invoke_keywright("docs", "docs_shop:shop,stock", "--rdb", "dump.rdb", "--format", "html").stdout
    assert "Counts are those of dump.rdb (a dump of Redis" in text
    assert "3 keys of these templates; no template matches 1 more." in text
    assert re.search(r"\| Stored \| 2 keys, \d+ B in the file, none expires \|", text)
    assert re.search(r"\| Stored \| 1 key, \d+ B in the file, all expire \|", text)
    assert "`keywright docs docs_shop:shop,stock --rdb dump.rdb --format markdown`" in text
    assert "secret-street" not in text + page
    assert "2 keys, " in page
    assert {key["name"]: key["stored"]["keys"] for space in data["spaces"] for key in space["keys"]} == {
        "Price": 2,
        "Left": 1,
    }
    assert (data["counted"]["names"], data["counted"]["unknown"]) == (4, 1)


def test_a_document_of_a_dump_without_a_model_is_of_the_inferred_one(dump: Path, tmp_path: Path) -> None:
    path = tmp_path / "keys.md"
    made = invoke_keywright("docs", "--rdb", str(dump), "-o", str(path))
    assert made.exit_code == 0, made.output
    assert "one is inferred from the dump" in made.stderr
    assert "price:<price>" in path.read_text()
    assert "| Stored | 2 keys, " in path.read_text()
    current = invoke_keywright("docs", "--rdb", str(dump), "--check", str(path))
    assert current.exit_code == 0, current.output


def test_channels_are_not_in_a_dump(dump: Path) -> None:
    refused = invoke_keywright("docs", "spectacles", "--rdb", str(dump), "--format", "asyncapi")
    assert refused.exit_code == 2
    assert "Leave out --rdb." in refused.stderr


def test_invalid_arguments_of_docs_are_usage_errors(tmp_path: Path) -> None:
    for arguments in (
        ("docs", "nonsense"),
        ("docs", "keywright_meetup.schema:nothing"),
        ("docs", "meetup", "--format", "asyncapi"),
        ("docs", "meetup", "-o", "a", "--check", "b"),
        ("docs", "meetup", "-o", str(tmp_path)),
        ("docs", "meetup", "--rdb", str(tmp_path / "missing.rdb")),
    ):
        assert invoke_keywright(*arguments).exit_code == 2, arguments
