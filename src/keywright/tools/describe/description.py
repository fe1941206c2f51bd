"""A keyspace as plain data: every key, variable, member, relation and rule, in words and as JSON.

Documents, lock files, access rules and explorers are made from it, so that none of them needs to look
inside a declaration. The same declaration always gives the same description.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from keywright.keyspace.alphabets import Alphabet, Derived
from keywright.keyspace.cached_reads import Cached
from keywright.keyspace.channel import Channel
from keywright.keyspace.context import Context
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.field_expiry import FieldExpiry
from keywright.keyspace.fields import Member, Shape
from keywright.keyspace.invariants import Invariant
from keywright.keyspace.key import Key
from keywright.keyspace.proof.rules import one_slot
from keywright.keyspace.references import Reference
from keywright.keyspace.relations import Index, Link, ManyToMany, ManyToOne, OneToOne
from keywright.keyspace.slots import hash_tag
from keywright.keyspace.space import Keyspace
from keywright.keyspace.template import Template
from keywright.keyspace.versions.upgrades import Upgrade
from keywright.tools.describe.globs import glob_escaped, globs_of
from keywright.tools.describe.guarantees import key_guarantees, link_guarantees
from keywright.tools.describe.words import (
    MemberDescription,
    ShapeDescription,
    TypeDescription,
    alphabet_words,
    attribute_docs,
    default_words,
    duration,
    own_doc,
    paragraphs,
    type_of,
)

__all__ = [
    "ChannelDescription",
    "ExpiryDescription",
    "InvariantDescription",
    "KeyDescription",
    "LinkDescription",
    "MemberDescription",
    "ReferenceDescription",
    "ShapeDescription",
    "SlotDescription",
    "SpaceDescription",
    "StoredDescription",
    "TypeDescription",
    "UpgradeDescription",
    "VariableDescription",
    "describe",
    "expiry_words",
]


class VariableDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """One variable of a key's name; `pattern` is a regular expression that its texts match."""

    name: str
    type: str
    pattern: str
    derived_from: str | None = None
    derived_by: str | None = None


class ExpiryDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """The declared expiry of a key; a database may be opened with another one."""

    words: str
    ttl_ms: int | None = None
    jitter: float | None = None
    sliding: bool = False
    since_first_write: bool = False
    moment: str | None = None
    optional: bool = False
    """Only some keys expire."""


class SlotDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """The slot of keys on a cluster: the hashed part of the name, and other keys that share the slot."""

    hashed: str
    tagged: bool = False
    fixed: bool = False
    """Whether all keys of the template live in one slot."""
    shared_with: tuple[str, ...] = ()
    """The keys that share the slot where their variables agree."""
    patterns: tuple[str, ...] = ()
    """Redis globs of the hashed part, without the prefix, which is hashed too unless there is a tag."""


class UpgradeDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """An older version that reads recognise and upgrade."""

    version: str
    doc: str = ""
    moved: bool = False
    moved_from: str | None = None
    """The template of the older version, if it is known."""


class StoredDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a dump has of one key. None is unknown."""

    keys: int
    bytes: int | None = None
    """The size of the values as they are in the file."""
    expiring: float | None = None
    """The share of the keys that expire."""


class KeyDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """One key: its name, content, expiry, and relations with others."""

    name: str
    template: str
    full_template: str
    """The template with the declared prefix and version."""
    redis_type: str
    kind: str
    doc: str
    variables: tuple[VariableDescription, ...]
    slot: SlotDescription
    value: TypeDescription | None = None
    """The type of a value or counter, of the items of a set, sorted set or list, or of a map's values."""
    field: TypeDescription | None = None
    """The type of the fields of a map."""
    score: str | None = None
    shapes: tuple[ShapeDescription, ...] = ()
    """The members of a record or of a stream's entries; several where it may have one of several shapes."""
    expiry: ExpiryDescription | None = None
    field_expiry: ExpiryDescription | None = None
    """The declared expiry of each field of a map."""
    cached: str | None = None
    """How long clients may answer reads from memory; nothing where they may not."""
    part_of: str | None = None
    parts: tuple[str, ...] = ()
    yields_to: tuple[str, ...] = ()
    """The keys that own the names which this one could make as well."""
    fallback: bool = False
    """Whether it has the names that no other key makes."""
    upgrades: tuple[UpgradeDescription, ...] = ()
    secret: bool = False
    sealed: bool = False
    optional_seal: bool = False
    guarantees: tuple[str, ...] = ()
    patterns: tuple[str, ...] = ()
    """Redis globs that together match every name, without prefix and version, and little else."""
    reads: tuple[str, ...] = ()
    """The reading commands of its kind beside those of its Redis type."""
    writes: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    """The declared consumer groups of a stream."""
    stored: StoredDescription | None = None
    """What was counted, in a document of a dump."""


class ChannelDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A channel of messages, which the server does not store."""

    name: str
    template: str
    full_template: str
    doc: str
    variables: tuple[VariableDescription, ...]
    message: TypeDescription
    sharded: bool = False
    patterns: tuple[str, ...] = ()
    """Redis globs that together match every name, without prefix and version."""
    every: str = ""
    """The glob by which a program subscribes to all of them."""


class LinkDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A relation or an index: the names of the keys that are kept consistent, and the guarantees."""

    name: str
    type: str
    """one-to-one, many-to-one, many-to-many, or index."""
    forward: str
    inverse: str
    index: str | None = None
    inverse_index: str | None = None
    one_slot: bool = False
    on_one_server: str = ""
    on_a_cluster: str = ""


class ReferenceDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A stored value of one key that names another; unlike a relation, it is not kept consistent."""

    name: str
    source: str
    target: str
    required: bool = False
    """Whether the target must exist."""
    target_space: str = ""
    """The keyspace of the target, if it is another one."""


class InvariantDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A rule over several keys that the model checks, and repairs in its own way."""

    name: str
    description: str
    keys: tuple[str, ...] = ()
    """The keys that it is checked on."""
    settles: tuple[str, ...] = ()
    """The relations, and the references by their source, whose findings it decides about."""
    note: bool = False
    """Whether a violation is only noted."""


class SpaceDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """A keyspace as declared."""

    name: str
    description: str
    keys: tuple[KeyDescription, ...]
    links: tuple[LinkDescription, ...] = ()
    references: tuple[ReferenceDescription, ...] = ()
    invariants: tuple[InvariantDescription, ...] = ()
    channels: tuple[ChannelDescription, ...] = ()
    prefix: str | None = None
    version: str | None = None
    lead: str = ""
    """The beginning of every name: prefix and version, each with a colon."""
    database: int | None = None
    """The number of the database that has the keys; None is any."""

    def key(self, name: str) -> KeyDescription:
        """Return the key of that name. Raise KeyError if there is none."""
        for key in self.keys:
            if key.name == name:
                return key
        raise KeyError(name)

    def links_of(self, key: str) -> tuple[LinkDescription, ...]:
        """Return the relations and indexes that a key is part of."""
        return tuple(
            link for link in self.links if key in (link.forward, link.inverse, link.index, link.inverse_index)
        )


def describe(space: Keyspace, context: Context | None = None) -> SpaceDescription:
    """Return the description of a keyspace, as it is declared or as a context binds it. Needs no server."""
    lead = (context or Context()).prefixes[space].decode()
    return SpaceDescription(
        name=space.name,
        description=paragraphs(space.description),
        keys=tuple(_key(kind, space, lead) for kind in space),
        links=tuple(_link(link, _tagged(lead)) for link in space.links),
        references=tuple(_reference(each, space) for each in space.references),
        invariants=tuple(map(_invariant, space.invariants)),
        channels=tuple(_channel(each, lead) for each in space.channels),
        prefix=space.prefix,
        version=space.version,
        lead=lead,
        database=space.database,
    )


def _reference(reference: Reference, space: Keyspace) -> ReferenceDescription:
    target = reference.target
    return ReferenceDescription(
        reference.name,
        reference.source.__name__,
        target.__name__,
        reference.required,
        "" if target.declaration.space is space else target.declaration.space.name,
    )


def _invariant(invariant: Invariant) -> InvariantDescription:
    settled = [
        f"{each.name} of {each.source.__name__}" if isinstance(each, Reference) else each.name
        for each in invariant.settles
    ]
    return InvariantDescription(
        invariant.name,
        paragraphs(invariant.description),
        tuple(kind.__name__ for kind in invariant.keys),
        tuple(settled),
        invariant.note,
    )


def _channel(kind: type[Channel[Any]], lead: str) -> ChannelDescription:
    template, _, codec, sharded = kind.declaration
    return ChannelDescription(
        name=kind.__name__,
        template=template.source,
        full_template=lead + template.source,
        doc=paragraphs(kind.__dict__.get("__doc__") or ""),
        variables=tuple(
            VariableDescription(
                name, alphabet_words(template.alphabets[name]), template.alphabets[name].pattern
            )
            for name in template.variables
        ),
        message=type_of(codec),
        sharded=sharded,
        patterns=globs_of(template.forms, template.alphabets),
        every="" if sharded else template.glob().decode(),
    )


