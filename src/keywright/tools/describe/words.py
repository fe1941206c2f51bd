"""Types in words that need no Python: the stored type of a codec, and the members of its structures."""

from __future__ import annotations

import ast
import datetime
import decimal
import enum
import functools
import inspect
import itertools
import textwrap
import types
import typing
import uuid
from collections.abc import Iterator
from typing import Any, Literal, NewType, get_args, get_origin, is_typeddict

import msgspec

from keywright.keyspace.alphabets import Alphabet, Choice, OneOf
from keywright.keyspace.codecs import (
    Codec,
    Compressed,
    EmptyAsNone,
    EnumOf,
    FirstOf,
    IdOf,
    Json,
    LiteralOf,
    MessagePack,
    Sealed,
    SecretOf,
)
from keywright.keyspace.codecs.models import REQUIRED, fields_of, has_fields, is_model

__all__ = [
    "MemberDescription",
    "ShapeDescription",
    "TypeDescription",
    "alphabet_words",
    "attribute_docs",
    "default_words",
    "duration",
    "own_doc",
    "paragraphs",
    "type_of",
]


class MemberDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """One hash field, or one field of a structured value."""

    name: str
    type: str
    required: bool = True
    default: str | None = None
    """What stands in when it is absent, where that is more than "nothing"."""
    doc: str = ""
    secret: bool = False
    sealed: bool = False
    optional_seal: bool = False
    """Sealed only where a keyring is bound."""
    expires: str = ""
    """When the hash field expires on its own, in words."""


class ShapeDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """The members of one shape; `when` says how it is recognised among its alternatives."""

    name: str
    members: tuple[MemberDescription, ...]
    doc: str = ""
    when: str = ""
    closed: bool = False
    """Whether a value with other members is refused."""


class TypeDescription(msgspec.Struct, frozen=True, omit_defaults=True):
    """The type of a value, member or item; `shapes` are those of the structures in it, outermost first."""

    words: str
    secret: bool = False
    sealed: bool = False
    shapes: tuple[ShapeDescription, ...] = ()
    optional_seal: bool = False


def type_of(codec: Codec[Any]) -> TypeDescription:
    """Return the stored type of a codec."""
    structures = _Structures()
    words = _codec_words(codec, structures)
    return TypeDescription(words, codec.secret, codec.sealed, structures.shapes(), codec.optional_seal)


def alphabet_words(alphabet: Alphabet[Any]) -> str:
    """Return the valid texts of a variable, in words; for an enum the stored texts of its members."""
    if isinstance(alphabet, Choice):
        return _one_of(alphabet.render(value) for value in alphabet.values)
    if isinstance(alphabet, OneOf):
        return ", or ".join(map(alphabet_words, alphabet.alphabets))
    return alphabet.expected


def default_words(default: Any) -> str | None:
    """Return the default of an absent member in words; None if it has none, or another one each time."""
    value = default() if callable(default) else default
    if callable(default) and value != default():
        return None  # as a random id or the time of day
    if value is None or value is False:
        return None
    plain = value.value if isinstance(value, enum.Enum) else value
    if isinstance(plain, str):
        return plain or "the empty text"
    try:
        return msgspec.json.encode(plain).decode()
    except TypeError:
        return str(plain)


_UNITS = (("days", 86_400_000), ("hours", 3_600_000), ("minutes", 60_000), ("seconds", 1000))


def duration(milliseconds: int) -> str:
    """Return a time span in the largest whole unit: 900,000 is "15 minutes"."""
    for unit, size in _UNITS:
        if milliseconds and milliseconds % size == 0:
            count = milliseconds // size
            return f"{count} {unit if count != 1 else unit[:-1]}"
    return f"{milliseconds} ms"


def own_doc(documented: Any) -> str:
    """Return the docstring of a class or function itself, not an inherited or a generated one."""
    is_class = isinstance(documented, type)
    doc = vars(documented).get("__doc__") if is_class else documented.__doc__
    # A dataclass without one gets its signature for a docstring.
    if not isinstance(doc, str) or (is_class and doc.startswith(f"{documented.__name__}(")):
        return ""
    return paragraphs(doc)


def paragraphs(text: str) -> str:
    """Return a docstring without its indentation, one line a paragraph."""
    blocks = inspect.cleandoc(text).split("\n\n")
    return "\n\n".join(" ".join(block.split()) for block in blocks if block.strip())


def attribute_docs(cls: type) -> dict[str, str]:
    """Return the documentation of the fields of a class: descriptions of Pydantic, and docstrings below.

    The docstrings are those of the class and of its bases, if the source can be read.
    """
    described = {field.attribute: field.doc for field in fields_of(cls) if field.doc} if is_model(cls) else {}
    below = {name: doc for base in reversed(cls.__mro__) for name, doc in _docs_in(base).items()}
    return described | below


@functools.cache
def _docs_in(cls: type) -> dict[str, str]:
    if cls.__module__ == "builtins":
        return {}
    if "__attribute_docs__" in vars(cls):
        return dict(vars(cls)["__attribute_docs__"])  # made from a schema file, without source
    try:
        body = ast.parse(textwrap.dedent(inspect.getsource(cls))).body[0]
    except (OSError, TypeError, SyntaxError):
        return {}  # made at run time, or shipped without source
    assert isinstance(body, ast.ClassDef)
    return dict(_documented(body.body))


