"""Keys of a module's type, such as a document of RedisJSON: the tools report them and change nothing else."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from audited import Sample, audited, repaired, undone
from exploring import exploring, key_path
from keywright import Id, Keyspace, Value, connect
from keywright.errors import WrongTypeError
from keywright.testing import RedisServer
from keywright.tools.model import Model

SOURCE = Path(__file__).parents[1] / "modules" / "document_type.c"
TYPE = "ReJSON-RL"

library = Keyspace("library", "Books, and what else was stored there.", prefix="library")


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


def test_a_repair_removes_them_and_its_undo_file_brings_them_back(
    server: RedisServer, tmp_path: Path
) -> None:
    repaired(server.url, SAMPLE, tmp_path / "undo")
    assert audited(server.url, SAMPLE)[1] == []
    assert server.text("GET", "library:book:2") == "Emma"
    undone(server.url, SAMPLE, tmp_path / "undo")
    assert [server.text("TYPE", name) for name in ("library:book:1", "library:other")] == [TYPE, TYPE]
