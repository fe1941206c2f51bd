"""The relations of a model as a diagram of its entities.

A box is an entity, which is a variable of key names; in it stand the keys it names. A line is a relation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from keywright.tools.describe.description import KeyDescription, LinkDescription, SpaceDescription

__all__ = ["Box", "Diagram", "Edge", "diagram_of", "mermaid"]


class Box(NamedTuple):
    """An entity, or `the model itself` for keys without variables."""

    name: str
    keys: tuple[KeyDescription, ...]


class Edge(NamedTuple):
    """A relation between two entities, from the side that `forward` belongs to."""

    one: str
    other: str
    type: str
    label: str


class Diagram(NamedTuple):
    boxes: tuple[Box, ...]
    edges: tuple[Edge, ...]


def diagram_of(spaces: Iterable[SpaceDescription]) -> Diagram:
    """Return the boxes and lines of all keyspaces of a model."""
    spaces = tuple(spaces)
    names = _entities(spaces)
    boxes: dict[str, list[KeyDescription]] = {}
    for space in spaces:
        for key in space.keys:
            boxes.setdefault(names[_identity(key)], []).append(key)
    edges = tuple(edge for space in spaces for edge in _edges(space, names))
    return Diagram(tuple(Box(name, tuple(keys)) for name, keys in boxes.items()), edges)


def _identity(key: KeyDescription) -> tuple[str, str]:
    """Return the identity of a key's entity: the first variable, and its valid texts."""
    return (key.variables[0].name, key.variables[0].type) if key.variables else ("", "")


def _entities(spaces: tuple[SpaceDescription, ...]) -> dict[tuple[str, str], str]:
    """Return a name for each entity: its variable, or the beginning of its keys if two share a variable."""
    first: dict[tuple[str, str], KeyDescription] = {}
    for space in spaces:
        for key in space.keys:
            first.setdefault(_identity(key), key)
    variables = [name for name, _ in first]
    return {
        identity: (identity[0] if variables.count(identity[0]) == 1 else _beginning(key)) or spaces[0].name
        for identity, key in first.items()
    }


def _beginning(key: KeyDescription) -> str:
    return key.template.partition("<")[0].strip(":{/-. ")


def _edges(space: SpaceDescription, names: dict[tuple[str, str], str]) -> Iterator[Edge]:
    for link in space.links:
        if link.type != "index":
            one, other = space.key(link.forward), space.key(link.inverse)
            yield Edge(names[_identity(one)], names[_identity(other)], link.type, _label(link))


def _label(link: LinkDescription) -> str:
    return f"{link.forward} / {link.inverse}"


# How many of each side one of the other has: the forward key names the one, or the set, of the other side.
_CROWS_FEET = {"one-to-one": "|o--o|", "many-to-one": "}o--o|", "many-to-many": "}o--o{"}


def mermaid(diagram: Diagram) -> str:
    """Return an entity-relationship diagram in Mermaid's language."""
    lines = ["erDiagram"]
    for box in diagram.boxes:
        lines.append(f"    {_quoted(box.name)} {{")
        lines += [
            f"        {_word(key.kind)} {_word(key.name)} {_quoted(key.full_template)}" for key in box.keys
        ]
        lines.append("    }")
    for edge in diagram.edges:
        feet = _CROWS_FEET.get(edge.type, "}o--o{")
        lines.append(f"    {_quoted(edge.one)} {feet} {_quoted(edge.other)} : {_quoted(edge.label)}")
    return "\n".join(lines)


def _word(text: str) -> str:
    """Return a name that Mermaid accepts without quotes."""
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in text)


# Some of Mermaid's diagrams take entity codes and this one does not, so what it could take for markup is
# written with a character that looks alike.
_LOOKALIKES = str.maketrans('<>"#%;\\', "\u2039\u203a\u2033\uff03\uff05\uff1b\uff3c")


def _quoted(text: str) -> str:
    return f'"{text.translate(_LOOKALIKES)}"'
