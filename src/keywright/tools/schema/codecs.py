"""Codecs as schema files have them."""

from __future__ import annotations

from typing import Any

from keywright.keyspace.codecs import (
    Boolean,
    Codec,
    Compressed,
    Duration,
    EmptyAsNone,
    EnumOf,
    EpochFloat,
    EpochMs,
    EpochSeconds,
    FirstOf,
    Flag,
    Float,
    IdOf,
    Int64,
    Json,
    LiteralOf,
    MessagePack,
    Pickled,
    Raw,
    Rfc3339,
    Sealed,
    SealedIfBound,
    SecretOf,
    Text,
    Uint64,
)
from keywright.keyspace.kinds import Bits
from keywright.keyspace.kinds.bitmap import BitmapCodec
from keywright.tools.describe.words import own_doc, type_of
from keywright.tools.schema.alphabets import alphabet_schema
from keywright.tools.schema.document import CodecSchema
from keywright.tools.schema.values import Definitions

__all__ = ["SIMPLE", "codec_schema"]

SIMPLE: dict[str, type[Codec[Any]]] = {
    "text": Text,
    "bytes": Raw,
    "int64": Int64,
    "uint64": Uint64,
    "float": Float,
    "rfc3339": Rfc3339,
    "epoch-ms": EpochMs,
    "epoch-seconds": EpochSeconds,
    "epoch-float": EpochFloat,
}
"""The codecs without parameters, by their names."""
_NAMES = {kind: name for name, kind in SIMPLE.items()}


def codec_schema(codec: Codec[Any], definitions: Definitions) -> CodecSchema:
    """Return a codec with its parameters; one that is not of the library is `custom`."""
    words = type_of(codec).words

    def inner(of: Codec[Any]) -> CodecSchema:
        return codec_schema(of, definitions)

    if type(codec) in _NAMES:
        return CodecSchema(_NAMES[type(codec)], words)
    match codec:
        case Json() | MessagePack():
            form = "json" if isinstance(codec, Json) else "msgpack"
            return CodecSchema(
                form, words, schema=definitions.schema_of(codec.python_type), strict=codec.strict
            )
        case IdOf():
            return CodecSchema("id", words, alphabet=alphabet_schema(codec.alphabet))
        case EnumOf():
            members = list(codec.samples)
            return CodecSchema(
                "enum",
                words,
                name=type(members[0]).__name__,
                doc=own_doc(type(members[0])),
                values=tuple(member.value for member in members),
                names=tuple(member.name for member in members),
            )
        case LiteralOf():
            return CodecSchema("literal", words, values=codec.samples)
        case Boolean():
            return CodecSchema("boolean", words, true=codec.true, false=codec.false)
        case Flag():
            return CodecSchema("flag", words, true=codec.word)
        case Duration():
            return CodecSchema("duration", words, unit=codec.symbol)
        case Compressed():
            return CodecSchema(
                "compressed",
                words,
                form=codec.form,
                level=codec.level,
                min_size=codec.min_size,
                max_size=codec.max_size,
                inner=inner(codec.inner),
            )
        case Sealed():
            return CodecSchema(
                "sealed",
                words,
                inner=inner(codec.inner),
                allow_plaintext=codec.allow_plaintext,
                if_bound=isinstance(codec, SealedIfBound),
            )
        case SecretOf():
            return CodecSchema("secret", words, inner=inner(codec.inner))
        case EmptyAsNone():
            return CodecSchema("empty-as-none", words, inner=inner(codec.inner))
        case FirstOf():
            return CodecSchema("first-of", words, codecs=tuple(map(inner, codec.codecs)))
        case Pickled():
            return CodecSchema("pickled", words, most=codec.most)
        case Bits():
            return CodecSchema(
                "bits",
                words,
                width=codec.width,
                signed=codec.signed,
                overflow=codec.overflow,
                at=codec.at,
            )
    if isinstance(codec, BitmapCodec):
        return CodecSchema("bitmap", words, most=codec.bits)
    return CodecSchema(
        "custom",
        words,
        name=type(codec).__name__,
        doc=own_doc(type(codec)),
        schema=None if codec.layout is None else definitions.schema_of(codec.layout),
        inner=None if codec.alike is None else inner(codec.alike),
    )
