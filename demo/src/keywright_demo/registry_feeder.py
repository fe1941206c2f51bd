"""The traffic of the sample registry: repositories, pulls and pushes as notifications, lookups."""

from __future__ import annotations

import asyncio
import http.client
import os
import random
import sys
import time
import uuid
from datetime import UTC, datetime
from typing import Any
from urllib.parse import urlsplit

import msgspec

from keywright import aconnect
from keywright_registry.metadata import open_metadata
from keywright_registry.registry import Registry

__all__ = ["envelope", "feed"]

PATHS = tuple(
    f"{group}/{project}"
    for group in ("acme", "globex", "initech")
    for project in ("web", "web/api", "web/cache", "worker", "tools/build", "tools/lint", "base")
)
MEDIA_TYPE = "application/vnd.docker.distribution.events.v1+json"
MANIFEST = "application/vnd.oci.image.manifest.v1+json"
PAUSE_SECONDS = 1.0
MOST_EVENTS = 3


async def create_repositories(database: str) -> None:
    """Create the repositories. The service has created the tables already."""
    async with aconnect(os.environ["REDIS_URL"]) as redis:
        metadata = await open_metadata(database)
        registry = Registry(redis, metadata)
        try:
            async with registry.transaction() as transaction:
                for path in PATHS:
                    repository = await transaction.create_or_find(path)
                    size = random.randrange(10**6, 10**9)
                    await transaction.update(msgspec.structs.replace(repository, size=size))
        finally:
            await registry.close()
            await metadata.close()


def envelope(chance: random.Random) -> dict[str, Any]:
    """Return a notification with some random events: three pulls for every push."""
    return {"events": [_event(chance) for _ in range(chance.randint(1, MOST_EVENTS))]}


def _event(chance: random.Random) -> dict[str, Any]:
    pushed = chance.random() < 0.25
    return {
        "id": str(uuid.uuid4()),
        "timestamp": datetime.now(UTC).isoformat(),
        "action": "push" if pushed else "pull",
        "target": {
            "mediaType": MANIFEST,
            "repository": chance.choice(PATHS),
            "digest": f"sha256:{chance.getrandbits(256):064x}",
            "size": chance.randrange(500, 5000),
            "tag": chance.choice(("latest", "stable", "1.4.2")),
        },
        "request": {"id": str(uuid.uuid4()), "method": "PUT" if pushed else "GET"},
    }


def feed(address: str) -> None:
    """Notify and look up repeatedly, until the process is stopped."""
    chance = random.Random(0)
    service = http.client.HTTPConnection(urlsplit(address).netloc, timeout=10)
    while True:
        try:
            _visit(service, chance)
        except (OSError, http.client.HTTPException) as error:
            print(f"the service does not reply: {error}")
            service.close()
        time.sleep(PAUSE_SECONDS)


def _visit(service: http.client.HTTPConnection, chance: random.Random) -> None:
    _ask(service, "POST", "/notifications", msgspec.json.encode(envelope(chance)))
    # One lookup in ten is of a repository that does not exist, as from real clients.
    path = chance.choice(PATHS) if chance.random() < 0.9 else "acme/none"
    _ask(service, "GET", f"/repositories/{path}")


def _ask(service: http.client.HTTPConnection, method: str, path: str, body: bytes | None = None) -> None:
    service.request(method, path, body, {"Content-Type": MEDIA_TYPE} if body else {})
    answer = service.getresponse()
    answer.read()
    if answer.status not in (200, 404):
        print(f"{method} {path} was answered with {answer.status}")


def main(address: str, database: str) -> None:
    asyncio.run(create_repositories(database))
    print("ready")
    feed(address)


if __name__ == "__main__":
    main(*sys.argv[1:])
