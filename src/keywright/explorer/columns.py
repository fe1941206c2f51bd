"""The columns of a template: its variables, the members of its values, and what the server knows of a key.

Declared members have the type of their declaration. Members of objects whose type says nothing (JSON without
a struct) are found in the rows that were read.
"""

from __future__ import annotations

import enum
import types
import typing
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, Literal

import msgspec

from keywright.explorer.atlas import spelled
from keywright.explorer.presentation import NAMES
from keywright.explorer.tables import Column, Row, moment_of
from keywright.keyspace import Key
from keywright.keyspace.alphabets.choices import Choice
from keywright.keyspace.codecs import Codec
from keywright.keyspace.codecs.models import fields_of, has_fields
from keywright.keyspace.kinds.geo import Point
from keywright.tools.describe.inspection import Hidden

__all__ = [
    "EXPIRES",
    "MEMORY",
    "VALUE",
    "codec_columns",
    "found_columns",
    "members_of",
    "shape_columns",
    "variable_columns",
]

MOST_FOUND = 60
LONGEST_TITLE = 80
VALUE = "value"
EXPIRES = Column("expires", "Expires in", "span", "time to live", role="fact")
MEMORY = Column("memory", "Memory", "size", "bytes in the server's memory", role="fact")


def variable_columns(kind: type[Key]) -> list[Column]:
    """Return a column for each variable of the name."""
    columns = []
    for name, alphabet in kind.declaration.template.alphabets.items():
        sort, choices = _sort_of(alphabet.python_type)
        if isinstance(alphabet, Choice):
            sort, choices = "choice", tuple(map(alphabet.render, alphabet.values))
        columns.append(Column(name, name, sort, alphabet.expected, choices, role="variable"))
    return columns


def shape_columns(kind: type[Key], taken: Iterable[str]) -> list[Column]:
    """Return a column for each member of a record, or of the entries of a stream."""
    columns: dict[str, Column] = {}
    for shape, _ in kind.declaration.storage.shapes:
        for member in shape.members:
            title = member.stored.decode()
            sort, choices = _sort_of(member.codec.python_type)
            if member.literals:
                sort, choices = "choice", tuple(map(str, member.literals))
            before = columns.get(title)
            if before is not None:
                choices = tuple(dict.fromkeys((*before.choices, *choices)))
                sort = sort if sort == before.sort else "data"
            secret = member.codec.secret or member.codec.sealed or title in kind.hides
            columns[title] = Column(title, title, sort, member.codec.expected, choices, secret)
    return _distinct(columns.values(), taken)


def codec_columns(kind: type[Key], codec: Codec[Any] | None, taken: Iterable[str]) -> list[Column]:
    """Return the columns of values that one codec reads: the members of its type, or one column."""
    if codec is None:
        return []
    hidden = codec.secret or codec.sealed
    members = {} if hidden else _members_of_type(codec.python_type)
    if not members:
        sort, choices = _sort_of(codec.python_type)
        return _distinct([Column(VALUE, VALUE, sort, codec.expected, choices, hidden)], taken)
    columns = []
    for title, hint in members.items():
        sort, choices = _sort_of(hint)
        columns.append(Column(title, title, sort, "", choices, title in kind.hides))
    return _distinct(columns, taken)


def found_columns(
    rows: Sequence[Row], titles: Mapping[str, str], kind: type[Key], known: Iterable[Column]
) -> list[Column]:
    """Return columns for the members of objects that were read, beside those that are known: names first."""
    seen = {column.id for column in known}
    counts: Counter[str] = Counter()
    for row in rows:
        counts.update(name for name in row.values if name not in seen)
    order = {name: place for place, name in enumerate(counts)}
    common = sorted(counts, key=lambda name: (name not in NAMES, -counts[name], order[name]))[:MOST_FOUND]
    found = []
    for name in common:
        values = [value for row in rows if (value := row.values.get(name)) is not None]
        title = titles.get(name, name)
        printable = "".join(char if char.isprintable() else spelled(char) for char in title[:LONGEST_TITLE])
        hidden = title in kind.hides or any(isinstance(value, Hidden) for value in values)
        found.append(Column(name, printable, _sort_of_values(values), "", (), hidden))
    return found


