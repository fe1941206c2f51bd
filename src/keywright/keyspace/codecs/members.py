"""Members of stored objects that a declared type does not have: msgspec ignores them when it decodes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

import msgspec
from msgspec import inspect

from keywright.keyspace.codecs.models import fields_of, is_model

__all__ = ["Undeclared", "undeclared_members"]

Undeclared: TypeAlias = Callable[[bytes], list[str]]
"""Return the paths of undeclared members: `password`, `user.password`, `rooms[].password`."""

MOST = 20
"""So many paths of one value are returned."""

_Search: TypeAlias = Callable[[Any, str], Iterator[str]]
_Objects = inspect.StructType | inspect.TypedDictType | inspect.DataclassType


def undeclared_members(hint: Any, decoder: Callable[[Any], Any]) -> Undeclared | None:
    """Return the search for undeclared members of values of a type; None if the type has no objects.

    `decoder` makes the decoder of a type: `msgspec.json.Decoder` or `msgspec.msgpack.Decoder`.
    """
    try:
        described = inspect.type_info(hint)
    except TypeError:
        return None  # a type of its own, which msgspec decodes by a hook
    search = _Searches(decoder).of(described)
    if search is None:
        return None

    def found(data: bytes) -> list[str]:
        try:
            return sorted(dict.fromkeys(_first(search(msgspec.Raw(data), ""))))
        except msgspec.MsgspecError:
            return []  # malformed values are reported as such

    return found


def _first(paths: Iterable[str]) -> Iterator[str]:
    for count, path in enumerate(paths, 1):
        yield path
        if count == MOST:
            return


class _Searches:
    """The searches of types, each made once: types may contain themselves."""

    def __init__(self, decoder: Callable[[Any], Any]) -> None:
        self._members: Callable[[Any], dict[str, Any]] = decoder(dict[str, msgspec.Raw]).decode
        self._any: Callable[[Any], Any] = decoder(Any).decode
        self._items: Callable[[Any], list[Any]] = decoder(list[msgspec.Raw]).decode
        self._made: dict[int, _Search | None] = {}
        self._kept: list[inspect.Type] = []  # so that no id is used twice

    def of(self, described: inspect.Type) -> _Search | None:
        if id(described) in self._made:
            return self._made[id(described)]
        self._kept.append(described)
        pending: list[_Search] = []
        self._made[id(described)] = lambda raw, path: pending[0](raw, path) if pending else iter(())
        search = self._search(described)
        self._made[id(described)] = search
        if search is not None:
            pending.append(search)
        return search

    def _search(self, described: inspect.Type) -> _Search | None:
        if isinstance(described, _Objects):
            return self._object(described)
        if isinstance(described, inspect.CustomType) and is_model(described.cls):
            return self._model(described.cls)
        if isinstance(described, inspect.UnionType):
            return self._union(described)
        if isinstance(described, inspect.Metadata):
            return self.of(described.type)
        if isinstance(described, inspect.DictType):
            return self._values(self.of(described.value_type))
        if isinstance(described, inspect.CollectionType):
            return self._each(self.of(described.item_type))
        if isinstance(described, inspect.TupleType):
            return self._in_turn([self.of(each) for each in described.item_types])
        return None

    def _object(self, described: Any) -> _Search | None:
        if getattr(described, "array_like", False):
            return self._in_turn([self.of(field.type) for field in described.fields])
        fields = {field.encode_name: field.type for field in described.fields}
        return self._named(fields, getattr(described, "tag_field", None))

    def _model(self, model: Any) -> _Search | None:
        if model.model_config.get("extra") == "allow":
            return None
        try:
            return self._named({each.stored: inspect.type_info(each.hint) for each in fields_of(model)}, None)
        except TypeError:
            return None  # a field of a type that only Pydantic knows

    def _named(self, fields: dict[str, inspect.Type], tag: str | None) -> _Search:
        names = {*fields, tag}
        inner = {name: self.of(described) for name, described in fields.items()}
        nested = {name: search for name, search in inner.items() if search is not None}

        def search(raw: Any, path: str) -> Iterator[str]:
            members = self._members(raw)
            if not members.keys() <= names:
                yield from (f"{path}{name}" for name in members.keys() - names)
            for name, deeper in nested.items():
                if name in members:
                    yield from deeper(members[name], f"{path}{name}.")

        return search

    def _union(self, described: inspect.UnionType) -> _Search | None:
        arms = [(arm, inner) for arm in described.types if (inner := self.of(arm)) is not None]
        if not arms:
            return None
        tagged: dict[Any, _Search] = {}
        fields: set[str] = set()
        others: list[_Search] = []
        for arm, inner in arms:
            if isinstance(arm, inspect.StructType) and arm.tag_field is not None:
                tagged[arm.tag] = inner
                fields.add(arm.tag_field)
            else:
                others.append(inner)

        def search(raw: Any, path: str) -> Iterator[str]:
            tags = (self._member(raw, field) for field in fields)
            chosen = next((tagged[tag] for tag in tags if tag in tagged), None)
            for arm in others if chosen is None else [chosen]:
                try:
                    found = list(arm(raw, path))
                except msgspec.MsgspecError:
                    continue  # the value is of another arm
                yield from found
                return

        return search

    def _member(self, raw: Any, name: str) -> Any:
        try:
            return self._any(self._members(raw)[name])
        except (KeyError, msgspec.MsgspecError):
            return None

    def _values(self, inner: _Search | None) -> _Search | None:
        if inner is None:
            return None
        return lambda raw, path: (
            found for each in self._members(raw).values() for found in inner(each, f"{path}*.")
        )

    def _each(self, inner: _Search | None) -> _Search | None:
        if inner is None:
            return None
        return lambda raw, path: (
            found for each in self._items(raw) for found in inner(each, f"{path.removesuffix('.')}[].")
        )

    def _in_turn(self, inner: list[_Search | None]) -> _Search | None:
        if not any(inner):
            return None
        return lambda raw, path: (
            found
            for search, each in zip(inner, self._items(raw), strict=False)
            if search is not None
            for found in search(each, f"{path.removesuffix('.')}[].")
        )
