"""The module that declares an inferred keyspace: imports, structs and key classes, with evidence.

Texts of others stand in it only as string literals that are escaped to ASCII. Comments and docstrings are
made of our own words, numbers and ASCII identifiers.
"""

from __future__ import annotations

import ast
import builtins
import keyword
from collections.abc import Iterable, Mapping, Sequence
from datetime import date, datetime, timedelta
from decimal import Decimal
from types import MappingProxyType
from typing import Annotated, Any, Literal, NamedTuple
from uuid import UUID

import msgspec

import keywright
from keywright.tools.infer.expiries import SeenExpiry, expiry_of
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.kinds import kind_of
from keywright.tools.infer.patterns import Observation
from keywright.tools.infer.programs import Recognition
from keywright.tools.infer.structs import Structs, attribute_of
from keywright.tools.infer.templates import Declared

__all__ = ["RESERVED", "KeyDeclaration", "addition_text", "key_declarations", "key_order", "module_text"]

RESERVED = frozenset(
    (
        *keywright.__all__,
        *dir(builtins),
        *keyword.kwlist,
        *("Annotated", "Any", "Decimal", "Literal", "UUID", "date", "datetime", "timedelta", "programs"),
    )
)
_NOUNS = {
    "Value": "Value",
    "Record": "Hash",
    "Map": "Hash",
    "Set": "Set",
    "SortedSet": "Sorted set",
    "List": "List",
    "Stream": "Stream",
    "HyperLogLog": "HyperLogLog",
    "Bitmap": "Bitmap",
    "Geo": "Positions",
    "JsonDocument": "JSON document",
}
_UNITS = {"days": 86400, "hours": 3600, "minutes": 60, "seconds": 1}
_WIDTH = 110
_PROVIDED: dict[str, dict[str, object]] = {
    "datetime": {"date": date, "datetime": datetime, "timedelta": timedelta},
    "decimal": {"Decimal": Decimal},
    "typing": {"Annotated": Annotated, "Any": Any, "Literal": Literal},
    "uuid": {"UUID": UUID},
}
"""What a module imports from the standard library, by module."""


class KeyDeclaration(NamedTuple):
    """What the module says of one template."""

    declared: Declared
    name: str
    kind: str
    """The base class with its types, as source text."""
    redis_type: str
    imports: tuple[str, ...]
    expiry: SeenExpiry
    notes: tuple[str, ...]
    doubts: tuple[str, ...]
    options: tuple[str, ...]
    evidence: str = ""
    """Where it was found, if not among counted keys."""
    about: str = ""
    """The text of the docstring, as source; else it is made of the words of the template."""


def key_declarations(declared: Sequence[Declared], structs: Structs) -> list[KeyDeclaration]:
    """Return the declarations, in an order in which none refers to a later one."""
    return [_declaration(each, structs) for each in key_order(declared)]


def key_order(declared: Iterable[Declared]) -> list[Declared]:
    """Return templates by their names, each after those to which it yields."""
    ordered: dict[str, Declared] = {}
    for each in sorted(declared, key=lambda each: each.template.source):
        _place(each, ordered)
    return list(ordered.values())


def _place(declared: Declared, ordered: dict[str, Declared]) -> None:
    """Append a template after those to which it yields, which are narrower, so they form no cycle."""
    if declared.template.source not in ordered and not declared.name:
        for superior in sorted(declared.yields_to, key=lambda each: each.template.source):
            _place(superior, ordered)
        ordered[declared.template.source] = declared


def _declaration(declared: Declared, structs: Structs) -> KeyDeclaration:
    facts = [each.facts for each in declared.observations if each.facts is not None]
    label = " ".join(declared.words) or " ".join(declared.variables)
    types: dict[str, int] = {}
    for each in facts:
        types[each.redis_type] = types.get(each.redis_type, 0) + 1
    redis_type = max(types, key=lambda kind: types[kind], default="")
    kind = kind_of(redis_type, [each for each in facts if each.redis_type == redis_type], structs, label)
    doubts = [*kind.doubts, *(hint.doubt for hint in kind.hints)]
    if len(types) > 1:
        listing = ", ".join(f"{count:,} {name}" for name, count in sorted(types.items()) if name.isalnum())
        doubts.append(f"these names hold several types: {listing}")
    for name, variable in declared.variables.items():
        if variable.doubt:
            doubts.append(f"<{name}>: {variable.doubt}")
    expiry = expiry_of(_by_optional_texts(declared))
    base = kind.text.partition("[")[0]
    return KeyDeclaration(
        declared,
        structs.class_name(label),
        kind.text,
        redis_type,
        tuple(
            {base: None} | dict.fromkeys((*kind.names, *(name for hint in kind.hints for name in hint.names)))
        ),
        expiry,
        (*(hint.note for hint in kind.hints if hint.note), *kind.notes),
        tuple(doubt for doubt in (*doubts, expiry.doubt) if doubt),
        kind.options,
    )


