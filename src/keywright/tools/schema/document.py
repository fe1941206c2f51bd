"""The content of a schema file, as structs. `docs/schema.md` is the specification.

Members that have their default are left out of the file. A reader ignores members that it does not know.
"""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = [
    "FORMAT",
    "AlphabetSchema",
    "ChannelSchema",
    "CodecSchema",
    "ComputedSchema",
    "ExpirySchema",
    "InvariantSchema",
    "KeySchema",
    "KeyspaceSchema",
    "MemberSchema",
    "OthersSchema",
    "PartSchema",
    "RecodingSchema",
    "ReferenceSchema",
    "RelationSchema",
    "Schema",
    "ScoreSchema",
    "ShapeSchema",
    "SlotSchema",
    "TemplateSchema",
    "UpgradeSchema",
    "VariableSchema",
    "WhenSchema",
]

FORMAT = 2


class ComputedSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """A function of the Python declaration: its name and docstring. Other languages cannot call it."""

    name: str
    doc: str = ""


class AlphabetSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """The texts of a variable, or of an id inside a value."""

    alphabet: str
    """The name of the alphabet; `custom` is one that a program defines for itself."""
    type: str
    """The type of its values: text, int, bytes, uuid, date, datetime, decimal, bool or enum."""
    pattern: str
    """A regular expression that every text matches in full; valid in ECMAScript with the flag `u` too."""
    words: str
    exact: bool = True
    """Whether every text that matches `pattern` is valid. If not, the parameters decide."""
    max_length: int | None = None
    """The length of the longest texts, in characters; None without a limit."""
    parameters: dict[str, Any] = {}


class VariableSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """One variable of a template."""

    name: str
    alphabet: AlphabetSchema
    optional: bool = False
    """Whether it is part of an optional segment."""
    derived_from: str | None = None
    derived_by: ComputedSchema | None = None


class PartSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """Literal text of a name, or a variable. One of `text`, `base64` and `variable` is present."""

    text: str | None = None
    base64: str | None = None
    """Literal bytes that are not UTF-8."""
    variable: str | None = None
    segment: int = 0
    """The number of the optional segment that it belongs to, from 1; 0 for none."""


class TemplateSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """The names of keys or channels, without the lead of the keyspace."""

    source: str
    parts: tuple[PartSchema, ...]
    encoding: str
    """`utf-8`, or `bytes`: patterns then match the bytes as characters U+0000 to U+00FF."""
    pattern: str
    """A regular expression of a whole name, with a group for each variable in the order of `parts`."""
    variables: tuple[VariableSchema, ...] = ()
    """The variables in the order of a constructor, which may differ from that of `parts`."""
    hash_tag: tuple[PartSchema, ...] | None = None
    """The parts between the braces that a cluster hashes; None if it hashes the whole name."""
    several_divisions: bool = False
    """Whether `pattern` may divide a name otherwise than its one valid reading."""


class CodecSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a value is stored. Which of the members are there depends on `codec`."""

    codec: str
    words: str = ""
    inner: CodecSchema | None = None
    codecs: tuple[CodecSchema, ...] = ()
    schema: Any = None
    """The JSON Schema of the value of `json` and `msgpack`, and of the layout of a `custom` codec."""
    strict: bool = True
    alphabet: AlphabetSchema | None = None
    name: str | None = None
    doc: str = ""
    values: tuple[str | int, ...] = ()
    names: tuple[str, ...] = ()
    true: str | None = None
    false: str | None = None
    unit: str | None = None
    form: str | None = None
    level: int | None = None
    min_size: int | None = None
    max_size: int | None = None
    allow_plaintext: bool = False
    if_bound: bool = False
    most: int | None = None
    width: int | None = None
    signed: bool = False
    overflow: str | None = None
    at: int | None = None


class ScoreSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """The meaning of the scores of a sorted set."""

    score: str
    """float, int, epoch-ms, epoch-seconds, epoch-float or duration."""
    words: str
    unit: str | None = None
    """The unit of a duration: s or ms."""
    or_never: bool = False
    """Whether the score `inf` stands for no value."""


class ExpirySchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """When a key, or a field of a hash, expires."""

    words: str
    since: str
    """first write, last write, or last use: then reads renew it."""
    ttl_ms: int | None = None
    jitter: float | None = None
    moment: str | None = None
    computed_from_key: ComputedSchema | None = None
    computed_from_value: ComputedSchema | None = None
    optional: bool = False
    """Whether only some keys expire, as their writers decide."""


class WhenSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """How one of several shapes is recognised: by the values of a member, or the prefix of a variable."""

    member: str | None = None
    values: tuple[str, ...] = ()
    variable: str | None = None
    prefix: str | None = None


class MemberSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """One member of a record, of an entry of a stream, or of bit fields."""

    name: str
    """The stored name."""
    codec: CodecSchema
    required: bool = False
    attribute: str | None = None
    """The name in Python, if it is another one."""
    default: str | None = None
    """The stored form of the value that an absent member has; without any default it has none (null)."""
    default_base64: str | None = None
    """The same, where it is not UTF-8."""
    default_computed: ComputedSchema | None = None
    default_words: str | None = None
    """The default in words, if the member has one."""
    choices: tuple[str, ...] = ()
    """The values of a member that may tell the shapes of a union apart."""
    doc: str = ""
    expiry: ExpirySchema | None = None


class OthersSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """All fields of a record or entry that its shape does not name."""

    attribute: str
    field: CodecSchema
    value: CodecSchema
    doc: str = ""
    expiry: ExpirySchema | None = None


class ShapeSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """The members that a record or an entry has; unknown members are ignored."""

    name: str
    members: tuple[MemberSchema, ...]
    doc: str = ""
    when: WhenSchema | None = None
    others: OthersSchema | None = None


class RecodingSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """A former codec of a value or member, whose bytes may still be stored."""

    former: CodecSchema
    member: str | None = None


class UpgradeSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """An older version of stored data, which Python programs upgrade when they read it."""

    version: str
    doc: str = ""
    moved: bool = False
    moved_from: str | None = None
    """The full template of the older version, if it is known."""
    recodings: tuple[RecodingSchema, ...] = ()


class SlotSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """The slot of keys on a cluster."""

    hashed: str
    tagged: bool = False
    fixed: bool = False
    shared_with: tuple[str, ...] = ()


class KeySchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """One class of keys."""

    name: str
    kind: str
    redis_type: str
    template: TemplateSchema
    doc: str = ""
    slot: SlotSchema | None = None
    value: CodecSchema | None = None
    """The codec of a value or counter, of members or items, or of the values of a map."""
    field: CodecSchema | None = None
    """The codec of the fields of a map."""
    score: ScoreSchema | None = None
    shapes: tuple[ShapeSchema, ...] = ()
    """The members of a record, of the entries of a stream, or of bit fields."""
    bits: int | None = None
    """The number of bits of a bitmap, if it is limited."""
    groups: tuple[str, ...] = ()
    expiry: ExpirySchema | None = None
    field_expiry: ExpirySchema | None = None
    """The expiry of each entry of a map."""
    part_of: str | None = None
    yields_to: tuple[str, ...] = ()
    """The keys that own the names which this template could make as well."""
    fallback: bool = False
    """Whether it has the names that no other key of the keyspace makes."""
    open: bool = False
    """Whether values may have members that are not declared."""
    hides: tuple[str, ...] = ()
    """Members at any depth that no tool shows."""
    secret: bool = False
    sealed: bool = False
    moved_from: tuple[str, ...] = ()
    """Former templates with the same variables; a Python reader moves keys from there."""
    upgrades: tuple[UpgradeSchema, ...] = ()
    guarantees: tuple[str, ...] = ()


class ChannelSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """One class of pub/sub channels."""

    name: str
    template: TemplateSchema
    message: CodecSchema
    doc: str = ""
    sharded: bool = False


class RelationSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """Keys that are written together: a relation with both sides, or an index of the keys of a class."""

    name: str
    type: str
    """one-to-one, many-to-one, many-to-many, or index."""
    forward: str
    """The key that holds the partner; of an index, the keys that are listed."""
    inverse: str
    """The key of the other direction; of an index, the set that lists them."""
    index: str | None = None
    inverse_index: str | None = None
    one_slot: bool = False
    on_one_server: str = ""
    on_a_cluster: str = ""


class ReferenceSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored value that names other keys; it is not kept consistent."""

    name: str
    source: str
    target: str
    required: bool = False
    target_keyspace: str = ""
    computed: ComputedSchema | None = None


class InvariantSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule over several keys, which a program of the model checks."""

    name: str
    doc: str
    keys: tuple[str, ...] = ()
    settles: tuple[str, ...] = ()
    note: bool = False


class KeyspaceSchema(msgspec.Struct, frozen=True, omit_defaults=True):
    """One keyspace."""

    name: str
    doc: str
    keys: tuple[KeySchema, ...]
    lead: str = ""
    """The beginning of every name: prefix and version, each with a colon. A program may bind another."""
    prefix: str | None = None
    version: str | None = None
    database: int | None = None
    replaced_by: str | None = None
    channels: tuple[ChannelSchema, ...] = ()
    relations: tuple[RelationSchema, ...] = ()
    references: tuple[ReferenceSchema, ...] = ()
    invariants: tuple[InvariantSchema, ...] = ()


class Schema(msgspec.Struct, frozen=True):
    """A whole schema file."""

    format: int
    model: str
    keyspaces: tuple[KeyspaceSchema, ...]
    definitions: dict[str, Any] = msgspec.field(name="$defs", default_factory=dict)
    """The JSON Schemas that values refer to, as `#/$defs/Name`."""
