"""Key classes that a module declares already, as the search for links needs them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from keywright.keyspace import Key, Keyspace
from keywright.keyspace.codecs import Codec, IdOf, Int64, Text, Uint64
from keywright.tools.infer.expiries import SeenExpiry
from keywright.tools.infer.module import KeyDeclaration
from keywright.tools.infer.patterns import Observation
from keywright.tools.infer.templates import Declared, words_of
from keywright.tools.infer.variables import Variable

__all__ = ["NOTHING", "Existing", "declared_keys", "existing_links"]

_TYPES = {int: "int", str: "str", UUID: "UUID"}
_PLAIN = (IdOf, Int64, Text, Uint64)


class Existing(NamedTuple):
    """What a module has before links are searched: it stays, and nothing is added between its own classes."""

    classes: frozenset[str]
    references: frozenset[tuple[str, str]]
    """The name of the class and that of the reference."""
    related: frozenset[str]
    """Classes that are in a relation or an index."""

    def allows(self, one: str, other: str) -> bool:
        """Return whether a link between two classes joins a new one."""
        return one not in self.classes or other not in self.classes

    def relates(self, one: str, other: str) -> bool:
        """Return whether a relation between two classes may be added."""
        return self.allows(one, other) and self.related.isdisjoint((one, other))


NOTHING = Existing(frozenset(), frozenset(), frozenset())


def existing_links(space: Keyspace, names: Mapping[type[Key], str]) -> Existing:
    """Return what links a keyspace declares. `names` are those of its classes in their module."""
    return Existing(
        frozenset(names.values()),
        frozenset((names[each.source], each.name) for each in space.references if each.source in names),
        frozenset(names[kind] for link in space.links for kind in link.keys if kind in names),
    )


def declared_keys(
    observations: Mapping[type[Key], Sequence[Observation]], names: Mapping[type[Key], str]
) -> list[KeyDeclaration]:
    """Return classes with the keys that were seen of each, in the form of inferred ones."""
    return [_declaration(kind, names[kind], seen) for kind, seen in observations.items() if seen]


def _declaration(kind: type[Key], name: str, seen: Sequence[Observation]) -> KeyDeclaration:
    template = kind.declaration.template
    variables = {
        name: Variable(alphabet, _TYPES.get(alphabet.python_type, "bytes"), (), 1, name)
        for name, alphabet in template.alphabets.items()
    }
    declared = Declared(template, variables, words_of(template))
    declared.name = name
    declared.observations = list(seen)
    types = ", ".join(map(_type, kind.declaration.codecs))
    base = next(base.__name__ for base in kind.__mro__ if base.__module__.startswith("keywright."))
    text = f"{base}[{types}]" if types else base
    return KeyDeclaration(declared, name, text, kind.redis_type, (), SeenExpiry(None, ""), (), (), ())


def _type(codec: Codec[Any]) -> str:
    """Return the type of values that are ids as they are stored; others are bytes."""
    kind = codec.python_type
    return _TYPES.get(kind, "bytes") if isinstance(codec, _PLAIN) and isinstance(kind, type) else "bytes"
