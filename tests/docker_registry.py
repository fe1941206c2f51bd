"""Docker's registry in a process of its own, and a client that pushes and pulls images."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from keywright.errors import EngineError
from keywright.testing import free_port, require, wait_until

__all__ = ["Image", "docker_registry"]

MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
CONFIGURATION = """\
version: 0.1
log: {{level: warn}}
storage:
  cache: {{blobdescriptor: redis}}
  filesystem: {{rootdirectory: {folder}}}
redis: {{addr: "{redis.hostname}:{redis.port}", password: "{password}", db: 0}}
http: {{addr: "127.0.0.1:{port}"}}
{notifications}
"""


def find() -> Path:
    """Return the program. Raise EngineError if Debian's docker-registry is not installed."""
    found = shutil.which("docker-registry")
    if found is None:
        raise EngineError("docker-registry is not installed. Run apt-get install docker-registry.")
    return Path(found)


@contextmanager
def docker_registry(folder: Path, redis_url: str, notifications: str) -> Iterator[str]:
    """Run the registry until the end of the block; yield its URL. `notifications` is YAML."""
    require(find)
    port = free_port()
    file = folder / "docker-registry.yml"
    redis = urlsplit(redis_url)
    values = {"folder": folder / "images", "port": port, "redis": redis, "password": redis.password or ""}
    file.write_text(CONFIGURATION.format(**values, notifications=notifications))
    with (folder / "docker-registry.log").open("wb") as log:
        child = subprocess.Popen([find(), "serve", str(file)], stdout=log, stderr=log)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: _answers(url), "the Docker registry answers")
        yield url
    finally:
        child.kill()
        child.wait()


class Image:
    """An image of one layer, of a repository in a registry."""

    def __init__(self, registry: str, path: str, layer: bytes) -> None:
        self.digest = _digest(layer)
        self._url = f"{registry}/v2/{path}"
        self._layer = layer

    def push(self) -> None:
        config = b"{}"
        for blob in (config, self._layer):
            started = httpx.post(f"{self._url}/blobs/uploads/").raise_for_status()
            at = httpx.URL(started.headers["Location"]).copy_merge_params({"digest": _digest(blob)})
            httpx.put(at, content=blob).raise_for_status()
        manifest = {
            "schemaVersion": 2,
            "mediaType": MANIFEST_TYPE,
            "config": _descriptor(config, "application/vnd.docker.container.image.v1+json"),
            "layers": [_descriptor(self._layer, "application/vnd.docker.image.rootfs.diff.tar.gzip")],
        }
        headers = {"Content-Type": MANIFEST_TYPE}
        pushed = httpx.put(f"{self._url}/manifests/latest", content=json.dumps(manifest), headers=headers)
        pushed.raise_for_status()

    def pull(self) -> None:
        """Ask whether it is new, as clients do, then get the manifest and the layer."""
        headers = {"Accept": MANIFEST_TYPE}
        httpx.head(f"{self._url}/manifests/latest", headers=headers).raise_for_status()
        httpx.get(f"{self._url}/manifests/latest", headers=headers).raise_for_status()
        assert httpx.get(f"{self._url}/blobs/{self.digest}").content == self._layer


def _digest(blob: bytes) -> str:
    return f"sha256:{hashlib.sha256(blob).hexdigest()}"


def _descriptor(blob: bytes, media_type: str) -> dict[str, object]:
    return {"mediaType": media_type, "size": len(blob), "digest": _digest(blob)}


def _answers(url: str) -> bool:
    try:
        return httpx.get(f"{url}/v2/").status_code == 200
    except httpx.TransportError:
        return False
