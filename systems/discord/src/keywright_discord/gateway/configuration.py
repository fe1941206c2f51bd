"""The configuration of a gateway. Names are those of the reference gateway where it has them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from difflib import get_close_matches
from enum import Enum
from pathlib import Path
from typing import Any, get_type_hints

import msgspec

from keywright import Binding, Secret
from keywright.errors import UsageError
from keywright_discord import expiries
from keywright_discord.changes import Kind
from keywright_discord.drc.fetcher import RestResource
from keywright_discord.expiries import NO_EXPIRY, Expiries
from keywright_discord.gateway import wire
from keywright_discord.gateway.event_filter import ALL
from keywright_discord.gateway.intents import UNPRIVILEGED, intents_of
from keywright_discord.gateway_events import event_of
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

__all__ = ["READER", "Configuration", "ConfigurationError", "cache_bindings", "load"]

LARGEST_SHARD_COUNT = 1_000_000
GROUP_ITSELF = "."


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
    """The subgroups that consume the events; a dot is the group itself. Without any, the group does."""
    max_length: int | None = None
    """Redis: the messages of a stream beyond which the oldest are dropped, also unread. None: no limit."""

    @property
    def queues(self) -> list[str | None]:
        """The subgroups whose queues are declared; None for the group itself."""
        return [None if each == GROUP_ITSELF else each for each in self.subgroups or [GROUP_ITSELF]]


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
    expiry: dict[Kind, str] = msgspec.field(default_factory=dict)
    """How long entities are kept, by kind: a duration, or `none`. Others keep the layout's default."""

    @property
    def expiries(self) -> Expiries:
        return {kind: expiry_of(text) for kind, text in self.expiry.items()}


class RestPart(Part, frozen=True, kw_only=True):
    """Resources that no gateway event carries."""

    fetch: list[RestResource] = msgspec.field(default_factory=list)
    """The resources to fetch from Discord's REST API into the cache."""
    every: str = "1h"
    """The interval."""


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
    rest: RestPart = RestPart()
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
    _check_choices(given)
    types = get_type_hints(Configuration)
    rest = {
        name: READER.convert(value, types[name], "the configuration", strict=False)
        for name, value in given.items()
    }
    configuration = Configuration(token=bot_token("token", token), **rest)
    _check(configuration)
    return configuration


def _check_choices(given: Mapping[str, Any]) -> None:
    """Raise ConfigurationError, with all valid names, for a setting that is not one of its choices."""
    for setting, choices in CHOICES.items():
        table, _, name = setting.partition(".")
        found = given.get(table, {}).get(name) if isinstance(given.get(table), Mapping) else None
        known = [str(each.value) for each in choices]
        for each in found if isinstance(found, list | dict) else () if found is None else (found,):
            if each not in known:
                near = get_close_matches(str(each), known, 1, cutoff=0.0)[0]
                raise ConfigurationError(
                    setting, f"{each!r} is not one of {', '.join(known)}", f"The nearest is {near}."
                )


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
    if configuration.broker.max_length is not None:
        _check_max_length(configuration.broker.max_length, configuration.broker_url)
    for event in configuration.events:
        _check_event(event)
    _check_addresses(configuration.gateway_url, configuration.prometheus)
    if configuration.cache.layout != "none":
        expiries.check_expiries(configuration.cache.layout, configuration.cache.expiries)
    if configuration.rest.fetch and configuration.cache.layout != "drc":
        raise ConfigurationError(
            "rest.fetch", f"the layout {configuration.cache.layout} has no such keys", "Use the layout drc."
        )
    _ = configuration.message_timeout
    _ = duration(configuration.rest.every)
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


def cache_bindings(configuration: Configuration) -> tuple[Binding, ...]:
    """Return the bindings of the configured cache; none if there is no cache."""
    cache = configuration.cache
    return (
        () if cache.layout == "none" else expiries.cache_bindings(cache.layout, cache.prefix, cache.expiries)
    )


def _check_max_length(length: int, broker_url: str | None) -> None:
    if length < 1:
        raise ConfigurationError("broker.max_length", f"cannot be {length}", "Give a number from 1 on.")
    if broker_url is not None and broker_url.startswith("amqp"):
        raise ConfigurationError(
            "broker.max_length",
            "is a limit of Redis streams",
            "Limit the queues of RabbitMQ with a policy: rabbitmqctl set_policy, max-length.",
        )


def _check_event(name: str) -> None:
    if name == ALL:
        return
    try:
        known = event_of(name)
    except UsageError as error:
        raise ConfigurationError("events", str(error).rstrip("."), "Or name * for all.") from error
    if known.name != name:
        raise ConfigurationError("events", f"{name!r} is written {known.name}", "Write it so.")
    if not known.dispatched:
        raise ConfigurationError("events", f"{name} is not published", "It belongs to the connection.")


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


def assignments(text: str) -> dict[str, str]:
    """Read `kind=duration`, several separated by commas. Raise ValueError for anything else."""
    pairs = [each.partition("=") for each in names(text)]
    for name, equals, length in pairs:
        if not (name and equals and length):
            raise ValueError("write it as in message=1h,presence=none")
    return {name.strip(): length.strip() for name, _, length in pairs}


def expiry_of(text: str) -> timedelta | None:
    """Read a duration, or `none`. Raise UsageError for anything else."""
    return None if text == NO_EXPIRY else duration(text)


CHOICES: Mapping[str, type[Enum]] = {
    "broker.encoding": BrokerEncoding,
    "cache.expiry": Kind,
    "cache.without": Kind,
    "connection.compression": wire.Compression,
    "connection.encoding": wire.Encoding,
    "rest.fetch": RestResource,
}
"""The settings that have one of several names, or a list of them."""

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
    "BROKER_MAX_LENGTH": ("broker.max_length", int),
    "SHARD_STORE_TYPE": ("shard_store.type", str),
    "SHARD_STORE_PREFIX": ("shard_store.prefix", str),
    "PROMETHEUS_ADDRESS": ("prometheus.address", str),
    "PROMETHEUS_ENDPOINT": ("prometheus.endpoint", str),
    "REDIS_URL": ("redis.url", str),
    "AMQP_URL": ("amqp.url", str),
    "CACHE_LAYOUT": ("cache.layout", str),
    "CACHE_PREFIX": ("cache.prefix", str),
    "REST_FETCH": ("rest.fetch", names),
    "REST_EVERY": ("rest.every", str),
    "CACHE_EXPIRY": ("cache.expiry", assignments),
    "CACHE_WITHOUT": ("cache.without", names),
    **LOG_VARIABLES,
}
READER = SettingsReader(
    Configuration,
    VARIABLES,
    "systems/discord/docs/gateway.md",
    secrets=("token",),
    # Not DISCORD_: a bot has variables of its own, such as DISCORD_CLIENT_ID.
    prefix=("BROKER_", "CACHE_", "SHARD_STORE_"),
)
