"""The module that declares an inferred keyspace: imports, structs and key classes, with evidence.

Texts of others stand in it only as string literals that are escaped to ASCII. Comments and docstrings are
made of our own words, numbers and ASCII identifiers.
"""

from __future__ import annotations

import builtins
import keyword
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import keywright
from keywright.tools.infer.expiries import SeenExpiry, expiry_of
from keywright.tools.infer.facts import Facts
from keywright.tools.infer.structs import Field, Structs, is_fixed_name
from keywright.tools.infer.templates import Declared
from keywright.tools.infer.tree import Observation
from keywright.tools.infer.values import BYTES, Hint, hint_of, scalar_hint

__all__ = ["RESERVED", "KeyDeclaration", "addition_text", "key_declarations", "module_text"]

MOST_FIELDS = 80
RESERVED = frozenset(
    (*keywright.__all__, *dir(builtins), *keyword.kwlist, "Annotated", "Any", "UUID", "date", "datetime")
)
_NOUNS = {"string": "value", "hash": "hash", "set": "set", "zset": "sorted set", "list": "list"}


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


class _Kind(NamedTuple):
    text: str
    hints: tuple[Hint, ...] = ()
    doubts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def key_declarations(declared: Sequence[Declared], structs: Structs) -> list[KeyDeclaration]:
    """Return the declarations, in an order in which none refers to a later one."""
    ordered: dict[str, Declared] = {}
    for each in sorted(declared, key=lambda each: each.template.source):
        _place(each, ordered)
    return [_declaration(each, structs) for each in ordered.values()]


def _place(declared: Declared, ordered: dict[str, Declared]) -> None:
    """Append a template after those to which it yields, which are narrower, so they form no cycle."""
    if declared.template.source not in ordered and not declared.name:
        for superior in declared.yields_to:
            _place(superior, ordered)
        ordered[declared.template.source] = declared


def _declaration(declared: Declared, structs: Structs) -> KeyDeclaration:
    facts = [each.facts for each in declared.observations if each.facts is not None]
    label = " ".join(declared.words) or " ".join(declared.variables)
    types: dict[str, int] = {}
    for each in facts:
        types[each.redis_type] = types.get(each.redis_type, 0) + 1
    redis_type = max(types, key=lambda kind: types[kind], default="")
    kind = _kind(redis_type, [each for each in facts if each.redis_type == redis_type], structs, label)
    doubts = [*kind.doubts, *(hint.doubt for hint in kind.hints)]
    if len(types) > 1:
        listing = ", ".join(f"{count:,} {name}" for name, count in sorted(types.items()) if name.isalnum())
        doubts.append(f"these names hold several types: {listing}")
    for name, variable in declared.variables.items():
        if variable.doubt:
            doubts.append(f"<{name}>: {variable.doubt}")
    expiry = expiry_of(facts)
    base = kind.text.partition("[")[0]
    return KeyDeclaration(
        declared,
        structs.class_name(label),
        kind.text,
        redis_type,
        tuple({base: None} | dict.fromkeys(name for hint in kind.hints for name in hint.names)),
        expiry,
        tuple(hint.note for hint in kind.hints if hint.note),
        tuple(doubt for doubt in (*doubts, expiry.doubt) if doubt),
        kind.options,
    )


def _kind(redis_type: str, facts: Sequence[Facts], structs: Structs, label: str) -> _Kind:
    values = [value for each in facts for value in each.values]
    match redis_type:
        case "string":
            hint = hint_of(values, structs, label)
            return _Kind(f"Value[{hint.text}]", (hint,))
        case "list":
            hint = hint_of(values, structs, label)
            return _Kind(f"List[{hint.text}]", (hint,))
        case "set":
            hint = _member(values)
            return _Kind(f"Set[{hint.text}]", (hint,))
        case "zset":
            hint, score = _member(values), _score([each for one in facts for each in one.scores])
            return _Kind(f"SortedSet[{hint.text}, {score}]", (hint,))
        case "hash":
            return _hash(facts, structs, label)
        case "stream":
            return _stream(facts, structs, label)
        case "":
            return _Kind("Value[bytes]", (), ("the kind: only names were read",))
    shown = redis_type if redis_type.isalnum() else "another"
    return _Kind("Value[bytes]", (), (f"the server says {shown}, a type that has no kind here",))