def _by_optional_texts(declared: Declared) -> list[list[Facts]]:
    """Return what is known of the keys, in groups by the texts of optional segments."""
    groups: dict[tuple[str | None, ...], list[Facts]] = {}
    template = declared.template
    places = [place for place, name in enumerate(template.variables) if name in template.optional]
    for each in declared.observations:
        if each.facts is not None:
            texts = template.texts(each.name.decode("utf-8", "surrogateescape")) if places else ()
            groups.setdefault(tuple(texts[place] for place in places) if texts else (), []).append(each.facts)
    return list(groups.values())


def module_text(
    space: str,
    keys: Sequence[KeyDeclaration],
    structs: Structs,
    *,
    origin: str,
    total: int,
    rest: Sequence[Observation],
    show_ids: bool = False,
    statements: Sequence[str] = (),
    names: Iterable[str] = (),
    programs: Sequence[Recognition] = (),
    more_programs: bool = False,
    database: int | None = None,
) -> str:
    """Return the module. `total` is the number of names; `rest` are those that no template has.

    `statements` follow the classes, and need `names` from `keywright`. With `more_programs` the variable of
    programs exists already, in a part of the module before this one.
    """
    blocks = _blocks(space, keys, structs, total, show_ids=show_ids)
    uses = {"Keyspace", *_uses(keys), *names}
    if rest:
        uses |= {"Bytes", "Value"}
        blocks.append(_fallback_text(space, structs.class_name("other"), rest, total))
    if statements:
        blocks.append("\n\n".join(statements))
    body = "\n\n\n".join(blocks)
    imports = _imports(body, sorted(uses))
    number = "" if database is None else f", database={database}"
    made = f'{space} = Keyspace("{space}", "Inferred from {origin}."{number})'
    if programs:
        imports += "\n" + _program_imports(programs)
        made += "\n\n" + _programs_text(space, programs, total, added=more_programs)
    heading = f'"""A keyspace that `keywright infer` wrote from {origin}. Review what is marked `guess`."""'
    return f"{heading}\n\n{imports}\n\n{made}\n" + (f"\n\n{body}\n" if body else "")


def _program_imports(programs: Sequence[Recognition]) -> str:
    sources = (each.module.partition(":") for each in programs)
    return "\n".join(
        f"from {module} import {attribute} as {program_variable(each)}"
        for each, (module, _, attribute) in zip(programs, sources, strict=True)
    )


def program_variable(recognition: Recognition) -> str:
    """Return the variable of a program in a module."""
    return f"{attribute_of(recognition.program.name)}_program"


def _programs_text(space: str, programs: Sequence[Recognition], total: int, *, added: bool = False) -> str:
    lines = []
    for each in programs:
        lines.append(f"# {each.title}: {_counted(each.keys, total)}.")
        lines += [f"# {line[0].upper()}{line[1:]}." for line in each.evidence]
    listing = ", ".join(map(program_variable, programs))
    lines.append(f"programs = {'programs + ' if added else ''}({listing}{',' if len(programs) == 1 else ''})")
    names = ",".join((space, *(each.program.name for each in programs)))
    lines.append(
        f'"""Programs of the catalogue, with their own declarations: keywright audit MODULE:{names}"""'
    )
    return "\n".join(lines)


def addition_text(
    space: str,
    keys: Sequence[KeyDeclaration],
    structs: Structs,
    *,
    total: int,
    imported: Mapping[str, object],
    show_ids: bool = False,
    programs: Sequence[Recognition] = (),
    statements: Sequence[str] = (),
    names: Iterable[str] = (),
) -> str:
    """Return what to append to a module that has the names `imported`.

    `statements` follow the classes, and need `names` from `keywright`.
    """
    blocks = _blocks(space, keys, structs, total, show_ids=show_ids)
    if statements:
        blocks.append("\n\n".join(statements))
    body = "\n\n\n".join(blocks)
    uses = sorted({*_uses(keys), *names})
    missing = [name for name in uses if imported.get(name) is not getattr(keywright, name)]
    text = f"\n\n# Added by `keywright infer --update`.\n{_imports(body, missing, imported)}".rstrip()
    if programs:
        added = isinstance(imported.get("programs"), tuple)
        text += f"\n{_program_imports(programs)}\n\n{_programs_text(space, programs, total, added=added)}"
    return f"{text}\n\n\n{body}\n" if body else f"{text}\n"


def _blocks(
    space: str, keys: Sequence[KeyDeclaration], structs: Structs, total: int, *, show_ids: bool
) -> list[str]:
    """Return the classes, each struct before the first that needs it."""
    names = {each.declared.template.source: each.name for each in keys}
    blocks: dict[str, str] = {}
    for key in keys:
        for name in _structs_of(key.kind, structs):
            blocks.setdefault(name, "\n".join(structs.sources[name]).rstrip())
        blocks[key.name] = _key_text(space, key, names, total, show_ids=show_ids)
    return list(blocks.values())


def _structs_of(source: str, structs: Structs) -> list[str]:
    """Return the structs that a type needs, those of its members first."""
    found = []
    for name in dict.fromkeys(node.id for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Name)):
        if name in structs.sources:
            members = ast.walk(ast.parse("\n".join(structs.sources[name])))
            hints = [ast.unparse(node.annotation) for node in members if isinstance(node, ast.AnnAssign)]
            found += [each for hint in hints for each in _structs_of(hint, structs)]
            found.append(name)
    return found


