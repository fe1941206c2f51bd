"""The configuration of the service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path

import msgspec

from keywright import Secret
from keywright.tools.http import LOOPBACK, LOOPBACK_HOSTS, check_token, is_loopback
from keywright_service.configuration import (
    LOG_VARIABLES,
    ConfigurationError,
    LogPart,
    Part,
    ServerPart,
    SettingsReader,
    Variables,
    duration,
    host_and_port,
    take_secrets,
    truth,
)

__all__ = ["DATABASE", "LARGEST_BODY", "READER", "TOKEN", "RegistryConfiguration", "load"]

DATABASE = "KEYWRIGHT_REGISTRY_DATABASE"
TOKEN = "KEYWRIGHT_REGISTRY_TOKEN"
LARGEST_BODY = 1 << 20


class HttpPart(Part, frozen=True, kw_only=True):
    address: str = f"{LOOPBACK}:8088"
    """host:port; port 0 is any free one."""
    largest_body: int = LARGEST_BODY
    """The largest notification, in bytes."""


class FlushPart(Part, frozen=True, kw_only=True):
    every: str = "10s"
    """Between two flushes of counts to the database."""


class CachePart(Part, frozen=True, kw_only=True):
    repositories: bool = False
    """Cache the repositories of the database in Redis, under the keys that a GitLab registry reads: only
    where no GitLab registry uses that Redis, because the ids are those of this database."""


class RegistryConfiguration(Part, frozen=True, kw_only=True):
    """All settings of the service. The token is a Secret."""

    token: Secret[str] | None = None
    """That the registry must send, as bearer token or as basic password. None: loopback only."""
    http: HttpPart = HttpPart()
    redis: ServerPart = ServerPart()
    database: ServerPart = ServerPart()
    """The database of this service. None: counts stay in Redis."""
    flush: FlushPart = FlushPart()
    cache: CachePart = CachePart()
    log: LogPart = LogPart()

    @property
    def address(self) -> tuple[str, int]:
        return host_and_port("http.address", self.http.address)

    @property
    def hosts(self) -> frozenset[str] | None:
        """The hosts that requests may be addressed to. With a token any: a foreign page does not know it."""
        return LOOPBACK_HOSTS | {self.address[0].lower()} if self.token is None else None

    @property
    def flush_every(self) -> timedelta:
        return duration(self.flush.every)


def load(
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> RegistryConfiguration:
    """Read the configuration from flags, the environment and a file. Raise ConfigurationError."""
    given = READER.given(path, environment, flags)
    token = take_secrets(given, "token").get("token")
    found = READER.convert(given, RegistryConfiguration, "the configuration", strict=False)
    configuration = msgspec.structs.replace(found, token=token)
    host, _ = configuration.address
    _ = configuration.flush_every
    if configuration.http.largest_body < 1:
        raise ConfigurationError("http.largest_body", "is not positive", f"The default is {LARGEST_BODY}.")
    if token is not None:
        check_token(token)
    elif not is_loopback(host):
        raise ConfigurationError(
            "http.address",
            f"{host} can be reached from outside, so anyone could post events there",
            f"Set {TOKEN}, or listen on {LOOPBACK}.",
        )
    return configuration


VARIABLES: Variables = {
    TOKEN: ("token", str),
    "KEYWRIGHT_REGISTRY_ADDRESS": ("http.address", str),
    "KEYWRIGHT_REGISTRY_LARGEST_BODY": ("http.largest_body", int),
    DATABASE: ("database.url", str),
    "KEYWRIGHT_REGISTRY_FLUSH_EVERY": ("flush.every", str),
    "KEYWRIGHT_REGISTRY_CACHE": ("cache.repositories", truth),
    "REDIS_URL": ("redis.url", str),
    **LOG_VARIABLES,
}
READER = SettingsReader(
    RegistryConfiguration,
    VARIABLES,
    "systems/registry/docs/guide.md",
    secrets=("token",),
    prefix="KEYWRIGHT_REGISTRY_",
)
