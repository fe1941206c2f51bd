"""The walk of the guide with Docker's own registry: its YAML as printed, real pushes and pulls."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from docker_registry import Image, docker_registry
from invoking import Invoke
from keywright import connect
from keywright.testing import RedisServer, wait_until
from keywright_registry import blobs

from ..registry_service import served

GUIDE = Path(__file__).parents[2] / "docs" / "guide.md"
TOKEN = "correct horse battery"


def notifications(service_url: str) -> str:
    """The YAML of the guide, for this service and token."""
    yaml = GUIDE.read_text().partition("```yaml\n")[2].partition("```")[0]
    assert "http://127.0.0.1:8088/notifications" in yaml
    assert "Bearer …" in yaml
    return yaml.replace("http://127.0.0.1:8088", service_url).replace("Bearer …", f"Bearer {TOKEN}")


@pytest.fixture(scope="module")
def server() -> Iterator[RedisServer]:
    with RedisServer(tcp=True) as server:
        yield server


@pytest.mark.parametrize("database", [False, True], ids=["Redis alone", "a database"])
def test_real_pushes_and_pulls_are_counted_and_make_repositories(
    server: RedisServer, tmp_path: Path, postgres_url: str, invoke: Invoke, *, database: bool
) -> None:
    server.call("FLUSHALL")
    arguments = ["--set", f"token={TOKEN}", "--flush-every", "0.05"]
    log = tmp_path / "log"
    with served(log, server.url, postgres_url if database else None, *arguments) as service:
        asking = httpx.Client(base_url=service.url, headers={"Authorization": f"Bearer {TOKEN}"})
        with asking, docker_registry(tmp_path, server.tcp_url, notifications(service.url)) as url:
            image = Image(url, "acme/real", b"a layer of one file")
            image.push()
            for _ in range(3):
                image.pull()
            wanted = {"path": "acme/real", "pulls": 3, "pushes": 1}
            wait_until(lambda: asking.get("/counts/acme/real").json() == wanted, "all of it is counted")
            if database:
                found = "/repositories/acme/real"
                wait_until(lambda: asking.get(found).status_code == 200, "the pushed repository exists")
                assert asking.get(found).json()["path"] == "acme/real"
    with connect(server.url) as db:
        descriptor = db.run(blobs.stat_in("acme/real", image.digest))
    assert descriptor is not None
    assert descriptor.size == len(b"a layer of one file")
    audit = invoke("audit", "registry", "--url", server.url)
    assert audit.exit_code == 0, audit.stdout
    assert "refused" not in log.read_text()


def test_a_wrong_token_is_in_the_log_of_the_service(server: RedisServer, tmp_path: Path) -> None:
    log = tmp_path / "log"
    with (
        served(log, server.url, None, "--set", "token=another long token") as service,
        docker_registry(tmp_path, server.tcp_url, notifications(service.url)) as url,
    ):
        Image(url, "acme/real", b"a layer").push()
        wait_until(lambda: "with 401" in log.read_text(), "the refusal is logged")
    assert "another long token" not in log.read_text()
