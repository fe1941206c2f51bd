"""Keys of a module's type, such as a document of RedisJSON: the tools report them and change nothing else."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest
import redis

from audited import Sample, audited, repaired, undone
from dumps import audited_dump, comparable, dump_of
from exploring import exploring, key_path
from keywright import Id, JsonDocument, Keyspace, Opaque, Value, check, connect, expires_in
from keywright.errors import DeclarationError, WrongTypeError
from keywright.testing import RedisServer, as_user
from keywright.testing.damage import plant
from keywright.tools.acl import AclRole, acl
from keywright.tools.describe.inspection import Hidden, inspect
from keywright.tools.describe.plain import inspected
from keywright.tools.diff import Severity, diff
from keywright.tools.docs.formats import Format, written
from keywright.tools.model import Model, ModelDescription

SOURCE = Path(__file__).parents[1] / "modules" / "document_type.c"
TYPE = "ReJSON-RL"

library = Keyspace("library", "Books, and what else was stored there.", prefix="library")


documents = Keyspace("documents", "Documents of a module.", prefix="documents")


class Document(Opaque, key="document:<document>", space=documents, redis_type=TYPE):
    """A document of a module."""

    document: Id


class Lasting(
    Opaque, key="lasting:<document>", space=documents, redis_type=TYPE, expiry=expires_in(timedelta(hours=1))
):
    """A document that must expire."""

    document: Id


class Book(Value[str], key="book:<book>", space=library):
    """The title of a book."""

    book: Id


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    compiler = shutil.which("cc")
    if compiler is None:
        pytest.skip("there is no C compiler")
    module = tmp_path_factory.mktemp("module") / "document_type.so"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(module), str(SOURCE)], check=True)
    with RedisServer(tcp=True, options={"loadmodule": str(module)}) as server:
        server.text("DOCUMENT.SET", "library:book:1")
        server.text("DOCUMENT.SET", "library:other")
        server.text("SET", "library:book:2", "Emma")
        assert server.text("TYPE", "library:book:1") == TYPE
        yield server


SAMPLE = Sample(Model("library", (library,)), (), lambda _: None, {})
DOCUMENTS = Sample(Model("documents", (documents,)), (), lambda _: None, {})


def test_a_read_raises_an_error_about_the_type(server: RedisServer) -> None:
    with connect(server.url) as database, pytest.raises(WrongTypeError):
        database.run(Book("1").get())


def test_the_audit_reports_the_type_and_the_unknown_key(server: RedisServer) -> None:
    _, findings = audited(server.url, SAMPLE)
    assert sorted((each.code, each.name) for each in findings) == [
        ("KW101", b"library:other"),
        ("KW201", b"library:book:1"),
    ]
    assert any(TYPE in each.reason for each in findings if each.code == "KW201")


@pytest.mark.parametrize("name", ["library:book:1", "library:other"])
def test_the_explorer_shows_the_type_and_no_value(server: RedisServer, name: str) -> None:
    with exploring(server.url, [library]) as explored:
        page = explored.surveyed().get(key_path(name))
    assert page.status_code == 200
    assert TYPE in page.text


def test_a_declared_document_is_as_declared(server: RedisServer) -> None:
    server.text("DOCUMENT.SET", "documents:document:1")
    _, findings = audited(server.url, DOCUMENTS)
    assert findings == []
    with exploring(server.url, [documents]) as explored:
        page = explored.surveyed().get(key_path("documents:document:1"))
    assert page.status_code == 200
    assert TYPE in page.text
    assert Hidden.OPAQUE.value in page.text
    with connect(server.url) as database:
        found = database.run(inspect(Document("1")))
        assert found is not None
        assert inspected(found) == Hidden.OPAQUE.value
        assert database.run(inspect(Document("none"))) is None
        assert database.run(Document("1").stored_type()) == TYPE
        assert database.run(Document("1").dump()) is not None


def test_a_declared_document_of_another_type_or_without_its_expiry_is_found(server: RedisServer) -> None:
    server.text("SET", "documents:document:2", "text")
    server.text("DOCUMENT.SET", "documents:lasting:1")
    _, findings = audited(server.url, DOCUMENTS)
    codes = {each.name: each.code for each in findings}
    assert codes[b"documents:document:2"] == "KW201"
    assert codes[b"documents:lasting:1"] == "KW301"


def test_all_damage_of_documents_is_found(server: RedisServer) -> None:
    server.text("DEL", "documents:document:2", "documents:lasting:1")
    for number in range(10):
        server.text("DOCUMENT.SET", f"documents:document:d{number}")
    with connect(server.url) as database:
        planted = {(each.code, each.name) for each in plant(database, [documents], each=3, unknown=0)}
    _, findings = audited(server.url, DOCUMENTS)
    assert planted == {(each.code, each.name) for each in findings}
    assert {code for code, _ in planted} == {"KW201"}


@pytest.mark.parametrize("role", [AclRole.READER, AclRole.AUDITOR])
def test_a_user_with_access_rules_sees_the_type_of_a_document(server: RedisServer, role: AclRole) -> None:
    server.text("DOCUMENT.SET", "documents:document:1")
    digest = hashlib.sha256(b"s3cret").hexdigest()
    rules = acl(DOCUMENTS.model.described(), role, password_hash=digest)
    server.call(*rules.as_command().split())
    with connect(as_user(server.tcp_url, rules.user, "s3cret")) as database:
        assert database.run(Document("1").stored_type()) == TYPE
        assert database.run(inspect(Document("1"))) is not None


def test_documents_are_proved_and_documented() -> None:
    assert [finding for finding in check(documents) if finding.severity == "error"] == []
    assert "only its module reads" in written(DOCUMENTS.model.described(), Format.MARKDOWN)


def test_another_type_is_a_breaking_change() -> None:
    def described(redis_type: str) -> ModelDescription:
        space = Keyspace("other", "Documents.")

        class Other(Opaque, key="other", space=space, redis_type=redis_type):
            """A document."""

        return Model("other", (space,)).described()

    (change,) = diff(described(TYPE), described("TSDB-TYPE")).changes
    assert change.severity is Severity.BREAKING


@pytest.mark.parametrize("redis_type", [None, "", "two words", 5])
def test_a_type_that_no_server_has_is_a_declaration_error(redis_type: str | None) -> None:
    with pytest.raises(DeclarationError, match="ReJSON-RL"):

        class Wrong(Opaque, key="wrong", space=Keyspace("w", "Wrong."), redis_type=redis_type):
            """Wrong."""


def test_a_repair_removes_them_and_its_undo_file_brings_them_back(
    server: RedisServer, tmp_path: Path
) -> None:
    repaired(server.url, SAMPLE, tmp_path / "undo")
    assert audited(server.url, SAMPLE)[1] == []
    assert server.text("GET", "library:book:2") == "Emma"
    undone(server.url, SAMPLE, tmp_path / "undo")
    assert [server.text("TYPE", name) for name in ("library:book:1", "library:other")] == [TYPE, TYPE]


papers = Keyspace("papers", "The same keys, declared as JSON.", prefix="documents")


class Paper(JsonDocument[dict[str, int]], key="document:<document>", space=papers):
    """A document of a module, as JSON."""

    document: Id


def test_in_a_dump_the_value_of_a_module_is_skipped_and_one_that_should_be_read_is_reported(
    server: RedisServer, tmp_path: Path
) -> None:
    server.text("DOCUMENT.SET", "documents:document:1")
    with redis.Redis.from_url(server.url) as client:
        path = dump_of(client, tmp_path / "dump.rdb")
    for sample in (SAMPLE, DOCUMENTS):
        assert comparable(audited_dump(path, sample)[1]) == comparable(audited(server.url, sample)[1])
    findings = audited_dump(path, Sample(Model("papers", (papers,)), (), lambda _: None, {}))[1]
    unread = {each.name: each.reason for each in findings if each.code == "KW502"}
    assert unread[b"documents:document:1"] == "only its module reads it, so it was not read"