def _member(values: Sequence[bytes]) -> Hint:
    """Return the type of members, which must have one text for each value."""
    hint = scalar_hint(values)
    if hint.text == "int" or hint.text == "bytes":
        return hint
    try:
        for value in values:
            value.decode()
    except UnicodeDecodeError:
        return BYTES
    return Hint("str")


def _score(scores: Sequence[bytes]) -> str:
    hint = scalar_hint(scores)
    if "EpochMs" in hint.text:
        return "datetime"
    return "int" if hint.text == "int" else "float"


def _hash(facts: Sequence[Facts], structs: Structs, label: str) -> _Kind:
    hashes = [found for each in facts for found in each.fields]
    names = dict.fromkeys(name for found in hashes for name in found)
    presence = sum(map(len, hashes)) / (len(names) * len(hashes)) if names else 0.0
    fixed = (
        0 < len(names) <= MOST_FIELDS
        and presence >= 0.3
        and all(is_fixed_name(name.decode("ascii", "replace")) for name in names)
        and all(each.size <= MOST_FIELDS for each in facts)
    )
    if fixed:
        return _fields("Record", hashes, structs, label)
    field, value = (
        _member(list(names)),
        hint_of([v for found in hashes for v in found.values()], structs, label),
    )
    return _Kind(f"Map[{field.text}, {value.text}]", (field, value))


def _stream(facts: Sequence[Facts], structs: Structs, label: str) -> _Kind:
    entries = [found for each in facts for found in each.fields]
    names = {name for found in entries for name in found}
    if 0 < len(names) <= MOST_FIELDS and all(
        is_fixed_name(name.decode("ascii", "replace")) for name in names
    ):
        return _fields("Stream", entries, structs, label)
    struct = structs.declare(f"{label} entry", [], "Entries have other members.")
    return _Kind(f"Stream[{struct}]", (), ("the members of entries differ",), ("open=True",))


def _fields(kind: str, found: Sequence[dict[bytes, bytes]], structs: Structs, label: str) -> _Kind:
    fields, hints = [], []
    for name in sorted({name for each in found for name in each}):
        values = [each[name] for each in found if name in each]
        hint = hint_of(values, structs, f"{label} {name.decode()}")
        hints.append(hint._replace(doubt=""))
        optional = len(values) < len(found) or len(found) == 1
        doubt = hint.doubt or ("whether it may be missing: one was read" if len(found) == 1 else "")
        fields.append(Field(name.decode(), hint.text, optional, doubt if hint.doubt else ""))
    struct = structs.declare(f"{label} details", fields, "Members as they were seen.")
    single = ("which members may be missing: one was read",) if len(found) == 1 else ()
    return _Kind(f"{kind}[{struct}]", tuple(hints), single)


def module_text(
    space: str,
    keys: Sequence[KeyDeclaration],
    structs: Structs,
    *,
    origin: str,
    total: int,
    rest: Sequence[Observation],
    show_ids: bool = False,
) -> str:
    """Return the module. `total` is the number of names; `rest` are those that no template has."""
    blocks = _blocks(space, keys, structs, total, show_ids=show_ids)
    uses = {"Keyspace", *_uses(keys)}
    if rest:
        uses |= {"Bytes", "Value"}
        blocks.append(_fallback_text(space, structs.class_name("other"), rest, total))
    body = "\n\n\n".join(blocks)
    heading = f'"""A keyspace that `keywright infer` wrote from {origin}. Review what is marked `guess`."""'
    made = f'{space} = Keyspace("{space}", "Inferred from {origin}.")'
    return f"{heading}\n\n{_imports(body, sorted(uses))}\n\n{made}\n\n\n{body}\n"


