"""The configuration of a gateway. Names are those of the reference gateway where it has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from keywright import Secret
from keywright_discord.changes import Kind
from keywright_discord.gateway import wire
from keywright_discord.gateway.intents import UNPRIVILEGED, intents_of
from keywright_discord.layouts import LAYOUTS
from keywright_messaging import Encoding as BrokerEncoding
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
    names,
    take_secrets,
)
from keywright_service.discord_rest import bot_token

__all__ = ["READER", "Configuration", "ConfigurationError", "load"]

LARGEST_SHARD_COUNT = 1_000_000


class ShardsPart(Part, frozen=True, kw_only=True):
    """The shards of the bot and of this process."""

    count: int | None = None
    """Shards of the bot, the same in every process. None: what Discord recommends."""
    ids: list[int] | None = None
    """The shards that this process may run. None: all."""


class BrokerPart(Part, frozen=True, kw_only=True):
    url: str | None = None
    """amqp://, redis:// and its variants, or memory://. None: by type."""
    type: str = "redis"
    """Without url: redis means redis.url, amqp means amqp.url."""
    group: str = "gateway"
    encoding: BrokerEncoding = BrokerEncoding.JSON
    message_timeout: str = "2m"
    """Redis: how long a packet may stay unacknowledged before another process takes it over."""
    prefix: str = ""
    """Redis: the prefix of every stream."""
    quorum: bool = False
    """AMQP: quorum queues."""
    subgroups: list[str] = msgspec.field(default_factory=list)
    """Subgroups whose queues are declared at the start as well, so that they miss nothing."""


class ApiPart(Part, frozen=True, kw_only=True):
    version: int = 10
    scheme: str = "https"
    host: str = "discord.com"

    @property
    def url(self) -> str:
        return f"{self.scheme}://{self.host}/api/v{self.version}"


class PrometheusPart(Part, frozen=True, kw_only=True):
    address: str | None = None
    """host:port of /health and the metrics; the host defaults to loopback. None: neither is served."""
    endpoint: str = "/metrics"


class StorePart(Part, frozen=True, kw_only=True):
    type: str = "redis"
    prefix: str = "gateway"


class CachePart(Part, frozen=True, kw_only=True):
    layout: str = "drc"
    """drc, spectacles, or none."""
    prefix: str | None = None
    without: list[Kind] = msgspec.field(default_factory=list)
    """Kinds of entities that are not cached, such as presence."""


class ConnectionPart(Part, frozen=True, kw_only=True):
    encoding: wire.Encoding = wire.Encoding.JSON
    compression: wire.Compression = wire.Compression.ZSTD
    large_threshold: int = 250


class Configuration(Part, frozen=True, kw_only=True):
    """All settings of a gateway. The token is a Secret."""

    token: Secret[str]
    events: list[str] = msgspec.field(default_factory=list)
    """The events to publish, * for all. Empty: none, only the cache is written."""
    intents: list[str] | None = None
    """By name. None: all that are not privileged."""
    raw_intents: int | None = None
    """The number, instead of names."""
    gateway_version: int = 10
    gateway_url: str | None = None
    """Overrides the URL that Discord's API returns."""
    presence: dict[str, Any] | None = None
    shards: ShardsPart = ShardsPart()
    broker: BrokerPart = BrokerPart()
    api: ApiPart = ApiPart()
    prometheus: PrometheusPart = PrometheusPart()
    shard_store: StorePart = StorePart()
    redis: ServerPart = ServerPart()
    """Sessions, ownership and the cache. A cluster is recognised."""
    amqp: ServerPart = ServerPart()
    cache: CachePart = CachePart()
    connection: ConnectionPart = ConnectionPart()
    log: LogPart = LogPart()

    @property
    def intent_bits(self) -> int:
        if self.raw_intents is not None:
            return self.raw_intents
        return int(UNPRIVILEGED if self.intents is None else intents_of(self.intents))

    @property
    def broker_url(self) -> str | None:
        """The URL of the broker; None if it is Redis, and that has none."""
        if self.broker.url:
            return self.broker.url
        return self.amqp.url if self.broker.type == "amqp" else self.redis.url

    @property
    def message_timeout(self) -> timedelta:
        return duration(self.broker.message_timeout)


def load(
    path: Path | None = None,
    environment: Mapping[str, str] | None = None,
    flags: Mapping[str, str] | None = None,
) -> Configuration:
    """Read the configuration from flags, the environment and a file. Raise ConfigurationError."""
    given = READER.given(path, environment, flags)
    token = take_secrets(given, "token").get("token")
    if token is None:
        raise ConfigurationError("token", "is missing", "Set DISCORD_TOKEN, or token in the file.")
    types = get_type_hints(Configuration)
    rest = {
        name: READER.convert(value, types[name], "the configuration", strict=False)
        for name, value in given.items()
    }
    configuration = Configuration(token=bot_token("token", token), **rest)
    _check(configuration)
    return configuration


