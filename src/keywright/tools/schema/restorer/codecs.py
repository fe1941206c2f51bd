"""Codecs of schema files as those of the library."""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Any

from keywright.errors import KeywrightError, UsageError
from keywright.keyspace.codecs import (
    Boolean,
    Codec,
    Compressed,
    Duration,
    EmptyAsNone,
    EnumOf,
    FirstOf,
    Flag,
    Gzip,
    IdOf,
    Json,
    LiteralOf,
    Lz4,
    MessagePack,
    Pickled,
    Sealed,
    SealedIfBound,
    SecretOf,
    Zlib,
    Zstd,
)
from keywright.keyspace.kinds import Bits
from keywright.tools.schema.codecs import SIMPLE
from keywright.tools.schema.document import CodecSchema
from keywright.tools.schema.restorer.alphabets import restored_alphabet
from keywright.tools.schema.restorer.types import Types
from keywright.tools.schema.stand_ins import foreign_codec

__all__ = ["restored_codec"]

_COMPRESSIONS: dict[str, type[Compressed[Any]]] = {
    "zlib": Zlib,
    "gzip": Gzip,
    "lz4": Lz4,
    "zstd": Zstd,
}


def restored_codec(schema: CodecSchema, types: Types) -> Codec[Any]:
    """Return a codec. One that is not of the library is a stand-in that passes bytes on."""
    if schema.codec in SIMPLE:
        return SIMPLE[schema.codec]()
    make = _MAKERS.get(schema.codec)
    if make is None:
        layout = None if schema.schema is None else types.of(schema.schema)
        return foreign_codec(schema, layout, None if schema.inner is None else _inner(schema, types))
    try:
        return make(schema, types)
    except (TypeError, ValueError, AttributeError, KeyError, KeywrightError) as error:
        raise UsageError(
            f"the codec {schema.codec!r} of the schema file is not complete or not possible: {error}"
        ) from error


def _inner(schema: CodecSchema, types: Types) -> Codec[Any]:
    if schema.inner is None:
        raise TypeError("it has no inner codec")
    return restored_codec(schema.inner, types)


def _enum(schema: CodecSchema, types: Types) -> Codec[Any]:
    members = dict(zip(schema.names, schema.values, strict=True))
    made: Any = enum.Enum(schema.name or "Enum", members)  # type: ignore[misc]  # at run time
    made.__doc__ = schema.doc or None
    return EnumOf(made)


def _compressed(schema: CodecSchema, types: Types) -> Codec[Any]:
    make: Any = _COMPRESSIONS[schema.form or ""]
    codec: Codec[Any] = make(
        _inner(schema, types), level=schema.level, min_size=schema.min_size, max_size=schema.max_size
    )
    return codec


def _sealed(schema: CodecSchema, types: Types) -> Codec[Any]:
    inner = _inner(schema, types)
    return SealedIfBound(inner) if schema.if_bound else Sealed(inner, allow_plaintext=schema.allow_plaintext)


def _identity(schema: CodecSchema, types: Types) -> Codec[Any]:
    if schema.alphabet is None:
        raise TypeError("it has no alphabet")
    return IdOf(restored_alphabet(schema.alphabet))


def _bits(schema: CodecSchema, types: Types) -> Codec[Any]:
    options: Any = {"signed": schema.signed, "overflow": schema.overflow, "at": schema.at}
    return Bits(schema.width or 0, **options)


_MAKERS: dict[str, Callable[[CodecSchema, Types], Codec[Any]]] = {
    "json": lambda schema, types: Json(types.of(schema.schema), strict=schema.strict),
    "msgpack": lambda schema, types: MessagePack(types.of(schema.schema), strict=schema.strict),
    "id": _identity,
    "enum": _enum,
    "literal": lambda schema, _: LiteralOf(*map(str, schema.values)),
    "boolean": lambda schema, _: Boolean(schema.true or "", schema.false or ""),
    "flag": lambda schema, _: Flag(schema.true or ""),
    "duration": lambda schema, _: Duration("ms" if schema.unit == "ms" else "s"),
    "compressed": _compressed,
    "sealed": _sealed,
    "secret": lambda schema, types: SecretOf(_inner(schema, types)),
    "empty-as-none": lambda schema, types: EmptyAsNone(_inner(schema, types)),
    "first-of": lambda schema, types: FirstOf(*(restored_codec(each, types) for each in schema.codecs)),
    "pickled": lambda schema, _: Pickled(most=schema.most or 1),
    "bits": _bits,
}
