"""`--show-config`: every setting of a service with its value and where it was given, as TOML."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import Any, get_type_hints

import msgspec

from keywright_service.configuration import GivenSetting, SettingsReader, without_password

__all__ = ["listed"]

MASK = "***"
HEAD = "# Flags win over environment variables, which win over the file. Secrets are masked."

Given = dict[tuple[str, ...], GivenSetting]


def listed(reader: SettingsReader, given: Iterable[GivenSetting]) -> Iterator[str]:
    """Yield the lines of the listing. Only a masked secret or password keeps it from being a usable file."""
    found: Given = {}
    for each in given:
        # A whole table, such as a presence, replaces what was given of it before.
        for below in [place for place in found if place[: len(each.place)] == each.place]:
            del found[below]
        found[each.place] = each
    secrets = {tuple(each.split(".")) for each in reader.secrets}
    yield HEAD
    yield from _table(reader.shape, (), found, secrets)


def _table(
    shape: type[msgspec.Struct], where: tuple[str, ...], found: Given, secrets: set[tuple[str, ...]]
) -> Iterator[str]:
    hints = get_type_hints(shape)
    tables = []
    for field in msgspec.structs.fields(shape):
        place = (*where, field.name)
        inner = hints[field.name]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            tables.append((inner, place))
        else:
            yield _line(field, place, found, hidden=place in secrets)
    for inner, place in tables:
        yield ""
        yield f"[{'.'.join(place)}]"
        yield from _table(inner, place, found, secrets)


def _line(field: msgspec.structs.FieldInfo, place: tuple[str, ...], found: Given, *, hidden: bool) -> str:
    given = {at[len(place) :]: each for at, each in found.items() if at[: len(place)] == place}
    if not given:
        default = _default(field)
        if default is None or hidden:
            return f"# {field.name} is not set"
        return f"{field.name} = {_toml(default)}  # default"
    value: Any = {}
    for at, each in given.items():
        value = each.value if not at else {**value, ".".join(at): each.value}
    sources = ", ".join(dict.fromkeys(each.source for each in given.values()))
    return f"{field.name} = {_toml(MASK if hidden else value)}  # {sources}"


def _default(field: msgspec.structs.FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    return None if field.default is msgspec.NODEFAULT else field.default


def _toml(value: Any) -> str:
    if isinstance(value, Enum):
        return _toml(value.value)
    if isinstance(value, str):
        return json.dumps(without_password(value), ensure_ascii=False)
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{json.dumps(name)} = {_toml(each)}' for name, each in value.items())}}}"
    if isinstance(value, list | tuple | set | frozenset):
        return f"[{', '.join(map(_toml, value))}]"
    return str(value).lower() if isinstance(value, bool) else str(value)
