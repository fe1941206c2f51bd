"""A model in DBML: a table for each class of keys, a reference for each relation and reference."""

from __future__ import annotations

from collections.abc import Iterator

from keywright.tools.generators.generator import Generation, Generator
from keywright.tools.schema.document import KeySchema, KeyspaceSchema

__all__ = ["GENERATOR"]

_SIGNS = {"one-to-one": "-", "many-to-one": ">", "many-to-many": "<>", "index": ">"}


def _generate(generation: Generation) -> str:
    schema = generation.schema
    notes = " ".join(space.doc for space in schema.keyspaces)
    lines = [
        f"Project {_name(schema.model)} {{",
        "  database_type: 'Redis'",
        f"  Note: {_text(notes)}",
        "}",
    ]
    for space in schema.keyspaces:
        for key in space.keys:
            lines += ["", *_table(space, key)]
    lines += _links(schema.keyspaces)
    return "\n".join(lines) + "\n"


def _table(space: KeyspaceSchema, key: KeySchema) -> Iterator[str]:
    """Yield the table of a class: its name and variables, then what it holds."""
    yield f"Table {_place(space.name, key.name)} {{"
    taken = {"key"}
    yield f'  "key" {_name(key.kind)} [pk, note: {_text(space.lead + key.template.source)}]'
    for variable in key.template.variables:
        column = _free(variable.name, taken)
        alphabet = variable.alphabet
        yield f"  {_name(column)} {_name(alphabet.alphabet)} [note: {_text(alphabet.words)}]"
    for role, codec in (("field", key.field), ("value", key.value)):
        if codec is not None:
            yield f"  {_name(_free(role, taken))} {_name(codec.codec)} [note: {_text(codec.words)}]"
    if key.score is not None:
        yield f"  {_name(_free('score', taken))} {_name(key.score.score)} [note: {_text(key.score.words)}]"
    for shape in key.shapes:
        for member in shape.members:
            if member.name in taken:
                continue
            required = "not null, " if member.required and len(key.shapes) == 1 else ""
            note = _text(member.doc or member.codec.words)
            yield f"  {_name(_free(member.name, taken))} {_name(member.codec.codec)} [{required}note: {note}]"
    if key.doc:
        yield f"  Note: {_text(key.doc)}"
    yield "}"


def _links(spaces: tuple[KeyspaceSchema, ...]) -> Iterator[str]:
    """Yield one reference for each pair of tables: DBML takes no second one between the same columns."""
    pairs: dict[frozenset[str], tuple[str, list[str]]] = {}
    for space in spaces:
        for name, source, sign, target in (*_relations(space), *_references(space)):
            if source == target:
                continue
            line = f'Ref: {source}."key" {sign} {target}."key"'
            pairs.setdefault(frozenset((source, target)), (line, []))[1].append(name)
    for line, names in pairs.values():
        yield ""
        yield f"// {' '.join('; '.join(names).split())}"
        yield line


def _relations(space: KeyspaceSchema) -> Iterator[tuple[str, str, str, str]]:
    for each in space.relations:
        ends = _place(space.name, each.forward), _place(space.name, each.inverse)
        yield f"{each.name}: {each.type}", ends[0], _SIGNS.get(each.type, "<>"), ends[1]


def _references(space: KeyspaceSchema) -> Iterator[tuple[str, str, str, str]]:
    for each in space.references:
        target = _place(each.target_keyspace or space.name, each.target)
        yield each.name, _place(space.name, each.source), ">", target


def _free(name: str, taken: set[str]) -> str:
    while name in taken:
        name += "_"
    taken.add(name)
    return name


def _place(space: str, name: str) -> str:
    return f"{_name(space)}.{_name(name)}"


def _name(text: str) -> str:
    return '"' + text.replace('"', "'").replace("\\", "/").replace("\n", " ") + '"'


def _text(text: str) -> str:
    return "'" + " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'") + "'"


GENERATOR = Generator("dbml", "the keys as tables with their relations, in DBML", _generate)
