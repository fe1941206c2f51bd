"""Commands on a model, or a server, whose keys are in several databases."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import redis

from invoking import Invoke
from keywright.tools.diff import diff
from keywright.tools.lock import parsed_lock

MODEL = "numbered_spaces:people,numbered_spaces:pages"


@pytest.fixture
def filled(redis_url: str) -> Iterator[str]:
    """Fill database 0 as declared, and 2 with two faults: one unknown key, one page without its expiry."""
    with redis.Redis.from_url(redis_url) as first, redis.Redis.from_url(f"{redis_url}?db=2") as third:
        for number in range(20):
            first.set(f"user:{number}", f"name {number}")
            third.set(f"user:{number}", number, ex=600)
        third.set("user:late", 5)
        third.set("stray", "x")
        yield redis_url


def data_of(invoke: Invoke, *arguments: str) -> Any:
    done = invoke(*arguments, "--format", "json")
    assert done.exit_code in (0, 1), done.output
    return json.loads(done.stdout)


def test_an_audit_reads_all_databases_of_the_model(invoke: Invoke, filled: str) -> None:
    data = data_of(invoke, "audit", MODEL, "--url", filled)
    assert (data["names"], data["counts"], data["failed"]) == (42, {"KW101": 1, "KW301": 1}, True)
    first, third = data["databases"]
    assert (first["database"], first["names"], first["findings"]) == (0, 20, [])
    assert (third["database"], third["names"]) == (2, 22)
    assert {found["database"] for found in third["findings"]} == {2}


def test_every_format_of_a_report_names_the_databases(invoke: Invoke, filled: str) -> None:
    text = invoke("audit", MODEL, "--url", filled).stdout
    assert "database 0: 20 keys" in text
    assert "database 2: 22 keys" in text
    assert "2 databases, 2 findings." in text
    page = invoke("audit", MODEL, "--url", filled, "--format", "html").stdout
    assert "<h2>Database 0</h2>" in page
    assert 'id="KW301-2"' in page
    runs = json.loads(invoke("audit", MODEL, "--url", filled, "--format", "sarif").stdout)["runs"]
    assert [run["properties"]["database"] for run in runs] == [0, 2]
    assert {result["properties"]["database"] for result in runs[1]["results"]} == {2}
    suites = ElementTree.fromstring(invoke("audit", MODEL, "--url", filled, "--format", "junit").stdout)
    assert [suite.get("name", "").rpartition(", ")[2] for suite in suites] == ["database 0", "database 2"]


@pytest.mark.parametrize("named", ["option", "url"])
def test_a_named_database_is_audited_alone(named: str, invoke: Invoke, filled: str) -> None:
    place = ["--url", filled, "--database", "0"] if named == "option" else ["--url", f"{filled}?db=0"]
    done = invoke("audit", MODEL, *place, "--format", "json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["database"] == 0
    assert "only database 0 is read, since it is named; the model is in 2 too" in done.stderr


def test_a_database_without_a_keyspace_of_the_model_is_refused(invoke: Invoke, filled: str) -> None:
    done = invoke("audit", MODEL, "--url", filled, "--database", "7")
    assert done.exit_code == 2
    assert "has no keyspace in database 7: its keyspaces are in 0, 2" in done.stderr
    done = invoke("audit", MODEL, "--url", f"{filled}?db=2", "--database", "0")
    assert done.exit_code == 2
    assert "--database 0 is not the database 2 of the URL" in done.stderr


def test_a_model_of_any_database_is_audited_where_the_url_says(invoke: Invoke, filled: str) -> None:
    with redis.Redis.from_url(f"{filled}?db=5") as fifth:
        fifth.sadd("note:a", "x")
    data = data_of(invoke, "audit", "numbered_spaces:anywhere", "--url", filled, "--database", "5")
    assert (data["names"], data["counts"]) == (1, {})
    assert "database" not in data


def test_budgets_are_of_templates_of_any_database(invoke: Invoke, filled: str) -> None:
    data = data_of(invoke, "audit", MODEL, "--url", filled, "--max-bytes", "user:<user>=1")
    assert [part["counts"].get("KW501") for part in data["databases"]] == [1, 1]
    done = invoke("audit", MODEL, "--url", filled, "--max-bytes", "nothing=1")
    assert done.exit_code == 2


def test_an_audit_resumes_each_database(invoke: Invoke, filled: str, tmp_path: Path) -> None:
    done = invoke("audit", MODEL, "--url", filled, "--resume", str(tmp_path / "progress"))
    assert done.exit_code == 1
    assert list(tmp_path.iterdir()) == []


def test_statistics_have_a_table_for_each_database(invoke: Invoke, filled: str) -> None:
    data = data_of(invoke, "stats", MODEL, "--url", filled)
    assert [(part["database"], part["names"], part["unknown"]) for part in data["databases"]] == [
        (0, 20, 0),
        (2, 22, 1),
    ]
    text = invoke("stats", MODEL, "--url", filled).stdout
    assert "database 0: 20 keys" in text
    assert "database 2: 22 keys" in text


def test_statistics_without_a_model_are_of_all_databases(invoke: Invoke, filled: str) -> None:
    done = invoke("stats", "--url", filled, "--format", "json")
    assert "keys are in databases 0, 2" in done.stderr
    assert [part["names"] for part in json.loads(done.stdout)["databases"]] == [20, 22]
    narrowed = data_of(invoke, "stats", "--url", filled, "--database", "2")
    assert (narrowed["database"], narrowed["names"]) == (2, 22)


def test_a_repair_mends_each_database(invoke: Invoke, filled: str, tmp_path: Path) -> None:
    undo = tmp_path / "undo"
    arguments = ("repair", MODEL, "--url", filled, "--remove", "unknown")
    assert invoke(*arguments, "--yes", "--undo-to", str(undo)).exit_code == 0
    with redis.Redis.from_url(f"{filled}?db=2") as third:
        assert third.ttl("user:late") > 0
        assert third.exists("stray") == 0
    assert data_of(invoke, "audit", MODEL, "--url", filled)["counts"] == {}
    removed = f"{undo}.db2"
    assert invoke("repair", MODEL, "--url", filled, "--undo", removed, "--yes").exit_code == 2
    done = invoke("repair", MODEL, "--url", filled, "--database", "2", "--undo", removed, "--yes")
    assert done.exit_code == 0, done.output
    with redis.Redis.from_url(f"{filled}?db=2") as third:
        assert third.get("stray") == b"x"


def test_a_command_for_one_database_asks_for_its_number(invoke: Invoke, filled: str) -> None:
    for command in (["get", MODEL, "user:1"], ["migrate", MODEL], ["recover", MODEL]):
        done = invoke(*command, "--url", filled)
        assert done.exit_code == 2
        assert "are in databases 0, 2, and this command works on one of them" in done.stderr
    assert json.loads(invoke("get", MODEL, "user:1", "--url", f"{filled}?db=2").stdout) == 1
    assert json.loads(invoke("get", MODEL, "user:1", "--url", f"{filled}?db=0").stdout) == "name 1"


def test_infer_writes_a_keyspace_for_each_database(
    invoke: Invoke, filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = tmp_path / "from_databases.py"
    done = invoke("infer", "--url", filled, "-o", str(module), "--space", "seen")
    assert done.exit_code == 0, done.output
    assert "keys are in databases 0, 2" in done.stderr
    assert 'Keyspace("seen_0", "Inferred from database 0 of a server.", database=0)' in module.read_text()
    monkeypatch.syspath_prepend(tmp_path)
    model = "from_databases:seen_0,from_databases:seen_2"
    assert invoke("check", model).exit_code == 0
    assert data_of(invoke, "audit", model, "--url", filled)["counts"] == {}


def test_infer_finds_the_only_database_that_has_keys(invoke: Invoke, redis_url: str, tmp_path: Path) -> None:
    with redis.Redis.from_url(f"{redis_url}?db=4") as fifth:
        fifth.mset({f"user:{number}": "x" for number in range(9)})
        module = tmp_path / "fifth.py"
        assert invoke("infer", "--url", redis_url, "-o", str(module)).exit_code == 0
        assert (
            'Keyspace("inferred", "Inferred from database 4 of a server.", database=4)' in module.read_text()
        )
        fifth.mset({f"team:{number}:name": "x" for number in range(9)})
    done = invoke("infer", "--url", redis_url, "--update", str(module))
    assert done.exit_code == 0, done.output
    assert "team:<team>:name" in module.read_text()


def test_documents_and_locks_know_the_database(invoke: Invoke, tmp_path: Path) -> None:
    page = invoke("docs", MODEL).stdout
    assert "The keys are in database 2." in page
    assert json.loads(invoke("docs", MODEL, "--format", "json").stdout)["spaces"][1]["database"] == 2
    lock = tmp_path / "lock"
    assert invoke("diff", MODEL, "--lock", str(lock), "--write").exit_code == 0
    text = lock.read_text()
    assert '"database": 2' in text
    now = parsed_lock(text.encode(), "now").description
    moved = parsed_lock(text.replace('"database": 2', '"database": 3').encode(), "moved").description
    floating = parsed_lock(text.replace('"database": 2', '"database": null').encode(), "floating").description
    assert [(str(change.severity.value), change.what) for change in diff(now, moved).changes] == [
        ("breaking", "is in database 3, no longer in 2")
    ]
    assert [change.what for change in diff(floating, now).changes] == [
        "is bound to database 2; it could be opened in any"
    ]
    assert [change.what for change in diff(now, floating).changes] == ["is not bound to database 2 any more"]