def _key(kind: type[Key], space: Keyspace, lead: str) -> KeyDescription:
    template = kind.declaration.template
    field, value, score = _held(kind)
    return KeyDescription(
        name=kind.__name__,
        template=template.source,
        full_template=lead + template.source,
        redis_type=kind.redis_type,
        kind=kind.kind,
        doc=paragraphs(kind.__dict__.get("__doc__") or ""),
        variables=tuple(_variable(kind, name) for name in template.variables),
        slot=_slot(kind, space, lead),
        value=value,
        field=field,
        score=score,
        shapes=tuple(
            _shape(shape, when, kind.declaration.field_expiry)
            for shape, when in kind.declaration.storage.shapes
        ),
        expiry=None if kind.declaration.expiry is None else _expiry(kind.declaration.expiry),
        field_expiry=_field_expiry(kind),
        cached=_cached(kind.declaration.cached),
        part_of=None if kind.declaration.part_of is None else kind.declaration.part_of.__name__,
        parts=tuple(part.__name__ for part in space if part.declaration.part_of is kind),
        yields_to=tuple(each.__name__ for each in kind.declaration.yields_to),
        fallback=kind.declaration.fallback,
        upgrades=(
            *_moves(kind, lead),
            *(_upgrade(kind, upgrade, lead) for upgrade in kind.declaration.upgrades),
        ),
        secret=kind.declaration.secret,
        sealed=kind.declaration.sealed,
        optional_seal=kind.declaration.optional_seal,
        guarantees=key_guarantees(kind),
        patterns=globs_of(template.forms, template.alphabets),
        reads=kind.declaration.storage.reads,
        writes=kind.declaration.storage.writes,
        groups=kind.declaration.storage.groups,
    )


def _held(kind: type[Key]) -> tuple[TypeDescription | None, TypeDescription | None, str | None]:
    """Return the types of the field, the value and the score of a kind, each if it has one."""
    storage = kind.declaration.storage
    field, item = (None if codec is None else type_of(codec) for codec in (storage.field, storage.item))
    return field, item, storage.score_meaning


def _cached(cached: Cached) -> str | None:
    if isinstance(cached, timedelta):
        return f"while unchanged, for {duration(round(cached / timedelta(milliseconds=1)))} at most"
    return "while unchanged" if cached else None


def _field_expiry(kind: type[Key]) -> ExpiryDescription | None:
    declared = kind.declaration.field_expiry
    if declared is None or declared.others is None or kind.kind != "map":
        return None
    return _expiry(declared.others, "entries")


def _shape(shape: Shape[Any], when: str, expiries: FieldExpiry | None) -> ShapeDescription:
    docs = attribute_docs(shape.type)

    def expires(expiry: Expiry | None) -> str:
        return "" if expiry is None else expiry_words(expiry, "records")

    members = tuple(
        _member(
            member,
            docs.get(member.attribute, ""),
            "" if expiries is None else expires(expiries.of(member.stored)),
        )
        for member in shape.members
    )
    if shape.others is not None:
        field, value = type_of(shape.others.field), type_of(shape.others.value)
        words, doc = f"{field.words} → {value.words}", docs.get(shape.others.attribute, "")
        secret = field.secret or value.secret
        rest = "" if expiries is None else expires(expiries.others)
        members += (MemberDescription("*", words, required=False, doc=doc, secret=secret, expires=rest),)
    return ShapeDescription(shape.type.__name__, members, own_doc(shape.type), when)


def _member(member: Member, doc: str, expires: str) -> MemberDescription:
    stored = type_of(member.codec)
    inside = [f"{shape.name}: {_listed(shape)}." for shape in stored.shapes]
    return MemberDescription(
        name=member.stored.decode(),
        type=stored.words,
        required=member.required,
        default=None if member.required else default_words(member.default),
        doc=" ".join(filter(None, [doc, *inside])),
        secret=stored.secret,
        sealed=stored.sealed,
        optional_seal=stored.optional_seal,
        expires=expires,
    )


def _listed(shape: ShapeDescription) -> str:
    return ", ".join(
        f"{each.name} ({each.type}{'' if each.required else ', optional'})" for each in shape.members
    )


def _variable(kind: type[Key], name: str) -> VariableDescription:
    alphabet: Alphabet[Any] = kind.declaration.template.alphabets[name]
    derived = kind.declaration.derived.get(name)
    return VariableDescription(
        name=name,
        type=alphabet_words(alphabet),
        pattern=alphabet.pattern,
        derived_from=derived.source if derived else None,
        derived_by=_derivation(derived) if derived else None,
    )