def _check(configuration: Configuration) -> None:
    shards = configuration.shards
    if shards.count is not None and not 1 <= shards.count <= LARGEST_SHARD_COUNT:
        raise ConfigurationError("shards.count", f"cannot be {shards.count}", "Give a number from 1 on.")
    if shards.ids is not None:
        check_ids(shards.ids, shards.count)
    if configuration.cache.layout not in (*LAYOUTS, "none"):
        raise _none_of("cache.layout", configuration.cache.layout, [*LAYOUTS, "none"])
    if configuration.broker.type not in ("redis", "amqp"):
        raise _none_of("broker.type", configuration.broker.type, ["redis", "amqp"])
    if configuration.broker.type == "amqp" and not configuration.broker_url:
        raise ConfigurationError("amqp.url", "is missing", "Set AMQP_URL, or broker.type to redis.")
    if configuration.shard_store.type != "redis":
        raise _none_of("shard_store.type", configuration.shard_store.type, ["redis"])
    if configuration.redis.url and "," in configuration.redis.url:
        raise ConfigurationError(
            "redis.url", "names several servers", "Name one: a cluster is recognised by asking it."
        )
    _check_addresses(configuration.gateway_url, configuration.prometheus)
    _ = configuration.message_timeout
    _ = configuration.intent_bits


def _check_addresses(gateway_url: str | None, prometheus: PrometheusPart) -> None:
    if gateway_url and not gateway_url.startswith(("ws://", "wss://")):
        raise ConfigurationError("gateway_url", f"cannot be {gateway_url!r}", "Begin it with wss://.")
    if not prometheus.endpoint.startswith("/"):
        raise ConfigurationError(
            "prometheus.endpoint", f"cannot be {prometheus.endpoint!r}", "Begin it with /."
        )
    if prometheus.address is not None:
        host_and_port("prometheus.address", prometheus.address)


def check_ids(ids: list[int], count: int | None) -> None:
    """Raise ConfigurationError unless these are different shard ids below `count`."""
    if not ids or len(set(ids)) < len(ids):
        raise ConfigurationError(
            "shards.ids", "is empty or has an id twice", "Name each id once, or omit it."
        )
    wrong = [each for each in ids if each < 0 or (count is not None and each >= count)]
    if wrong:
        raise ConfigurationError(
            "shards.ids", f"{wrong[0]} is not below shards.count ({count})", "Ids begin with 0."
        )


def _none_of(subject: str, found: str, known: list[str]) -> ConfigurationError:
    return ConfigurationError(subject, f"must be {' or '.join(known)}, not {found!r}", "Choose one of them.")


def _numbers(text: str) -> list[int]:
    return [int(each) for each in names(text)]


def _object(text: str) -> dict[str, Any]:
    try:
        return msgspec.json.decode(text, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        raise ValueError(str(error)) from error


VARIABLES: Variables = {
    "DISCORD_TOKEN": ("token", str),
    "DISCORD_EVENTS": ("events", names),
    "DISCORD_INTENTS": ("intents", names),
    "DISCORD_RAW_INTENTS": ("raw_intents", int),
    "DISCORD_GATEWAY_VERSION": ("gateway_version", int),
    "DISCORD_GATEWAY_URL": ("gateway_url", str),
    "DISCORD_SHARD_COUNT": ("shards.count", int),
    "DISCORD_SHARD_IDS": ("shards.ids", _numbers),
    "DISCORD_PRESENCE": ("presence", _object),
    "DISCORD_API_VERSION": ("api.version", int),
    "DISCORD_API_PROTOCOL": ("api.scheme", str),
    "DISCORD_API_HOST": ("api.host", str),
    "DISCORD_ENCODING": ("connection.encoding", str),
    "DISCORD_COMPRESSION": ("connection.compression", str),
    "DISCORD_LARGE_THRESHOLD": ("connection.large_threshold", int),
    "BROKER_URL": ("broker.url", str),
    "BROKER_TYPE": ("broker.type", str),
    "BROKER_GROUP": ("broker.group", str),
    "BROKER_ENCODING": ("broker.encoding", str),
    "BROKER_MESSAGE_TIMEOUT": ("broker.message_timeout", str),
    "BROKER_PREFIX": ("broker.prefix", str),
    "BROKER_SUBGROUPS": ("broker.subgroups", names),
    "SHARD_STORE_TYPE": ("shard_store.type", str),
    "SHARD_STORE_PREFIX": ("shard_store.prefix", str),
    "PROMETHEUS_ADDRESS": ("prometheus.address", str),
    "PROMETHEUS_ENDPOINT": ("prometheus.endpoint", str),
    "REDIS_URL": ("redis.url", str),
    "AMQP_URL": ("amqp.url", str),
    "CACHE_LAYOUT": ("cache.layout", str),
    "CACHE_PREFIX": ("cache.prefix", str),
    "CACHE_WITHOUT": ("cache.without", names),
    **LOG_VARIABLES,
}
READER = SettingsReader(Configuration, VARIABLES, "systems/discord/docs/gateway.md", secrets=("token",))
