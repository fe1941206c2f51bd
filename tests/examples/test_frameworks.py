"""The examples for web frameworks and workers, run by the servers that they are written for."""

from __future__ import annotations

import json
import re
import signal
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from examples.frameworks.guestbook import Badge, GuestBadge, guestbook

from keywright import check, connect
from keywright.testing import LOOPBACK, RedisServer, free_port, wait_until
from keywright.testing.runs import Raw
from service_processes import launched

for framework in ("celery", "django", "fastapi", "flask", "gunicorn", "uvicorn"):
    pytest.importorskip(framework)

ROOT = Path(__file__).parents[2]
Get = Callable[..., tuple[int, Any]]


@pytest.fixture
def variables(redis_url: str, keywright_server: RedisServer) -> dict[str, str]:
    return {"REDIS_URL": keywright_server.tcp_url, "PYTHONPATH": str(ROOT)}


@contextmanager
def _serving(program: Sequence[str], variables: dict[str, str], log: Path) -> Iterator[Get]:
    """Run a web server. Yield a function that sends it requests; when the block ends the server stops."""
    port = free_port()
    words = [word.format(port=port) for word in program]

    def request(method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        sent = urllib.request.Request(f"http://{LOOPBACK}:{port}{path}", data, headers, method=method)
        try:
            with urllib.request.urlopen(sent, timeout=30) as answer:
                return answer.status, json.loads(answer.read())
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def answers() -> bool:
        try:
            request("GET", "/")
        except OSError:
            return False
        return True

    written = log / "server.log"
    with launched("-m", *words, variables=variables, log=written, program=(sys.executable,)) as server:
        wait_until(answers, "the web server answers", seconds=60)
        yield request
        assert server.stop() in (0, -signal.SIGTERM), written.read_text()


def _named(raw: Raw, name: str) -> int:
    """Return how many connections have a client name."""
    listed: bytes = raw("CLIENT", "LIST")
    return listed.count(f" name={name} ".encode())


def test_the_keyspace_of_the_examples_is_proved() -> None:
    assert check(guestbook) == []


def test_fastapi_answers_with_models_dataclasses_and_structs(
    variables: dict[str, str], tmp_path: Path, raw: Raw
) -> None:
    with connect(variables["REDIS_URL"]) as db:
        db.run(Badge("ann").set(GuestBadge("first", 3)))
    program = ["uvicorn", "examples.frameworks.fastapi_app:app", "--host", LOOPBACK, "--port", "{port}"]
    with _serving(program, variables, tmp_path) as request:
        profile = {"name": "Ann", "email": None}
        assert request("PUT", "/guests/ann/profile", {"name": "Ann"}) == (200, profile)
        assert request("GET", "/guests/ann/profile") == (200, profile)
        assert request("GET", "/guests/ben/profile")[0] == 404
        assert request("GET", "/guests/a%20b/profile")[0] == 404  # an id that no key has
        assert request("PUT", "/guests/ann/profile", {"name": 7})[0] == 422
        theme = {"colour": "red", "large_text": False}
        assert request("PUT", "/guests/ann/theme", {"colour": "red"}) == (200, theme)
        assert request("GET", "/guests/ann/badge") == (200, {"title": "first", "points": 3})
        with ThreadPoolExecutor(8) as threads:
            counts = threads.map(lambda _: request("POST", "/guests/ann/visits"), range(40))
            assert sorted(counts) == [(200, number) for number in range(1, 41)]
        assert _named(raw, "fastapi") == 1
        raw("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
        assert request("GET", "/guests/ann/profile") == (200, profile)
    wait_until(lambda: _named(raw, "fastapi") == 0, "the connection is closed with the application")


def test_flask_workers_share_a_database_that_was_opened_before_the_fork(
    variables: dict[str, str], tmp_path: Path
) -> None:
    program = ["gunicorn", "--preload", "--workers", "2", "--threads", "4", "--bind", f"{LOOPBACK}:{{port}}"]
    with _serving([*program, "examples.frameworks.flask_app:app"], variables, tmp_path) as request:
        theme = {"colour": "red", "large_text": True}
        assert request("PUT", "/guests/ann/theme", theme) == (200, theme)
        assert request("PUT", "/guests/ann/theme", {"colour": 7})[0] == 400
        assert request("GET", "/guests/ben/theme")[0] == 404
        assert request("GET", "/guests/a%20b/theme")[0] == 404
        workers: set[int] = set()
        visits: list[int] = []

        def both_answered() -> bool:
            with ThreadPoolExecutor(8) as threads:
                for status, answer in threads.map(lambda _: request("POST", "/guests/ann/visits"), range(40)):
                    assert status == 200
                    workers.add(answer["worker"])
                    visits.append(answer["visits"])
            return len(workers) == 2

        wait_until(both_answered, "both workers have answered", seconds=60)
        assert sorted(visits) == list(range(1, len(visits) + 1))
        assert request("GET", "/guests/ann/theme") == (200, theme)


def test_django_has_sync_views_with_wsgi(variables: dict[str, str], tmp_path: Path) -> None:
    program = ["gunicorn", "--workers", "2", "--threads", "2", "--bind", f"{LOOPBACK}:{{port}}"]
    with _serving([*program, "examples.frameworks.django_app:wsgi"], variables, tmp_path) as request:
        assert [request("GET", "/guests/ann/visits") for _ in range(2)] == [
            (200, {"visits": 1}),
            (200, {"visits": 2}),
        ]


def test_django_has_sync_and_async_views_with_asgi(
    variables: dict[str, str], tmp_path: Path, raw: Raw
) -> None:
    program = ["uvicorn", "examples.frameworks.django_app:asgi", "--host", LOOPBACK, "--port", "{port}"]
    with _serving(program, variables, tmp_path) as request:
        assert request("GET", "/async/guests/ann/visits") == (200, {"visits": 1})
        assert request("GET", "/guests/ann/visits") == (200, {"visits": 2})
        assert request("GET", "/guests/a%20b/visits")[0] == 404
        assert request("GET", "/async/guests/a%20b/visits")[0] == 404
        with ThreadPoolExecutor(8) as threads:
            counts = threads.map(lambda _: request("GET", "/async/guests/ann/visits"), range(20))
            assert sorted(answer["visits"] for _, answer in counts) == list(range(3, 23))
        assert _named(raw, "django-async") == 1


def test_celery_has_one_database_for_each_worker_process(
    variables: dict[str, str], tmp_path: Path, raw: Raw, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDIS_URL", variables["REDIS_URL"])
    from examples.frameworks import celery_app

    words = ("-m", "celery", "--app", "examples.frameworks.celery_app", "worker", "--concurrency", "2")
    log = tmp_path / "worker.log"
    with launched(*words, variables=variables, log=log, program=(sys.executable,)) as worker:
        sent = [celery_app.count_visit.delay("ann") for _ in range(40)]
        done = [result.get(timeout=60) for result in sent]
        assert sorted(answer["visits"] for answer in done) == list(range(1, 41))
        assert _named(raw, "celery") == len({answer["worker"] for answer in done})
        assert celery_app.award.delay("ann", "first").get(timeout=60) == 40
        with connect(variables["REDIS_URL"]) as db:
            assert db.run(Badge("ann").get()) == GuestBadge("first", 40)
        assert worker.stop() == 0, log.read_text()
    celery_app.app.close()
    wait_until(lambda: _named(raw, "celery") == 0, "the databases are closed with the workers")


BLOCK = re.compile(r'^```python title="(examples/[^"]+)"\n(.*?)^```$', re.MULTILINE | re.DOTALL)


def test_the_pages_show_the_examples_as_they_are() -> None:
    shown = [found for page in ROOT.glob("docs/howto/*.md") for found in BLOCK.findall(page.read_text())]
    assert {name for name, _ in shown} == {
        f"examples/frameworks/{name}.py"
        for name in ("celery_app", "django_app", "fastapi_app", "flask_app", "guestbook")
    }
    assert [name for name, block in shown if block not in (ROOT / name).read_text()] == []
