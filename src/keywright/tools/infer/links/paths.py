"""Where ids of other keys may be: the members, fields and values of sampled keys, and variables of names."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import msgspec

from keywright.tools.infer.facts import Facts
from keywright.tools.infer.module import KeyDeclaration
from keywright.tools.infer.structs import Structs

__all__ = ["Occurrence", "Path", "hint_type", "occurrences"]

MOST_OCCURRENCES = 400
MOST_OF_ONE = 25
MOST_PATHS = 40
MOST_KEYS = 200
LONGEST_ID = 200
_TYPES = {
    **dict.fromkeys(("int", "U64", "SnowflakeId"), "int"),
    **dict.fromkeys(("str", "Id"), "str"),
    "UUID": "UUID",
}


class Path(NamedTuple):
    """A place in the values of a key class that has texts, as the module decodes them."""

    form: str
    """`members`, `scored`, `value`, `member`, `fields`, `mapped`, `mapped member` or `variable`."""
    name: str
    """The member as it is stored, or the variable."""
    attribute: str = ""
    type: str = "str"
    many: bool = False
    optional: bool = False

    @property
    def noun(self) -> str:
        """What the ids are, in a comment."""
        if self.form in ("members", "scored"):
            return "members"
        return {"value": "values", "mapped": "values", "fields": "fields"}.get(self.form) or "ids"


class Occurrence(NamedTuple):
    """An id, and the texts of the variables of the key that has it."""

    variables: tuple[str, ...]
    text: str


def occurrences(key: KeyDeclaration, structs: Structs) -> dict[Path, list[Occurrence]]:
    """Return the ids in the sampled keys of a class, a bounded number for each place."""
    found: dict[Path, dict[Occurrence, None]] = {}
    template = key.declared.template
    if template.optional:
        return {}
    paths = _paths(key, structs)
    every = key.declared.observations
    for observation in every[:: max(1, len(every) // MOST_KEYS)]:
        texts = template.texts(observation.name.decode("utf-8", "surrogateescape"))
        if texts is None:
            continue
        facts = observation.facts
        documents = None
        if facts is not None and facts.redis_type == key.redis_type:
            decodes = any("member" in path.form and path.form != "members" for path in paths)
            documents = _Read(facts, _documents(facts) if decodes else [])
        for path in paths:
            kept = found.setdefault(path, {})
            if len(kept) >= MOST_OCCURRENCES:
                continue
            if path.form == "variable":
                kept[Occurrence(texts, texts[template.variables.index(path.name)])] = None
            elif documents is not None:
                for text in _texts(path, documents):
                    kept[Occurrence(texts, text)] = None
    return {path: list(kept) for path, kept in found.items() if kept}


def _paths(key: KeyDeclaration, structs: Structs) -> list[Path]:
    variables = [
        Path("variable", name, name, kind)
        for name, variable in key.declared.variables.items()
        if (kind := hint_type(variable.hint)) is not None
    ]
    return [*variables, *_value_paths(key, structs)][:MOST_PATHS]


def _value_paths(key: KeyDeclaration, structs: Structs) -> Iterator[Path]:
    base, hints = _arguments(key.kind)
    if not hints:
        return
    kind = hint_type(hints[0])
    match base:
        case "Set" | "List":
            if kind is not None:
                yield Path("members", "members", "", kind)
        case "SortedSet":
            if kind is not None:
                yield Path("scored", "members", "", kind)
        case "Value":
            if kind is not None:
                yield Path("value", "value", "", kind)
            yield from _member_paths("member", hints[0], structs)
        case "Record":
            yield from _member_paths("member", hints[0], structs)
        case "Map":
            if kind is not None:
                yield Path("fields", "fields", "", kind)
            held = hint_type(hints[1])
            if held is not None:
                yield Path("mapped", "values", "", held)
            yield from _member_paths("mapped member", hints[1], structs)


def _member_paths(form: str, hint: str, structs: Structs) -> Iterator[Path]:
    for member in structs.members.get(hint, ()):
        text = member.hint.removesuffix(" | None")
        inner = text.removeprefix("list[").removesuffix("]") if text.startswith("list[") else text
        kind = hint_type(inner)
        if kind is not None:
            optional = member.optional or member.hint.endswith("| None")
            yield Path(form, member.stored, member.attribute, kind, many=inner != text, optional=optional)


def hint_type(hint: str) -> str | None:
    """Return the Python type of ids with this hint; None if they are not ids."""
    if hint.startswith("Annotated["):
        hint = hint.removeprefix("Annotated[").partition(",")[0]
        return hint if hint in ("str", "UUID") else None
    return _TYPES.get(hint)


def _arguments(kind: str) -> tuple[str, list[str]]:
    """Return the base class of a kind and its type arguments without codecs, as texts."""
    tree = ast.parse(kind, mode="eval").body
    if not isinstance(tree, ast.Subscript):
        return kind, []
    inside = tree.slice.elts if isinstance(tree.slice, ast.Tuple) else [tree.slice]
    return ast.unparse(tree.value), [_bare(each) for each in inside]


def _bare(hint: ast.expr) -> str:
    if isinstance(hint, ast.Subscript) and isinstance(hint.slice, ast.Tuple):
        inner = ast.unparse(hint.slice.elts[0])
        if ast.unparse(hint.value) == "Annotated" and inner not in _TYPES:
            return inner
    return ast.unparse(hint)


class _Read(NamedTuple):
    """What was read of a key, and the objects in its values."""

    facts: Facts
    documents: list[dict[Any, Any]]


def _texts(path: Path, read: _Read) -> Sequence[str]:
    found: list[str] = []
    for value in _raw(path, read):
        if isinstance(value, bytes):
            if len(value) <= LONGEST_ID:
                found.append(value.decode("utf-8", "replace"))
        elif isinstance(value, str) and len(value) <= LONGEST_ID:
            found.append(value)
        elif isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= 64:
            found.append(str(value))
        if len(found) >= MOST_OF_ONE:
            break
    return found


def _raw(path: Path, read: _Read) -> Iterator[Any]:
    facts = read.facts
    match path.form:
        case "members" | "scored" | "value":
            yield from facts.values
        case "fields":
            yield from (name for fields in facts.fields for name in fields)
        case "mapped":
            yield from (value for fields in facts.fields for value in fields.values())
        case "member" if facts.redis_type == "hash":
            name = path.name.encode()
            yield from (fields[name] for fields in facts.fields if name in fields)
        case _:
            for document in read.documents:
                held = document.get(path.name)
                yield from held[:MOST_OF_ONE] if isinstance(held, list) else [held]


def _documents(facts: Facts) -> list[dict[Any, Any]]:
    """Return the objects that values hold as JSON or MessagePack."""
    values = [*facts.values, *(value for fields in facts.fields for value in fields.values())]
    found = []
    for value in values[:MOST_OF_ONE]:
        try:
            document = (msgspec.json if value[:1] == b"{" else msgspec.msgpack).decode(value)
        except (msgspec.MsgspecError, ValueError, RecursionError):
            continue
        if isinstance(document, dict):
            found.append(document)
    return found