def _derivation(derived: Derived) -> str:
    """Return the docstring of the function without its verb, as a noun phrase for a table."""
    words = own_doc(derived.by).removeprefix("Return ")
    return words[:1].upper() + words[1:] if words else derived.by.__name__


def _expiry(expiry: Expiry, what: str = "keys") -> ExpiryDescription:
    return ExpiryDescription(
        words=expiry_words(expiry, what),
        ttl_ms=expiry.ttl_ms,
        jitter=expiry.jitter or None,
        sliding=expiry.sliding,
        since_first_write=expiry.since == "first write",
        moment=expiry.moment.isoformat() if isinstance(expiry.moment, datetime) else None,
        optional=expiry.optional,
    )


def expiry_words(expiry: Expiry, what: str) -> str:
    """Return when keys, entries or records expire, in words."""
    if expiry.optional:
        return f"some {what} expire" + (f", within {duration(expiry.ttl_ms)}" if expiry.ttl_ms else "")
    if expiry.ttl_of is not None:
        return own_doc(expiry.ttl_of) or expiry.describe()
    if callable(expiry.moment):
        return own_doc(expiry.moment) or "at a moment that follows from the value"
    if isinstance(expiry.moment, datetime):
        return f"at {expiry.moment.isoformat()}"
    spread = f" ± {expiry.jitter:.0%}" if expiry.jitter else ""
    since = "last read or write" if expiry.sliding else expiry.since
    return f"{duration(expiry.ttl_ms or 0)}{spread} after the {since}"


def _slot(kind: type[Key], space: Keyspace, lead: str) -> SlotDescription:
    template = kind.declaration.template
    if tag := _tagged(lead):
        others = tuple(other.__name__ for other in space if other is not kind)
        return SlotDescription(tag, True, True, others, (glob_escaped(tag),))
    hashed = lead + template.source if template.tag is None else _source(template)
    return SlotDescription(
        hashed=hashed,
        tagged=template.tag is not None,
        fixed=template.slot_fixed,
        shared_with=tuple(
            other.__name__
            for other in space
            if other is not kind and _beside(template, other.declaration.template, lead)
        ),
        patterns=globs_of(template.hashed_forms, template.alphabets),
    )


def _beside(template: Template, other: Template, lead: str) -> bool:
    if lead and (template.tag is None) != (other.tag is None):
        return False
    return template.same_slot_as(other, {name: name for name in template.variables})


def _source(template: Template) -> str:
    return "".join(f"<{part.text}>" if part.is_variable else part.text for part in template.marked_tag or ())


def _tagged(lead: str) -> str | None:
    """Return the hash tag of a prefix, which then is that of every name."""
    tag = hash_tag(lead.encode()).decode()
    return tag if tag != lead else None


def _moves(kind: type[Key], lead: str) -> Iterator[UpgradeDescription]:
    """Yield the former templates of a key, from which reads move it."""
    for former in kind.declaration.former:
        yield UpgradeDescription(
            version="former name", moved=True, moved_from=lead + former.declaration.template.source
        )


def _upgrade(kind: type[Key], upgrade: Upgrade, lead: str) -> UpgradeDescription:
    return UpgradeDescription(
        version=upgrade.version,
        doc=own_doc(upgrade.convert),
        moved=upgrade.moved_from is not None,
        moved_from=_former_template(kind, upgrade, lead),
    )


def _former_template(kind: type[Key], upgrade: Upgrade, lead: str) -> str | None:
    try:
        place = next((each for each in kind.declaration.former_places if each.upgrade is upgrade), None)
    except Exception:  # noqa: BLE001  # the function is the user's; what it refuses is left open
        return None
    return None if place is None else lead + place.former.declaration.template.source


def _link(link: Link, tag: str | None) -> LinkDescription:
    together = tag is not None or one_slot(link)
    on_one_server, on_a_cluster = link_guarantees(link, together=together)
    return LinkDescription(
        name=link.name,
        type=_RELATIONS.get(type(link), "relation"),
        forward=link.keys[0].__name__,
        inverse=link.keys[1].__name__,
        index=_name_of(getattr(link, "index", None)),
        inverse_index=_name_of(getattr(link, "inverse_index", None)),
        one_slot=together,
        on_one_server=on_one_server,
        on_a_cluster=on_a_cluster,
    )


_RELATIONS: dict[type[Link], str] = {
    ManyToOne: "many-to-one",
    OneToOne: "one-to-one",
    ManyToMany: "many-to-many",
    Index: "index",
}


def _name_of(kind: type[Key] | None) -> str | None:
    return None if kind is None else kind.__name__
