"""The registry's service from the wheels: Docker's registry, two copies, and everything killed once."""

from __future__ import annotations

import signal
from contextlib import ExitStack
from pathlib import Path

import psycopg
import redis

from docker_registry import Image, docker_registry
from end_to_end.installation import Installation, answer, wait_ready
from keywright.testing import RedisServer, free_port, wait_until
from keywright_registry.testing.postgres import PostgresServer
from service_processes import ServiceProcess

TOKEN = "correct horse battery"
SETTINGS = """\
token = "{token}"

[redis]
url = "{redis}"

[database]
url = "{database}"

[flush]
every = "200ms"

[log]
format = "json"
"""
ENDPOINT = """\
    - name: {name}
      url: http://127.0.0.1:{port}/notifications
      headers: {{Authorization: [Bearer {token}]}}
      ignoredmediatypes: [application/octet-stream]
      timeout: 2s
      threshold: 1
      backoff: 100ms
"""


def test_counts_are_exact_after_every_part_was_killed(
    installed: Installation, tmp_path: Path, postgres_url: str, keywright_postgres: PostgresServer
) -> None:
    ports = [free_port(), free_port()]
    endpoints = [ENDPOINT.format(name=f"copy{port}", port=port, token=TOKEN) for port in ports]
    config = tmp_path / "registry.toml"
    with RedisServer(tcp=True) as server, ExitStack() as running:
        config.write_text(SETTINGS.format(token=TOKEN, redis=server.tcp_url, database=postgres_url))
        installed.run("registry", "migrate", "--database", postgres_url)

        def start(port: int) -> ServiceProcess:
            arguments = ("registry", "serve", "--config", str(config), "--port", str(port))
            return running.enter_context(installed.service(*arguments, log=tmp_path / f"{port}.log"))

        copies = [start(port) for port in ports]
        for port in ports:
            wait_ready(f"http://127.0.0.1:{port}/ready")
        notifications = "notifications:\n  endpoints:\n" + "".join(endpoints)
        url = running.enter_context(docker_registry(tmp_path, server.tcp_url, notifications))
        image = Image(url, "acme/web", b"a layer")
        image.push()
        image.pull()

        copies[0].signal(signal.SIGKILL)
        image.pull()
        copies[0] = start(ports[0])
        wait_ready(f"http://127.0.0.1:{ports[0]}/ready")
        server.kill()
        image.pull()
        server.start()
        keywright_postgres.kill()
        image.pull()
        wait_until(lambda: answer(f"http://127.0.0.1:{ports[1]}/health")[0] == 503, "it says so")
        keywright_postgres.start()
        image.push()

        def stored() -> list[tuple[str, int, int]]:
            with psycopg.connect(postgres_url) as connection:
                return connection.execute("SELECT path, pulls, pushes FROM repository_counts").fetchall()

        wait_until(lambda: stored() == [("acme/web", 4, 2)], "every pull and push is in the database, once")
        for port in ports:
            wait_until(lambda: answer(f"http://127.0.0.1:{port}/health")[0] == 200, "both are well")  # noqa: B023
        assert [copy.stop() for copy in copies] == [0, 0]
        with psycopg.connect(postgres_url) as connection:
            paths = connection.execute("SELECT path FROM repositories ORDER BY path").fetchall()
        assert paths == [("acme",), ("acme/web",)]
        assert stored() == [("acme/web", 4, 2)]
        with redis.Redis.from_url(server.tcp_url) as raw:
            left = [key for key in raw.keys("registry:*") if b":event:" not in key]
        assert left == [], "no counter, batch or lease is left"
