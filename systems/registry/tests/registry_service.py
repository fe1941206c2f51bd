"""The registry's service for tests: in this event loop, or as a process of its own; and envelopes for it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx

from keywright.testing import wait_until
from keywright_registry.service.configuration import RegistryConfiguration, load
from keywright_registry.service.process import RegistryService

EVENTS_V1 = "application/vnd.docker.distribution.events.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
LAYER = "application/vnd.oci.image.layer.v1.tar+gzip"
PROGRAM = Path(sys.executable).parent / "keywright"


def event(
    action: str = "pull",
    path: str = "acme/web",
    *,
    media_type: str = MANIFEST,
    method: str = "GET",
    **other: Any,
) -> dict[str, Any]:
    """An event as the registry sends it, with all that it has."""
    return {
        "id": str(uuid.uuid4()),
        "timestamp": "2026-01-02T03:04:05.678901234Z",
        "action": action,
        "target": {
            "mediaType": media_type,
            "digest": f"sha256:{'0' * 64}",
            "size": 708,
            "length": 708,
            "repository": path,
            "url": f"http://registry/v2/{path}/manifests/sha256:{'0' * 64}",
            "tag": "latest",
        },
        "request": {
            "id": str(uuid.uuid4()),
            "addr": "192.0.2.7:4711",
            "host": "registry",
            "method": method,
            "useragent": "docker/27.0",
        },
        "actor": {"name": "ann"},
        "source": {"addr": "registry:5000", "instanceID": str(uuid.uuid4())},
        **other,
    }


def envelope(*events: dict[str, Any]) -> bytes:
    return json.dumps({"events": events}).encode()


async def post(client: httpx.AsyncClient, *events: dict[str, Any]) -> httpx.Response:
    return await client.post("/notifications", content=envelope(*events), headers={"Content-Type": EVENTS_V1})


def configuration(redis: str | None = None, **settings: str) -> RegistryConfiguration:
    """Return a configuration on any free port; `database_url="…"` is the setting database.url."""
    flags = {name.replace("_", ".", 1): value for name, value in settings.items()}
    given = (
        {"http.address": "127.0.0.1:0"}
        if redis is None
        else {"http.address": "127.0.0.1:0", "redis.url": redis}
    )
    return load(None, {}, {**given, **flags})


@asynccontextmanager
async def serving(settings: RegistryConfiguration) -> AsyncIterator[httpx.AsyncClient]:
    """A client of a service that runs in this loop on a free port, and is stopped afterwards."""
    service = RegistryService(settings)
    running = asyncio.create_task(service.run())
    while service.address is None:
        if running.done():
            await running
        await asyncio.sleep(0.005)
    try:
        async with httpx.AsyncClient(base_url="http://{}:{}".format(*service.address), timeout=30) as client:
            yield client
    finally:
        service.stop()
        await running


class ServingProcess:
    """`keywright registry serve` as a child."""

    def __init__(self, child: subprocess.Popen[bytes], log: Path) -> None:
        self.child = child
        self.log = log
        self.url = wait_until(self._url, "the service listens")

    def _url(self) -> str | None:
        if self.child.poll() is not None:
            raise AssertionError(f"the service ended: {self.log.read_text()}")
        found = re.search(r"listening on (http://[\w.:]+)", self.log.read_text())
        return found[1] if found else None


@contextmanager
def served(
    log: Path, redis: str, database: str | None, *arguments: str, files: int | None = None
) -> Iterator[ServingProcess]:
    """The command as a process on a free port, with so many open files; killed at the end if it runs."""
    environment = {name: text for name, text in os.environ.items() if not name.startswith("KEYWRIGHT_")}
    environment["REDIS_URL"] = redis
    if database:
        environment["KEYWRIGHT_REGISTRY_DATABASE"] = database
    command = [str(PROGRAM), "registry", "serve", "--port", "0", *arguments]
    if files is not None:
        command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
    with log.open("wb") as stderr:
        child = subprocess.Popen(command, env=environment, stderr=stderr)
    try:
        yield ServingProcess(child, log)
    finally:
        child.kill()
        child.wait()
