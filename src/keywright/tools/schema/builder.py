"""The schema of a model, from its declaration. It is the same for the same declaration."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from keywright.keyspace import Key, Keyspace
from keywright.keyspace.channel import Channel
from keywright.keyspace.codecs import Codec
from keywright.keyspace.expiry import Expiry
from keywright.keyspace.fields import Member, Others, Shape
from keywright.keyspace.kinds.bitmap import MOST_BITS, BitmapCodec
from keywright.keyspace.references import Reference
from keywright.keyspace.storage import Case
from keywright.keyspace.versions.upgrades import Upgrade
from keywright.tools.describe.description import (
    ChannelDescription,
    KeyDescription,
    SpaceDescription,
    UpgradeDescription,
    describe,
    expiry_words,
)
from keywright.tools.describe.words import attribute_docs, default_words, own_doc
from keywright.tools.model import Model
from keywright.tools.schema.alphabets import computed, template_schema
from keywright.tools.schema.codecs import codec_schema
from keywright.tools.schema.document import (
    FORMAT,
    ChannelSchema,
    CodecSchema,
    ComputedSchema,
    ExpirySchema,
    InvariantSchema,
    KeySchema,
    KeyspaceSchema,
    MemberSchema,
    OthersSchema,
    RecodingSchema,
    ReferenceSchema,
    RelationSchema,
    Schema,
    ScoreSchema,
    ShapeSchema,
    SlotSchema,
    UpgradeSchema,
    WhenSchema,
)
from keywright.tools.schema.stand_ins import Constant
from keywright.tools.schema.values import Definitions

__all__ = ["schema_of"]

_HASHES = ("record", "stream", "bit fields")


def schema_of(model: Model) -> Schema:
    """Return the schema of a model."""
    definitions = Definitions()
    spaces = tuple(_space(space, definitions) for space in model.spaces)
    return Schema(FORMAT, model.name, spaces, dict(sorted(definitions.schemas.items())))


def _space(space: Keyspace, definitions: Definitions) -> KeyspaceSchema:
    words = describe(space)
    return KeyspaceSchema(
        name=space.name,
        doc=words.description,
        lead=words.lead,
        prefix=space.prefix,
        version=space.version,
        database=space.database,
        replaced_by=None if space.replaced_by is None else space.replaced_by.name,
        keys=tuple(_key(kind, each, definitions) for kind, each in zip(space, words.keys, strict=True)),
        channels=tuple(
            _channel(kind, each, definitions)
            for kind, each in zip(space.channels, words.channels, strict=True)
        ),
        relations=tuple(_relations(words)),
        references=tuple(map(_reference, space.references)),
        invariants=tuple(
            InvariantSchema(each.name, each.description, each.keys, each.settles, each.note)
            for each in words.invariants
        ),
    )


def _key(kind: type[Key], words: KeyDescription, definitions: Definitions) -> KeySchema:
    declaration, storage = kind.declaration, kind.declaration.storage
    value, field = _held(kind)

    def codec(of: Codec[Any] | None) -> CodecSchema | None:
        return None if of is None else codec_schema(of, definitions)

    fields = declaration.field_expiry
    whole = fields is not None and kind.kind == "map"
    return KeySchema(
        name=kind.__name__,
        kind=kind.kind,
        redis_type=kind.redis_type,
        template=template_schema(declaration.template, declaration.arguments, declaration.derived),
        doc=words.doc,
        slot=SlotSchema(words.slot.hashed, words.slot.tagged, words.slot.fixed, words.slot.shared_with),
        value=codec(value),
        field=codec(field),
        score=_score(storage.score_form),
        shapes=tuple(_shape(shape, case, kind, definitions) for shape, case in storage.cases),
        bits=_bits(value),
        groups=storage.groups,
        expiry=_expiry(declaration.expiry, "keys"),
        field_expiry=_expiry(fields.others if whole and fields else None, "entries"),
        part_of=words.part_of,
        yields_to=words.yields_to,
        fallback=declaration.fallback,
        open=declaration.open,
        hides=kind.hides,
        secret=declaration.secret,
        sealed=declaration.sealed,
        moved_from=tuple(each.declaration.template.source for each in declaration.former),
        upgrades=tuple(_upgrades(kind, words.upgrades, definitions)),
        guarantees=words.guarantees,
    )


def _held(kind: type[Key]) -> tuple[Codec[Any] | None, Codec[Any] | None]:
    """Return the codecs of the values and fields. A HyperLogLog has that of its members."""
    storage = kind.declaration.storage
    if kind.kind == "hyperloglog":
        return kind.declaration.codecs[0], None
    return storage.item, storage.field


def _bits(codec: Codec[Any] | None) -> int | None:
    return codec.bits if isinstance(codec, BitmapCodec) and codec.bits != MOST_BITS else None


def _score(score: Any) -> ScoreSchema | None:
    return None if score is None else ScoreSchema(score.form, score.meaning, score.unit, score.or_never)


def _shape(shape: Shape[Any], case: Case, kind: type[Key], definitions: Definitions) -> ShapeSchema:
    docs = attribute_docs(shape.type)
    expiries = kind.declaration.field_expiry

    def expiry(of: Callable[[], Expiry | None]) -> ExpirySchema | None:
        return None if expiries is None else _expiry(of(), "records")

    return ShapeSchema(
        name=shape.type.__name__,
        doc=own_doc(shape.type),
        when=_when(case),
        members=tuple(
            _member(
                member,
                docs.get(member.attribute, ""),
                expiry(lambda member=member: expiries.of(member.stored) if expiries else None),  # type: ignore[misc]
                definitions,
            )
            for member in shape.members
        ),
        others=None
        if shape.others is None
        else _others(shape.others, docs, expiry(lambda: expiries.others if expiries else None), definitions),
    )


def _when(case: Case) -> WhenSchema | None:
    if case.variable:
        return WhenSchema(variable=case.variable, prefix=case.prefix)
    return WhenSchema(member=case.member, values=case.values) if case.member else None


def _member(member: Member, doc: str, expiry: ExpirySchema | None, definitions: Definitions) -> MemberSchema:
    stored = member.stored.decode()
    default, made = _default(member)
    return MemberSchema(
        name=stored,
        codec=codec_schema(member.codec, definitions),
        required=member.required,
        attribute=None if member.attribute == stored else member.attribute,
        default=default if isinstance(default, str) else None,
        default_base64=base64.b64encode(default).decode() if isinstance(default, bytes) else None,
        default_computed=made,
        default_words=None if member.required or member.codec.secret else default_words(member.default),
        choices=member.literals,
        doc=doc,
        expiry=expiry,
    )


def _default(member: Member) -> tuple[str | bytes | None, ComputedSchema | None]:
    """Return the stored form of the default of a member, or the function that makes it."""
    value = member.default
    if member.required or value is None or value is False:
        return None, None
    if member.codec.secret:
        return None, ComputedSchema("secret")
    if isinstance(value, Constant):
        value = value()
    elif callable(value):
        if not (isinstance(value, type) and value.__module__ == "builtins"):
            return None, computed(value)
        value = value()
    data = member.codec.encode(value)
    try:
        return data.decode(), None
    except UnicodeDecodeError:
        return data, None


def _others(
    others: Others, docs: dict[str, str], expiry: ExpirySchema | None, definitions: Definitions
) -> OthersSchema:
    return OthersSchema(
        others.attribute,
        codec_schema(others.field, definitions),
        codec_schema(others.value, definitions),
        docs.get(others.attribute, ""),
        expiry,
    )


def _expiry(expiry: Expiry | None, what: str) -> ExpirySchema | None:
    if expiry is None:
        return None
    moment = expiry.moment
    return ExpirySchema(
        words=expiry_words(expiry, what),
        ttl_ms=expiry.ttl_ms,
        jitter=expiry.jitter or None,
        since=expiry.since,
        moment=moment.isoformat() if isinstance(moment, datetime) else None,
        computed_from_key=None if expiry.ttl_of is None else computed(expiry.ttl_of),
        computed_from_value=computed(moment) if callable(moment) else None,
        optional=expiry.optional,
    )


def _upgrades(
    kind: type[Key], words: tuple[UpgradeDescription, ...], definitions: Definitions
) -> Iterator[UpgradeSchema]:
    """Yield the upgrades; former names, which the description lists first, are `moved_from` of the key."""
    declared = kind.declaration.upgrades
    for upgrade, described in zip(declared, words[len(words) - len(declared) :], strict=True):
        yield UpgradeSchema(
            upgrade.version,
            described.doc,
            described.moved,
            described.moved_from,
            tuple(_recodings(upgrade, definitions)),
        )


def _recodings(upgrade: Upgrade, definitions: Definitions) -> Iterator[RecodingSchema]:
    for each in upgrade.recodings:
        member = None if each.member is None else each.member.decode()
        yield RecodingSchema(codec_schema(each.former, definitions), member)


def _channel(kind: type[Channel[Any]], words: ChannelDescription, definitions: Definitions) -> ChannelSchema:
    template, _, codec, sharded = kind.declaration
    return ChannelSchema(
        kind.__name__,
        template_schema(template, tuple(kind.arguments())),
        codec_schema(codec, definitions),
        words.doc,
        sharded,
    )


def _relations(words: SpaceDescription) -> Iterator[RelationSchema]:
    for link in words.links:
        yield RelationSchema(
            link.name,
            link.type,
            link.forward,
            link.inverse,
            link.index,
            link.inverse_index,
            link.one_slot,
            link.on_one_server,
            link.on_a_cluster,
        )


def _reference(reference: Reference) -> ReferenceSchema:
    source, target = reference.source, reference.target
    elsewhere = source.declaration.space is not target.declaration.space
    return ReferenceSchema(
        reference.name,
        source.__name__,
        target.__name__,
        reference.required,
        target.declaration.space.name if elsewhere else "",
        computed(reference.ids),
    )