def _uses(keys: Sequence[KeyDeclaration]) -> set[str]:
    """Return the names of `keywright` that declarations need."""
    uses = {name for key in keys for name in key.imports}
    uses |= {name for key in keys for variable in key.declared.variables.values() for name in variable.names}
    if any(key.expiry.seconds for key in keys):
        uses.add("expires_in")
    return uses | {"may_expire"} if any(key.expiry.optional for key in keys) else uses


def _imports(text: str, names: Sequence[str], imported: Mapping[str, object] = MappingProxyType({})) -> str:
    """Return the imports that a text needs, without those that its module has."""
    used = {node.id for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Name)}
    lines = []
    for module, provided in _PROVIDED.items():
        needed = [name for name, each in provided.items() if name in used and imported.get(name) is not each]
        if needed:
            lines.append(f"from {module} import {', '.join(needed)}")
    if lines:
        lines.append("")
    if "msgspec" in used and imported.get("msgspec") is not msgspec:
        lines += ["import msgspec", ""]
    if names:
        lines += ["from keywright import (", *(f"    {name}," for name in names), ")"]
    return "\n".join(lines).rstrip()


def _key_text(space: str, key: KeyDeclaration, names: dict[str, str], total: int, *, show_ids: bool) -> str:
    declared = key.declared
    count = round(declared.weight)
    evidence = [key.evidence or _counted(count, total), key.expiry.evidence]
    lines = [f"# {'; '.join(each for each in evidence if each)}."]
    lines += [f"# guess: {doubt}." for doubt in key.doubts]
    if show_ids:
        lines.append(f"# For example {ascii(declared.observations[0].name)[1:]}.")
    options = [f"key={_literal(declared.template.source)}", f"space={space}"]
    if key.expiry.seconds:
        jitter = f", jitter={key.expiry.jitter:g}" if key.expiry.jitter else ""
        since = f', since="{key.expiry.since}"' if key.expiry.since else ""
        options.append(f"expiry=expires_in({_duration(key.expiry.seconds)}{since}{jitter})")
    elif key.expiry.optional:
        options.append("expiry=may_expire()")
    if declared.fallback:
        options.append("fallback=True")
    elif declared.yields_to:
        above = sorted(each.name or names[each.template.source] for each in declared.yields_to)
        listing = above[0] if len(above) == 1 else f"({', '.join(above)})"
        options.append(f"yields_to={listing}")
    options += key.options
    lines.append(_class_line(key.name, [key.kind, *options]))
    noun = _NOUNS.get(key.kind.partition("[")[0], "Key") if key.redis_type else "Key"
    about = " ".join(declared.words) or " ".join(declared.variables) or "text"
    notes = "".join(f" {note}" for note in dict.fromkeys(key.notes))
    lines.append(f'    """{key.about or f"{noun}: {about}.{notes}"}"""')
    if declared.variables:
        lines.append("")
        optional = declared.template.optional
        lines += [
            f"    {name}: {declared.variables[name].hint}{' | None = None' if name in optional else ''}"
            for name in sorted(declared.variables, key=optional.__contains__)
        ]
    return "\n".join(lines)


def _duration(seconds: int) -> str:
    """Return a time in its largest whole unit."""
    unit, size = next((unit, size) for unit, size in _UNITS.items() if seconds % size == 0)
    return f"timedelta({unit}={seconds // size})"


def _class_line(name: str, arguments: Sequence[str]) -> str:
    """Return the first line of a class, or several if it is too long."""
    line = f"class {name}({', '.join(arguments)}):"
    if len(line) <= _WIDTH:
        return line
    return "\n".join((f"class {name}(", *(f"    {_wrapped(each)}," for each in arguments), "):"))


def _wrapped(argument: str) -> str:
    """Return an argument, a tuple of many classes with each on a line of its own."""
    option, opening, names = argument.partition("=(")
    if len(argument) <= _WIDTH or not opening:
        return argument
    return "\n".join(
        (f"{option}=(", *(f"        {name}," for name in names.rstrip(")").split(", ")), "    )")
    )


def _counted(count: int, total: int) -> str:
    return f"{count:,} key{'' if count == 1 else 's'}, {count / max(total, 1):.1%} of all"


def _fallback_text(space: str, name: str, rest: Sequence[Observation], total: int) -> str:
    count = round(sum(each.weight for each in rest))
    return "\n".join(
        (
            f"# {_counted(count, total)}, whose names have no structure that repeats.",
            f'class {name}(Value[bytes], key="<text>", space={space}, fallback=True):',
            '    """What no other template has."""',
            "",
            '    text: Annotated[bytes, Bytes(b"")]',
        )
    )


def _literal(source: str) -> str:
    """Return a template, which is ASCII, as a string literal."""
    if '"' in source or not (source.isascii() and source.isprintable()):
        return ascii(source)
    return f'r"{source}"' if "\\" in source else f'"{source}"'