def members_of(value: Any) -> dict[str, Any] | None:
    """Return the members of an object by their stored names; None for a value without members."""
    if isinstance(value, Mapping):
        return {name if isinstance(name, str) else str(name): item for name, item in value.items()}
    if isinstance(value, Point):
        return {"latitude": value.latitude, "longitude": value.longitude}
    if has_fields(type(value)):
        found = {
            stored: getattr(value, attribute, None) for stored, attribute in _attributes(value.__class__)
        }
        config = getattr(value, "__struct_config__", None)
        if config is not None and config.tag_field:
            return {config.tag_field: config.tag, **found}
        return found
    return None


@cache
def _attributes(kind: Any) -> tuple[tuple[str, str], ...]:
    return tuple((field.stored, field.attribute) for field in fields_of(kind))


def _distinct(columns: Iterable[Column], taken: Iterable[str]) -> list[Column]:
    """Return columns whose ids differ from others: a member that is named as a variable gets a dot."""
    names = {*taken, EXPIRES.id, MEMORY.id}
    return [
        msgspec.structs.replace(column, id=f".{column.id}") if column.id in names else column
        for column in columns
    ]


def _members_of_type(hint: Any) -> dict[str, Any]:
    members: dict[str, Any] = {}
    for arm in _arms(hint):
        if typing.is_typeddict(arm):
            found = typing.get_type_hints(arm, include_extras=True).items()
        elif arm is Point:
            found = {"latitude": float, "longitude": float}.items()
        elif has_fields(arm):
            config = getattr(arm, "__struct_config__", None)
            if config is not None and config.tag_field:
                members.setdefault(config.tag_field, str)
            found = {field.stored: field.hint for field in fields_of(arm)}.items()
        else:
            return {}
        for name, each in found:
            members.setdefault(name, each)
    return members


def _arms(hint: Any) -> Iterator[Any]:
    """Yield the types that a hint allows, beside None."""
    hint = _bare(hint)
    if typing.get_origin(hint) in (typing.Union, types.UnionType):
        for arm in typing.get_args(hint):
            if arm is not type(None):
                yield from _arms(arm)
    else:
        yield hint


def _bare(hint: Any) -> Any:
    while True:
        if typing.get_origin(hint) is typing.Annotated:
            hint = typing.get_args(hint)[0]
        elif hasattr(hint, "__supertype__"):
            hint = hint.__supertype__
        elif type(hint).__name__ == "TypeAliasType":
            hint = hint.__value__
        elif typing.get_origin(hint) in (typing.Required, typing.NotRequired):
            hint = typing.get_args(hint)[0]
        else:
            return hint


def _sort_of(hint: Any) -> tuple[str, tuple[str, ...]]:
    arms = list(_arms(hint))
    if len(arms) != 1:
        sorts = {_sort_of(arm)[0] for arm in arms}
        return (sorts.pop(), ()) if len(sorts) == 1 else ("data", ())
    (arm,) = arms
    if typing.get_origin(arm) is Literal:
        values = typing.get_args(arm)
        return "choice", tuple(
            str(value.value if isinstance(value, enum.Enum) else value) for value in values
        )
    if not isinstance(arm, type):
        return "data", ()
    if issubclass(arm, enum.Enum):
        return "choice", tuple(str(each.value) for each in arm)
    for kinds, sort in _SORTS:
        if issubclass(arm, kinds):
            return sort, ()
    return "data", ()


_SORTS: tuple[tuple[tuple[type, ...], str], ...] = (
    ((bool,), "truth"),
    ((int, float, Decimal), "number"),
    ((datetime,), "time"),
    ((str, date, timedelta), "text"),
    ((bytes, bytearray), "bytes"),
)


def _sort_of_values(values: Sequence[Any]) -> str:
    """Return the sort of a column from its values; text that is always a time is a time."""
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "truth"
    if kinds and kinds <= {int, float}:
        return "number"
    if kinds == {str}:
        times = all(len(value) >= 19 and moment_of(value) is not None for value in values[:8])
        return "time" if times else "text"
    return "data" if kinds - {str} else "text"
