"""`keywright registry`: repositories into the cache and out of it, counts, and the service as a process."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import tomllib
from collections.abc import Callable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import msgspec
import pytest
from typer.testing import CliRunner, Result

from invoking import Invoke
from keywright import connect
from keywright.cli import app
from keywright.testing import Proxy, Raw, RedisServer
from keywright_registry.cache import RepositoryCache
from keywright_registry.counters import count
from keywright_registry.repository import Counts, Repository
from keywright_registry.schema import CachedRepository

from .registry_databases import on
from .registry_service import EVENTS_V1, PROGRAM, envelope, event, served

WEB: dict[str, Any] = {
    "id": 2**63 - 1,
    "namespace_id": 7,
    "name": "café",
    "path": "acme/café",
    "parent_id": 5,
    "created_at": "2026-06-12T08:45:07.52827Z",
    "updated_at": "2037-02-20T01:16:01+01:00",
    "deleted_at": None,
    "size": 0,
    "last_published_at": None,
}


@pytest.fixture(autouse=True)
def no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEYWRIGHT_REGISTRY_DATABASE", raising=False)
    monkeypatch.delenv("REDIS_URL", raising=False)


def put(data: bytes | str | dict[str, Any], *arguments: str) -> Result:
    text = json.dumps(data) if isinstance(data, dict) else data
    return CliRunner().invoke(app, ["registry", "put", *arguments], input=text, prog_name="keywright")


def repository(path: str, number: int = 1) -> dict[str, Any]:
    return {**WEB, "id": number, "path": path, "name": path.rpartition("/")[2]}


def test_put_and_get_keep_all_fields(invoke: Invoke, redis_url: str) -> None:
    done = put(WEB, "--url", redis_url)
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith(f"cached acme/café (id {2**63 - 1}) as registry:db:{{repository:acme:")
    shown = invoke("registry", "get", "acme/café", "--url", redis_url)
    assert shown.exit_code == 0
    found = json.loads(shown.stdout)
    assert list(found) == list(WEB)
    times = {"created_at", "updated_at"}
    assert {key: found[key] for key in found if key not in times} == {
        key: WEB[key] for key in WEB if key not in times
    }
    for name in times:
        assert datetime.fromisoformat(found[name]) == datetime.fromisoformat(WEB[name])
        assert found[name].endswith("Z")


def test_many_can_be_put_one_a_line_and_other_fields_are_ignored(redis_url: str, raw: Raw) -> None:
    lines = [json.dumps({**repository(f"acme/r{number}"), "msgpack_hex": "00"}) for number in range(3)]
    done = put("\n".join(lines) + "\n\n", "--url", redis_url)
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 3
    assert len(raw.names()) == 3


def test_one_object_may_be_spread_over_lines(redis_url: str) -> None:
    assert put(json.dumps(WEB, indent=2), "--url", redis_url).exit_code == 0


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", "standard input is empty"),
        ("{", "not a repository"),
        ("[]", "Expected `object`"),
        ({key: value for key, value in WEB.items() if key != "path"}, "`path`"),
        ({**WEB, "id": "1"}, "$.id"),
        ({**WEB, "id": 2**63}, "more than 64 bits"),
        (f"{json.dumps(WEB)}\n{json.dumps({**WEB, 'size': 2**63})}", "more than 64 bits"),
        ({**WEB, "size": 1.5}, "$.size"),
        ({**WEB, "created_at": None}, "$.created_at"),
        ({**WEB, "created_at": "yesterday"}, "$.created_at"),
        ({**WEB, "deleted_at": "2026-01-02T03:04:05"}, "no time zone"),
        ({**WEB, "name": "other"}, "not 'other'. Write the last part of the path."),
    ],
)
def test_malformed_input_is_refused_and_nothing_is_cached(
    data: str | dict[str, Any], reason: str, redis_url: str, raw: Raw
) -> None:
    done = put(data, "--url", redis_url)
    assert done.exit_code == 2
    assert reason in done.stderr
    assert raw.names() == set()


def test_a_bad_line_among_good_ones_caches_none_of_them(redis_url: str, raw: Raw) -> None:
    assert put(f"{json.dumps(WEB)}\n{{}}", "--url", redis_url).exit_code == 2
    assert raw.names() == set()


def test_get_of_an_uncached_repository_is_exit_1(invoke: Invoke, redis_url: str) -> None:
    done = invoke("registry", "get", "acme/web", "--url", redis_url)
    assert (done.exit_code, done.stdout, done.stderr) == (1, "", "error: acme/web is not cached.\n")


def test_a_path_that_is_not_utf_8_is_exit_2(redis_url: str) -> None:
    command = [os.fsencode(PROGRAM), b"registry", b"get", b"a\xff", b"--url", redis_url.encode()]
    done = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert b"UTF-8" in done.stderr


def test_an_undecodable_repository_is_exit_1(invoke: Invoke, redis_url: str, raw: Raw) -> None:
    with connect(redis_url) as db:
        raw("SET", db.context.name(CachedRepository.of("acme/web")), b"\xc1")
    done = invoke("registry", "get", "acme/web", "--url", redis_url)
    assert done.exit_code == 1
    assert "Traceback" not in done.stderr


def test_a_dropped_repository_is_gone_and_those_below_stay(invoke: Invoke, redis_url: str) -> None:
    for path in ("acme", "acme/web", "acme/web/api"):
        put(repository(path), "--url", redis_url)
    done = invoke("registry", "drop", "acme/web", "--url", redis_url)
    assert (done.exit_code, done.stdout) == (0, "dropped acme/web\n")
    assert cached(redis_url, "acme", "acme/web", "acme/web/api") == ["acme", "acme/web/api"]
    again = invoke("registry", "drop", "acme/web", "--url", redis_url)
    assert (again.exit_code, again.stdout) == (0, "acme/web was not cached.\n")


def test_a_recursive_drop_takes_everything_below_and_nothing_beside(
    invoke: Invoke, redis_url: str, raw: Raw
) -> None:
    below = ["acme/web", "acme/web/api", "acme/web/api/v1"]
    beside = ["acme", "acme/web-2", "acme/webs/x", "other/acme/web"]
    for path in (*below, *beside):
        put(repository(path), "--url", redis_url)
    with connect(redis_url) as db:
        raw("SET", db.context.name(CachedRepository.of("acme/broken")), b"\xc1")
    done = invoke("registry", "drop", "acme/web", "--recursive", "--url", redis_url)
    assert done.exit_code == 0
    assert done.stdout.splitlines() == [f"dropped {path}" for path in below]
    assert cached(redis_url, *below, *beside) == sorted(beside)


def test_a_recursive_drop_reads_repositories_in_batches(
    invoke: Invoke, redis_url: str, make_proxy: Callable[[str], Proxy]
) -> None:
    proxy = make_proxy(redis_url)
    put("\n".join(json.dumps(repository(f"other/{number}")) for number in range(300)), "--url", redis_url)
    assert len(cached(redis_url, *(f"other/{number}" for number in range(300)))) == 300
    assert invoke("registry", "drop", "other/none", "--recursive", "--url", proxy.url).exit_code == 0
    assert proxy.commands < 100


def cached(redis_url: str, *paths: str) -> list[str]:
    with connect(redis_url) as db:
        return sorted(db.run(RepositoryCache().get_many(paths)))


def test_counts_are_those_of_redis_and_of_the_database(
    invoke: Invoke, redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = f"sqlite:///{tmp_path}/registry.db"
    on(database, lambda metadata: metadata.add_counts("b1", [Counts("acme/web", 10, 20)]))
    with connect(redis_url) as db:
        db.run(count("acme/web", pulls=1, pushes=2))
    alone = invoke("registry", "counts", "acme/web", "--url", redis_url)
    assert json.loads(alone.stdout) == {"path": "acme/web", "pulls": 1, "pushes": 2}
    both = invoke("registry", "counts", "acme/web", "--url", redis_url, "--database", database)
    assert json.loads(both.stdout) == {"path": "acme/web", "pulls": 11, "pushes": 22}
    monkeypatch.setenv("KEYWRIGHT_REGISTRY_DATABASE", database)
    monkeypatch.setenv("REDIS_URL", redis_url)
    assert json.loads(CliRunner().invoke(app, ["registry", "counts", "acme/web"]).stdout)["pulls"] == 11
    unknown = invoke("registry", "counts", "nothing", "--url", redis_url)
    assert json.loads(unknown.stdout) == {"path": "nothing", "pulls": 0, "pushes": 0}


@pytest.mark.parametrize(
    ("database", "code"),
    [
        ("mysql://host/name", 2),
        ("postgresql://me:hunter2@127.0.0.1:1/none", 3),
        ("sqlite:////nowhere/at/all.db", 3),
    ],
)
def test_a_database_that_cannot_be_used_has_its_exit_code_and_keeps_its_password(
    invoke: Invoke, redis_url: str, database: str, code: int
) -> None:
    done = invoke("registry", "counts", "a", "--url", redis_url, "--database", database)
    assert done.exit_code == code
    assert "hunter2" not in done.output


@pytest.mark.parametrize("command", [["get", "a"], ["drop", "a"], ["counts", "a"]])
def test_an_unreachable_server_is_exit_3(invoke: Invoke, command: list[str]) -> None:
    assert invoke("registry", *command, "--url", "unix:///nowhere.sock").exit_code == 3


def test_serving_as_a_process_counts_and_ends_with_0(
    redis_url: str, postgres_url: str, tmp_path: Path, keywright_server: RedisServer
) -> None:
    with served(tmp_path / "log", keywright_server.url, postgres_url) as service:
        headers = {"Content-Type": EVENTS_V1}
        sent = envelope(event("push", "acme/web"))
        answer = httpx.post(f"{service.url}/notifications", content=sent, headers=headers)
        assert answer.json()["counted"] == 1
        service.child.send_signal(signal.SIGINT)
        assert service.child.wait(30) == 0
    assert on(postgres_url, lambda metadata: metadata.counts("acme/web")) == Counts("acme/web", 0, 1)


def test_half_sent_requests_do_not_shut_others_out(keywright_server: RedisServer, tmp_path: Path) -> None:
    """With 100 open files 120 of them did: nobody else was accepted any more."""
    with served(tmp_path / "log", keywright_server.url, None, files=100) as service, ExitStack() as opened:
        address = (urlsplit(service.url).hostname, urlsplit(service.url).port)
        for _ in range(120):
            half = opened.enter_context(socket.create_connection(address, timeout=30))
            half.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-a: ")
        for _ in range(3):
            assert httpx.get(f"{service.url}/health", timeout=30).status_code == 200


@pytest.mark.parametrize(
    ("arguments", "token", "reason"),
    [
        (["--host", "0.0.0.0"], None, "KEYWRIGHT_REGISTRY_TOKEN"),
        (["--host", "0.0.0.0"], "short", "fewer than 16 characters"),
        (["--host", "0.0.0.0"], "", "KEYWRIGHT_REGISTRY_TOKEN"),
        (["--port", "70000"], None, "65535"),
    ],
)
def test_serving_where_it_must_not_is_exit_2(
    redis_url: str, arguments: list[str], token: str | None, reason: str
) -> None:
    environment = {**os.environ, "REDIS_URL": redis_url} | (
        {} if token is None else {"KEYWRIGHT_REGISTRY_TOKEN": token}
    )
    done = subprocess.run(
        [str(PROGRAM), "registry", "serve", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert reason in done.stderr


def test_serving_without_its_servers_is_exit_3(redis_url: str, tmp_path: Path) -> None:
    for url, database in (("unix:///nowhere.sock", None), (redis_url, f"sqlite:///{tmp_path}/none/x.db")):
        arguments = ["registry", "serve", "--port", "0", "--url", url]
        arguments += ["--database", database] if database else []
        assert CliRunner().invoke(app, arguments).exit_code == 3


def test_early_and_late_times_survive_put_and_get(invoke: Invoke, redis_url: str) -> None:
    times = [datetime(1973, 2, 7, 10, 32, 7, 406328, UTC), datetime(9999, 12, 31, tzinfo=UTC)]
    for number, time in enumerate(times):
        wanted = Repository(id=number, namespace_id=1, name="a", path="a", created_at=time, deleted_at=time)
        put(msgspec.json.encode(wanted), "--url", redis_url)
        shown = invoke("registry", "get", "a", "--url", redis_url)
        assert msgspec.json.decode(shown.stdout, type=Repository) == wanted


def test_migrating_creates_the_tables_once(invoke: Invoke, redis_url: str, tmp_path: Path) -> None:
    database = f"sqlite:///{tmp_path}/counts.db"
    missing = invoke("registry", "counts", "acme/web", "--url", redis_url, "--database", database)
    assert (missing.exit_code, "keywright registry migrate" in missing.stderr) == (3, True)
    assert "Applied v01_repositories" in invoke("registry", "migrate", "--database", database).stdout
    assert "Nothing to do" in invoke("registry", "migrate", "--database", database).stdout
    counts = invoke("registry", "counts", "acme/web", "--url", redis_url, "--database", database)
    assert counts.exit_code == 0


def test_migrating_nothing_is_exit_2(invoke: Invoke, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KEYWRIGHT_REGISTRY_DATABASE", raising=False)
    done = invoke("registry", "migrate")
    assert (done.exit_code, "no database is given" in done.stderr) == (2, True)


def test_show_config_prints_every_setting_and_no_secret(
    invoke: Invoke, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "registry.toml"
    file.write_text("token = 'correct horse battery'\n[flush]\nevery = '3s'\n")
    monkeypatch.setenv("KEYWRIGHT_REGISTRY_DATABASE", "postgresql://me:hunter2@db/counts")
    arguments = ["--config", str(file), "--port", "9", "--set", "log.level=debug", "--show-config"]
    done = invoke("registry", "serve", *arguments)
    assert done.exit_code == 0, done.stderr
    shown = tomllib.loads(done.stdout)
    assert shown["token"] == "***"
    assert shown["database"]["url"] == "postgresql://…@db/counts"
    assert shown["http"]["address"] == "127.0.0.1:9"
    assert (shown["flush"]["every"], shown["log"]["level"]) == ("3s", "debug")
    assert f"# {file}" in done.stdout
    assert "# KEYWRIGHT_REGISTRY_DATABASE" in done.stdout
    assert "correct horse" not in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--set", "http.adress=x"], "http.adress: is not a setting. The nearest is http.address"),
        (["--set", "correct horse"], "--set needs a name and a value"),
        (["--set", "flush.every=often"], "is not a duration"),
        (["--log-format", "xml"], "json"),
    ],
)
def test_a_wrong_flag_is_exit_2(invoke: Invoke, redis_url: str, arguments: list[str], said: str) -> None:
    done = invoke("registry", "serve", "--url", redis_url, *arguments)
    assert done.exit_code == 2
    assert said in done.stderr
    assert "correct horse" not in done.stderr


def test_a_structured_log_is_json_lines(keywright_server: RedisServer, tmp_path: Path) -> None:
    flushing = ["--log-format", "json"]
    with served(tmp_path / "log", keywright_server.url, None, *flushing) as service:
        assert httpx.get(f"{service.url}/ready", timeout=30).status_code == 200
        service.child.terminate()
        assert service.child.wait(30) == 0
    lines = [json.loads(line) for line in (tmp_path / "log").read_text().splitlines()]
    assert {"warning", "info"} == {line["level"] for line in lines}
    assert lines[-1]["message"] == "stopped"
