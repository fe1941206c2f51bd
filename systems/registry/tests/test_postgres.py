"""The private PostgreSQL server: it starts, crashes, comes back with its data, and leaves nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

import keywright.testing
from keywright.errors import EngineError, UsageError
from keywright.testing import descendants, is_running, started_pids, wait_until
from keywright_registry.testing.postgres import PostgresServer, find_postgres


@pytest.fixture
def server(keywright_postgres: PostgresServer) -> Iterator[PostgresServer]:
    keywright_postgres.start()
    yield keywright_postgres
    keywright_postgres.resume()
    keywright_postgres.start()


def value(url: str, statement: str) -> object:
    with psycopg.connect(url, autocommit=True) as connection:
        found = connection.execute(statement.encode()).fetchone()
    return found[0] if found else None


def write(url: str, *statements: str) -> None:
    with psycopg.connect(url, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _segments() -> list[str]:
    """The ids of the machine's shared memory."""
    return [line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]]


def test_every_test_gets_an_empty_database(postgres_url: str, server: PostgresServer) -> None:
    write(postgres_url, "CREATE TABLE kept (number bigint)")
    other = server.make_database()
    try:
        assert value(server.url_of(other), "SELECT count(*) FROM pg_tables WHERE tablename = 'kept'") == 0
        copy = server.make_database(template=other)
        server.remove_database(copy)
    finally:
        server.remove_database(other)
    server.remove_database(other)


def test_a_database_with_connections_can_be_removed(server: PostgresServer) -> None:
    name = server.make_database()
    with psycopg.connect(server.url_of(name)) as connection:
        server.remove_database(name)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_stopped_or_killed_server_comes_back_with_its_data(
    postgres_url: str, server: PostgresServer
) -> None:
    write(postgres_url, "CREATE TABLE kept (number bigint)", "INSERT INTO kept VALUES (7)")
    server.restart()
    assert value(postgres_url, "SELECT number FROM kept") == 7
    server.kill()
    assert server.pid is None
    with pytest.raises(psycopg.OperationalError):
        psycopg.connect(postgres_url)
    server.start()
    assert value(postgres_url, "SELECT number FROM kept") == 7


def test_a_client_that_stays_connected_does_not_hold_up_a_stop(
    postgres_url: str, server: PostgresServer
) -> None:
    with psycopg.connect(postgres_url) as connection:
        server.stop()
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_a_closed_server_leaves_no_process_folder_or_shared_memory() -> None:
    server = PostgresServer().start()
    assert server.pid
    assert server.pid in started_pids()
    folder = Path(server.url.partition("host=")[2].partition("&")[0].replace("%2F", "/"))
    family = [server.pid, *descendants(server.pid)]
    assert len(family) > 1
    segment = (folder / "data" / "postmaster.pid").read_text().splitlines()[6].split()[1]
    assert segment in _segments()
    server.kill()
    server.close()
    server.close()
    wait_until(lambda: not any(map(is_running, family)), "its processes end")
    assert not folder.exists()
    assert segment not in _segments()
    with pytest.raises(UsageError, match="is closed"):
        _ = server.url


def test_it_does_not_run_as_root(server: PostgresServer) -> None:
    assert server.pid
    assert os.stat(f"/proc/{server.pid}").st_uid != 0


def test_without_postgresql_the_error_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("keywright_registry.testing.postgres._DEBIAN_FOLDERS", "nowhere/*/bin")
    with pytest.raises(EngineError, match=r"Install postgresql\.$"):
        find_postgres()


HIDING = """
import keywright_registry.testing.postgres
keywright_registry.testing.postgres._DEBIAN_FOLDERS = "nowhere/*/bin"
def test_it(postgres_url): pass
"""


@pytest.mark.parametrize(("ci", "code", "words"), [("", 0, "1 skipped"), ("true", 1, "1 error")])
def test_a_missing_server_skips_and_fails_in_ci(tmp_path: Path, ci: str, code: int, words: str) -> None:
    (tmp_path / "test_user.py").write_text(HIDING)
    source = str(Path(keywright.testing.__file__).parents[2])
    environment = {**os.environ, "CI": ci, "PATH": "", "PYTHONPATH": source}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    plugins = ["keywright.testing.plugin", "keywright_registry.testing.plugin"]
    options = ["-rs", *(word for plugin in ("no:cacheprovider", *plugins) for word in ("-p", plugin))]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, "test_user.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert run.returncode == code, run.stdout + run.stderr
    assert words in run.stdout
    assert "no PostgreSQL server was found" in run.stdout
