"""What the data is: keys as types, operations as values, relations, versions and proofs. No I/O."""

from keywright.keyspace.alphabets import (
    I64,
    U64,
    Choice,
    Derived,
    FreeText,
    Hex,
    Id,
    OneOf,
    Plain,
    Prefixed,
    RestOfName,
    Sha256,
    SnowflakeId,
    SnowflakeStr,
    before_first,
    sha256_hex,
)
from keywright.keyspace.call import Call, atomic, gather, gather_list
from keywright.keyspace.codecs import (
    Boolean,
    EpochMs,
    EpochSeconds,
    Flag,
    Json,
    Keyring,
    MessagePack,
    Sealed,
    Secret,
    Zstd,
)
from keywright.keyspace.commits.journal import recover
from keywright.keyspace.context import Binding, Context, preview
from keywright.keyspace.expiry import Expiry, expires_at, expires_in
from keywright.keyspace.key import Key
from keywright.keyspace.kinds import Counter, Entry, List, Map, Record, Set, SortedSet, Stream, Value
from keywright.keyspace.proof.rules import Finding, check
from keywright.keyspace.references import refers
from keywright.keyspace.relations import erase, index, many_to_many, many_to_one, one_to_one
from keywright.keyspace.space import Keyspace
from keywright.keyspace.versions.upgrades import Upgrade

__all__ = [
    "I64",
    "U64",
    "Binding",
    "Boolean",
    "Call",
    "Choice",
    "Context",
    "Counter",
    "Derived",
    "Entry",
    "EpochMs",
    "EpochSeconds",
    "Expiry",
    "Finding",
    "Flag",
    "FreeText",
    "Hex",
    "Id",
    "Json",
    "Key",
    "Keyring",
    "Keyspace",
    "List",
    "Map",
    "MessagePack",
    "OneOf",
    "Plain",
    "Prefixed",
    "Record",
    "RestOfName",
    "Sealed",
    "Secret",
    "Set",
    "Sha256",
    "SnowflakeId",
    "SnowflakeStr",
    "SortedSet",
    "Stream",
    "Upgrade",
    "Value",
    "Zstd",
    "atomic",
    "before_first",
    "check",
    "erase",
    "expires_at",
    "expires_in",
    "gather",
    "gather_list",
    "index",
    "many_to_many",
    "many_to_one",
    "one_to_one",
    "preview",
    "recover",
    "refers",
    "sha256_hex",
]
