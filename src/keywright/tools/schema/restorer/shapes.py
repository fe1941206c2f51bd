"""Structs for the shapes of records, entries and bit fields."""

from __future__ import annotations

import base64
from typing import Annotated, Any, Literal

import msgspec

from keywright.keyspace.codecs import Codec
from keywright.keyspace.fields import OtherFields
from keywright.tools.schema.document import MemberSchema, ShapeSchema
from keywright.tools.schema.restorer.codecs import restored_codec
from keywright.tools.schema.restorer.types import Types, attribute_of
from keywright.tools.schema.stand_ins import Constant, maker

__all__ = ["attributes_of", "restored_shape"]


def restored_shape(shape: ShapeSchema, types: Types) -> Any:
    """Return the struct of a shape."""
    attributes = attributes_of(shape)
    fields: list[Any] = []
    docs, renamed = {}, {}
    for member, attribute in zip(shape.members, attributes, strict=True):
        fields.append(_field(member, attribute, types))
        if member.doc:
            docs[attribute] = member.doc
        if attribute != member.name:
            renamed[attribute] = member.name
    others = shape.others
    if others is not None:
        name = Annotated[object, restored_codec(others.field, types)]
        value = Annotated[object, restored_codec(others.value, types)]
        fields.append((others.attribute, Annotated[dict[name, value], OtherFields]))
        if others.doc:
            docs[others.attribute] = others.doc
    made: Any = msgspec.defstruct(
        shape.name,
        fields,
        rename=renamed,
        kw_only=True,
        module=__name__,
        namespace={"__doc__": shape.doc or None},
    )
    made.__attribute_docs__ = docs
    return made


def attributes_of(shape: ShapeSchema) -> list[str]:
    """Return the attributes of the members of a shape, in order."""
    found: dict[str, None] = {}
    for member in shape.members:
        found[attribute_of(member.attribute or member.name, found)] = None
    return list(found)


def _field(member: MemberSchema, attribute: str, types: Types) -> Any:
    codec = restored_codec(member.codec, types)
    # Choices that tell shapes apart are read from the type.
    hint: Any = Annotated[Literal[member.choices] if member.choices else object, codec]
    if member.required:
        return attribute, hint
    default = _default(member, codec)
    return attribute, hint | None if default is None else hint, default


def _default(member: MemberSchema, codec: Codec[Any]) -> Any:
    if member.default_computed is not None:
        return msgspec.field(default_factory=maker(member.default_computed, member.default_words))
    if member.default_base64 is not None:
        value = codec.decode(base64.b64decode(member.default_base64))
    elif member.default is not None:
        value = codec.decode(member.default.encode())
    else:
        return False if member.codec.codec == "flag" else None
    if isinstance(value, list | dict | set) and not value:
        return msgspec.field(default_factory=type(value))
    if isinstance(value, list | dict | set | msgspec.Struct):
        return msgspec.field(default_factory=Constant(value, None))
    return value
