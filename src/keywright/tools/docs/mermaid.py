"""The entities of a model as an entity-relationship diagram in Mermaid's language."""

from __future__ import annotations

from collections.abc import Iterator

from keywright.tools.diagram.entities import Entity, Schema, Tie

__all__ = ["mermaid"]

# How many of each side one of the other has: the forward key names the one, or the set, of the other side.
_CROWS_FEET = {
    "one-to-one": "|o--o|",
    "many-to-one": "}o--o|",
    "many-to-many": "}o--o{",
    "index": "}o--||",
    "reference": "}o..o|",
    "part": "}o--||",
}


def mermaid(schema: Schema) -> str:
    """Return the diagram: an entity for each key, a line for each relation, solid, and reference, dotted."""
    names = [entity.key.name for entity in schema.entities]
    titles = {
        each.identity: each.key.name if names.count(each.key.name) == 1 else each.identity
        for each in schema.entities
    }
    lines = ["erDiagram"]
    for entity in schema.entities:
        lines += _entity(entity, titles[entity.identity])
    lines += [_line(tie, titles) for tie in schema.ties]
    return "\n".join(lines)


def _entity(entity: Entity, title: str) -> Iterator[str]:
    yield f"    {_quoted(title)} {{"
    yield f"        {_word(entity.key.kind)} key {_quoted(entity.key.full_template)}"
    yield "    }"


def _line(tie: Tie, titles: dict[str, str]) -> str:
    label = tie.name if tie.sort == "reference" else "part of" if tie.sort == "part" else tie.sort
    return (
        f"    {_quoted(titles[tie.source])} {_CROWS_FEET.get(tie.sort, '}o--o{')} "
        f"{_quoted(titles[tie.target])} : {_quoted(label)}"
    )


def _word(text: str) -> str:
    """Return a name that Mermaid accepts without quotes."""
    return "".join(char if char.isascii() and char.isalnum() else "_" for char in text)


# Some of Mermaid's diagrams take entity codes and this one does not, so what it could take for markup is
# written with a character that looks alike.
_LOOKALIKES = str.maketrans('<>"#%;\\', "\u2039\u203a\u2033\uff03\uff05\uff1b\uff3c")


def _quoted(text: str) -> str:
    return f'"{text.translate(_LOOKALIKES)}"'
