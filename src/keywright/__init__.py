"""Keywright: the Redis data model as code.

Declare a keyspace, open a database, run calls:

    orders = Keyspace("orders", "What the shop knows of its orders.")

    class Order(Record[OrderDetails], key="order:<order>", space=orders):
        \"\"\"One order.\"\"\"
        order: Id

    with connect() as db:
        db.run(Order("a1").put(details))
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from keywright.engine import *  # noqa: F403  # as its own __all__ lists it
    from keywright.keyspace import *  # noqa: F403  # the same for the declaration language

_ENGINE = (
    "AsyncDatabase",
    "BlockingSubscription",
    "CacheStats",
    "Caching",
    "Clock",
    "Database",
    "Durability",
    "EmbeddedServer",
    "Message",
    "Observer",
    "OpenTelemetryObserver",
    "Retry",
    "RoundTrip",
    "Server",
    "Settings",
    "Subscription",
    "aconnect",
    "connect",
)

__all__ = [
    "I64",
    "U64",
    "Alphabet",
    "AsyncDatabase",
    "Base64Url",
    "Binding",
    "BitFields",
    "Bitmap",
    "Bits",
    "BlockingSubscription",
    "Boolean",
    "Bytes",
    "CacheStats",
    "Caching",
    "Call",
    "Channel",
    "ChannelDeclaration",
    "ChannelPattern",
    "Choice",
    "Claim",
    "ClaimState",
    "Claimed",
    "Clock",
    "Codec",
    "CodecError",
    "Context",
    "Counter",
    "Database",
    "Day",
    "Derived",
    "DueQueue",
    "Durability",
    "Duration",
    "Effect",
    "Email",
    "EmbeddedServer",
    "EmptyAsNone",
    "Entry",
    "EpochFloat",
    "EpochMs",
    "EpochSeconds",
    "Except",
    "Expiry",
    "Finding",
    "FirstOf",
    "Fix",
    "Flag",
    "FreeText",
    "Geo",
    "Gzip",
    "Hex",
    "HyperLogLog",
    "Id",
    "IdOf",
    "Instant",
    "Int64",
    "Invariant",
    "Json",
    "JsonDocument",
    "Key",
    "Keyring",
    "Keyspace",
    "Language",
    "Lease",
    "List",
    "LiveIndex",
    "Lz4",
    "ManyToMany",
    "ManyToOne",
    "Map",
    "Message",
    "MessagePack",
    "Near",
    "Observer",
    "OneOf",
    "OneToOne",
    "Opaque",
    "OpenTelemetryObserver",
    "OtherFields",
    "Pattern",
    "Pickled",
    "Plain",
    "PlainDecimal",
    "Point",
    "Prefixed",
    "Published",
    "Raw",
    "Record",
    "Rest",
    "RestOfName",
    "Retry",
    "RoundTrip",
    "Sealed",
    "SealedIfBound",
    "Secret",
    "Segment",
    "Server",
    "Set",
    "Settings",
    "Sha256",
    "SnowflakeId",
    "SnowflakeStr",
    "SnowflakeText",
    "SortedSet",
    "Stream",
    "Subscription",
    "Truth",
    "Ulid",
    "Upgrade",
    "Uuid",
    "UuidText",
    "Value",
    "Verbatim",
    "Violation",
    "Zlib",
    "Zstd",
    "aconnect",
    "atomic",
    "before_first",
    "characters",
    "check",
    "connect",
    "erase",
    "expires_at",
    "expires_in",
    "gather",
    "gather_list",
    "index",
    "invariant",
    "literal",
    "many_to_many",
    "many_to_one",
    "may_expire",
    "modify",
    "new_token",
    "one_to_one",
    "preview",
    "raw",
    "recover",
    "refers",
    "replace_if",
    "sha256_hex",
]


if not TYPE_CHECKING:  # a checker that saw it would take any name for one of ours

    def __getattr__(name: str) -> Any:
        """Import a name on first use: a declaration needs no engine, the command line's help neither."""
        if name not in __all__:
            raise AttributeError(f"module 'keywright' has no attribute {name!r}")
        home = import_module("keywright.engine" if name in _ENGINE else "keywright.keyspace")
        found = globals()[name] = getattr(home, name)
        return found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
