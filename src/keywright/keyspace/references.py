"""References: ids inside stored values that name other keys, so that tools can follow them.

A relation is written on both sides together; a reference is only a mention. The audit reports one that
leads nowhere where it is `required`; where it is not (a cache may lack anything), tools only follow it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

from keywright.errors import DeclarationError
from keywright.keyspace.key import Key
from keywright.keyspace.kinds.geo import Geo
from keywright.keyspace.kinds.map import Map
from keywright.keyspace.kinds.set import Set
from keywright.keyspace.kinds.sorted_set import SortedSet
from keywright.keyspace.misuse import explained

__all__ = ["Place", "Reference", "refers"]

Ids = Callable[[Any, Any], Iterable[Any]]


class Place(NamedTuple):
    """Where a reference leads: a key, or one field of a map, or one member of a set."""

    key: Key
    field: Any = None

    @property
    def stored_field(self) -> bytes | None:
        """The field or member in stored form, or None if the reference is to the key itself."""
        if self.field is None:
            return None
        encode = self.key._encode_field if isinstance(self.key, Map) else self.key._encode  # type: ignore[attr-defined]  # sets have it
        found: bytes = encode(self.field)
        return found


class Reference:
    """One declared reference of a key class to another."""

    def __init__(self, source: type[Key], target: type[Key], ids: Ids, *, name: str, required: bool) -> None:
        self.source = source
        self.target = target
        self.name = name
        self.required = required
        self.ids = ids
        self._inside = issubclass(target, Geo | Map | Set | SortedSet)
        if not name:
            raise DeclarationError(f"{source.__name__} → {target.__name__}", "has no name", "Give it one.")
        source._space.references.append(self)

    def places(self, key: Key, value: Any) -> Iterator[Place]:
        """Yield the targets of the value of a key; a collection may be given in parts."""
        return map(self.place, self.ids(key, value))

    def place(self, identity: Any) -> Place:
        """Return the target of one id. Raise UsageError if no key can have it."""
        if not self._inside:
            return Place(self.target.made(identity))
        holder, field = identity
        return Place(self.target.made(holder), field)

    def __repr__(self) -> str:
        return f"Reference({self.name}: {self.source.__name__} → {self.target.__name__})"


@explained
def refers(source: type[Key], target: type[Key], ids: Ids, *, name: str, required: bool = True) -> Reference:
    """Declare that values of `source` name keys of `target`.

    `ids(key, value)` gives what the constructor of `target` takes: a variable, or a tuple of several.
    For a Map, Set, SortedSet or Geo it gives pairs: that, and the field or member that must be in it. Values
    are as `get`, `members`, `all` or `range` return them; a large collection comes in parts, and None stands
    for a sealed value that cannot be opened.
    """
    return Reference(source, target, ids, name=name, required=required)