def _documented(statements: list[ast.stmt]) -> Iterator[tuple[str, str]]:
    for field, below in itertools.pairwise(statements):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        if isinstance(below, ast.Expr) and isinstance(below.value, ast.Constant):
            doc = below.value.value
            if isinstance(doc, str):
                yield field.target.id, paragraphs(doc)


class _Structures:
    """The structures inside one value, in order and without duplicates: a structure may contain itself."""

    def __init__(self) -> None:
        self._shapes: dict[Any, ShapeDescription | None] = {}

    def name(self, hint: Any) -> str:
        if hint not in self._shapes:
            self._shapes[hint] = None
            self._shapes[hint] = ShapeDescription(
                hint.__name__, tuple(_fields(hint, self)), own_doc(hint), closed=_is_closed(hint)
            )
        return str(hint.__name__)

    def shapes(self) -> tuple[ShapeDescription, ...]:
        return tuple(shape for shape in self._shapes.values() if shape is not None)


def _codec_words(codec: Codec[Any], structures: _Structures) -> str:
    if isinstance(codec, SecretOf):
        return _codec_words(codec.inner, structures)
    if isinstance(codec, Sealed):
        plaintext = " (plaintext is read too)" if codec.allow_plaintext else ""
        return _codec_words(codec.inner, structures) + plaintext
    if isinstance(codec, Compressed):
        return f"{_codec_words(codec.inner, structures)}, {codec.form}-compressed"
    if isinstance(codec, FirstOf):
        return ", or ".join(_codec_words(each, structures) for each in codec.codecs)
    if isinstance(codec, EmptyAsNone):
        return f"{_codec_words(codec.inner, structures)}, or nothing"
    if isinstance(codec, Json | MessagePack):
        form = "JSON" if isinstance(codec, Json) else "MessagePack"
        return f"{form}: {_words(codec.python_type, structures)}"
    if isinstance(codec, EnumOf):
        return _one_of(str(member.value) for member in codec.samples)
    if isinstance(codec, LiteralOf):
        return _one_of(codec.samples)
    if isinstance(codec, IdOf):
        return alphabet_words(codec.alphabet)
    if codec.layout is not None:
        structures.name(codec.layout)
    return codec.expected


_PLAIN: dict[Any, str] = {
    str: "text",
    int: "integer",
    float: "number",
    bool: "true or false",
    bytes: "bytes",
    type(None): "null",
    None: "null",
    Any: "anything",
    object: "anything",
    dict: "object",
    list: "array",
    tuple: "array",
    set: "array",
    frozenset: "array",
    datetime.datetime: "RFC 3339 time",
    datetime.date: "date",
    datetime.time: "time of day",
    datetime.timedelta: "duration",
    decimal.Decimal: "decimal number",
    uuid.UUID: "UUID",
}


def _words(hint: Any, structures: _Structures) -> str:
    """Return a type hint in words, as msgspec encodes it."""
    hint = _bare(hint)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return " or ".join(_words(arm, structures) for arm in arguments)
    if origin is Literal:
        return _one_of(str(value) for value in arguments)
    if origin is dict:
        return f"object from {_words(arguments[0], structures)} to {_words(arguments[1], structures)}"
    if origin is not None and arguments:
        inner = [_words(each, structures) for each in arguments if each is not Ellipsis]
        return f"array of {', '.join(dict.fromkeys(inner))}"
    if hint in _PLAIN:
        return _PLAIN[hint]
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return _one_of(str(member.value) for member in hint)
    if has_fields(hint) or is_typeddict(hint):
        return structures.name(hint)
    return getattr(hint, "__name__", str(hint))


def _bare(hint: Any) -> Any:
    while True:
        if get_origin(hint) is typing.Annotated:
            hint = get_args(hint)[0]
        elif isinstance(hint, NewType):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":  # new in Python 3.12
            hint = hint.__value__
        else:
            return hint


def _fields(hint: Any, structures: _Structures) -> Iterator[MemberDescription]:
    docs = attribute_docs(hint)
    if is_typeddict(hint):
        for name, kind in typing.get_type_hints(hint, include_extras=True).items():
            doc = docs.get(name) or _meta_description(kind)
            required = name in hint.__required_keys__
            yield MemberDescription(name, _words(kind, structures), required, None, doc)
        return
    for field in fields_of(hint):
        required = field.default is REQUIRED
        default = None if required else default_words(field.default)
        doc = docs.get(field.attribute) or _meta_description(field.hint)
        yield MemberDescription(field.stored, _words(field.hint, structures), required, default, doc)


def _is_closed(hint: Any) -> bool:
    config = getattr(hint, "__struct_config__", None)
    return config is not None and bool(config.forbid_unknown_fields)


def _meta_description(hint: Any) -> str:
    metas = (mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, msgspec.Meta))
    return next((meta.description for meta in metas if meta.description), "")


def _one_of(words: Any) -> str:
    listed = [f"`{word}`" for word in words]
    return listed[0] if len(listed) == 1 else f"one of {', '.join(listed)}"
