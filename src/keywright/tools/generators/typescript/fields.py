"""Records, entries of streams and bit fields: their members as an interface and as fields of the runtime."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from keywright.tools.generators.typescript.alphabets import Expression
from keywright.tools.generators.typescript.codecs import Codecs
from keywright.tools.generators.typescript.notation import (
    Unsupported,
    comment,
    identifier,
    literal,
    member_name,
    string,
)
from keywright.tools.schema.document import MemberSchema, ShapeSchema

__all__ = ["Shapes"]

_COMPUTED = {"list": "[]", "set": "[]", "tuple": "[]", "frozenset": "[]", "dict": "{}"}


class Shapes:
    """The shapes of one module: the interfaces that were needed."""

    def __init__(self, codecs: Codecs, taken: set[str]) -> None:
        self._codecs = codecs
        self._taken = taken
        self._known: dict[bytes, str] = {}
        self.lines: list[str] = []

    def fields(self, shapes: Sequence[ShapeSchema]) -> Expression:
        """Return the fields of a record or entry, and their type. Raise Unsupported with the reason."""
        arms = [(shape, *self._shape(shape)) for shape in shapes]
        kind = " | ".join(dict.fromkeys(name for _, _, name in arms))
        first = shapes[0].when
        if first is None:
            return Expression(arms[0][1], kind)
        if first.variable is not None:
            listed = ", ".join(
                f"{{ prefix: {string(shape.when.prefix or '')}, fields: {code} }}"
                for shape, code, _ in arms
                if shape.when is not None
            )
            return Expression(f"new kw.PrefixFields<{kind}>({string(first.variable)}, [{listed}])", kind)
        tag = next(member for member in shapes[0].members if member.name == first.member)
        listed = ", ".join(
            f"{{ values: {literal(list(shape.when.values))}, fields: {code} }}"
            for shape, code, _ in arms
            if shape.when is not None
        )
        place = literal({"stored": tag.name, "attribute": tag.attribute or tag.name})
        return Expression(f"new kw.UnionFields<{kind}>({place}, [{listed}])", kind)

    def bits(self, shape: ShapeSchema) -> str:
        """Return the members of bit fields."""
        members = []
        for member in shape.members:
            codec = member.codec
            given = {"width": codec.width, "at": codec.at or 0}
            extra = {"signed": True} if codec.signed else {}
            members.append(
                f"{member_name(member.attribute or member.name)}: "
                f"{literal({**given, **extra, 'overflow': codec.overflow or 'refuse'})}"
            )
        return f"{{ {', '.join(members)} }}"

    def _shape(self, shape: ShapeSchema) -> tuple[str, str]:
        """Return the code of a shape and the name of its interface."""
        members = [(member, self._codecs.expression(member.codec)) for member in shape.members]
        for member in shape.members:
            if member.expiry is not None:
                raise Unsupported("members with an expiry of their own")
        listed = ", ".join(_member(member, codec) for member, codec in members)
        others, open_member = "", ""
        if shape.others is not None:
            if shape.others.expiry is not None:
                raise Unsupported("members with an expiry of their own")
            field, value = (
                self._codecs.expression(shape.others.field),
                self._codecs.expression(shape.others.value),
            )
            if field.type != "string":
                raise Unsupported("other members whose names are not text")
            attribute = shape.others.attribute
            others = f", {{ attribute: {string(attribute)}, field: {field.code}, value: {value.code} }}"
            open_member = comment(shape.others.doc, indent="  ") + (
                f"  readonly {member_name(attribute)}: {{ readonly [name: string]: {value.type} }};\n"
            )
        name = self._interface(shape, members, open_member)
        return f"kw.shape<{name if shape.when is None else 'any'}>([{listed}]{others})", name

    def _interface(
        self, shape: ShapeSchema, members: Sequence[tuple[MemberSchema, Expression]], others: str
    ) -> str:
        content = msgspec.json.encode(shape)
        if content not in self._known:
            name = identifier(shape.name, self._taken)
            self._taken.add(name)
            self._known[content] = name
            declared = "".join(
                comment(member.doc, indent="  ")
                + f"  readonly {member_name(member.attribute or member.name)}: {_type(member, codec)};\n"
                for member, codec in members
            )
            self.lines.append(f"\n{comment(shape.doc)}export interface {name} {{\n{declared}{others}}}\n")
        return self._known[content]


def _default(member: MemberSchema) -> str | None:
    if member.default is not None:
        return member.default
    if member.default_base64 is not None:
        raise Unsupported(f"the default of {member.name!r}, which is not text")
    if member.default_computed is None:
        return None
    if member.codec.codec == "json" and member.default_computed.name in _COMPUTED:
        return _COMPUTED[member.default_computed.name]
    raise Unsupported(f"the default of {member.name!r}, which a function of Python makes")


def _member(member: MemberSchema, codec: Expression) -> str:
    attribute = member.attribute or member.name
    if member.required:
        own = "" if attribute == member.name else f", {string(attribute)}"
        return f"kw.required({string(member.name)}, {codec.code}{own})"
    options = {} if attribute == member.name else {"attribute": attribute}
    default = _default(member)
    if default is not None:
        options["default"] = default
    return f"kw.maybe({string(member.name)}, {codec.code}{f', {literal(options)}' if options else ''})"


def _type(member: MemberSchema, codec: Expression) -> str:
    lacks = not member.required and _default(member) is None and member.codec.codec != "flag"
    return f"{codec.type} | null" if lacks and not codec.type.endswith("| null") else codec.type