def addition_text(
    space: str,
    keys: Sequence[KeyDeclaration],
    structs: Structs,
    *,
    total: int,
    imported: Mapping[str, object],
    show_ids: bool = False,
) -> str:
    """Return what to append to a module that has the names `imported`."""
    body = "\n\n\n".join(_blocks(space, keys, structs, total, show_ids=show_ids))
    missing = [name for name in sorted(_uses(keys)) if imported.get(name) is not getattr(keywright, name)]
    return f"\n\n# Added by `keywright infer --update`.\n{_imports(body, missing)}\n\n\n{body}\n"


def _blocks(
    space: str, keys: Sequence[KeyDeclaration], structs: Structs, total: int, *, show_ids: bool
) -> list[str]:
    names = {each.declared.template.source: each.name for each in keys}
    blocks = ["\n".join(lines).rstrip() for lines in structs.sources.values()]
    return blocks + [_key_text(space, key, names, total, show_ids=show_ids) for key in keys]


def _uses(keys: Sequence[KeyDeclaration]) -> set[str]:
    """Return the names of `keywright` that declarations need."""
    uses = {name for key in keys for name in key.imports}
    uses |= {name for key in keys for variable in key.declared.variables.values() for name in variable.names}
    return uses | {"expires_in"} if any(key.expiry.seconds for key in keys) else uses


def _imports(text: str, names: Sequence[str]) -> str:
    lines = []
    moments = [each for each in ("date", "datetime", "timedelta") if _mentions(text, each)]
    if moments:
        lines.append(f"from datetime import {', '.join(moments)}")
    typing = [each for each in ("Annotated", "Any") if _mentions(text, each)]
    if typing:
        lines.append(f"from typing import {', '.join(typing)}")
    if _mentions(text, "UUID"):
        lines.append("from uuid import UUID")
    if lines:
        lines.append("")
    if "msgspec." in text:
        lines += ["import msgspec", ""]
    if names:
        lines += ["from keywright import (", *(f"    {name}," for name in names), ")"]
    return "\n".join(lines).rstrip()


def _mentions(text: str, name: str) -> bool:
    return any(mark + name in text for mark in ("[", " ", "(")) and name in text


def _key_text(space: str, key: KeyDeclaration, names: dict[str, str], total: int, *, show_ids: bool) -> str:
    declared = key.declared
    count = round(declared.weight)
    evidence = [_counted(count, total), key.expiry.evidence]
    lines = [f"# {'; '.join(each for each in evidence if each)}."]
    lines += [f"# guess: {doubt}." for doubt in key.doubts]
    if show_ids:
        lines.append(f"# For example {ascii(declared.observations[0].name)[1:]}.")
    options = [f"key={_literal(declared.template.source)}", f"space={space}"]
    if key.expiry.seconds:
        jitter = f", jitter={key.expiry.jitter:g}" if key.expiry.jitter else ""
        options.append(f"expiry=expires_in(timedelta(seconds={key.expiry.seconds}){jitter})")
    if declared.yields_to:
        above = ", ".join(sorted(each.name or names[each.template.source] for each in declared.yields_to))
        options.append(f"yields_to=({above},)")
    options += key.options
    lines.append(f"class {key.name}({', '.join((key.kind, *options))}):")
    noun = _NOUNS.get(key.redis_type, "key").capitalize()
    about = " ".join(declared.words) or " ".join(declared.variables) or "text"
    lines.append(f'    """{noun}: {about}.{"".join(f" {note}" for note in dict.fromkeys(key.notes))}"""')
    if declared.variables:
        lines.append("")
        lines += [f"    {name}: {variable.hint}" for name, variable in declared.variables.items()]
    return "\n".join(lines)


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
