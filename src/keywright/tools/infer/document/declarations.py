"""The module that declares the keys of a document.

Its texts stand in the module as string literals, escaped to ASCII and bounded.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from keywright.errors import KeywrightError, UsageError
from keywright.keyspace import Day, Email, Hex, Plain, Segment, Ulid, Uuid
from keywright.keyspace.alphabets import Signed64
from keywright.keyspace.template import Template
from keywright.tools.infer.document.blocks import blocks_of
from keywright.tools.infer.document.keys import DocumentedKey
from keywright.tools.infer.document.notation import Notation
from keywright.tools.infer.document.reader import documented_keys
from keywright.tools.infer.document.words import (
    Kind,
    expiry_in,
    kinds_in,
    mapping_in,
    scalar_in,
    score_in,
    since_in,
)
from keywright.tools.infer.expiries import SeenExpiry
from keywright.tools.infer.inference import require_space_name
from keywright.tools.infer.module import RESERVED, KeyDeclaration, key_order, module_text
from keywright.tools.infer.programs import Recognition
from keywright.tools.infer.structs import Field, Structs, attribute_of
from keywright.tools.infer.templates import Declared, escaped, variable_name, with_precedence
from keywright.tools.infer.variables import Variable
from keywright.tools.infer.words import Words

__all__ = ["DocumentInference", "infer_document"]

LONGEST_DOC = 300
LONGEST_MEMBER_DOC = 120
ORIGIN = "a document"
_SURELY_GENERIC = frozenset(
    ("", "id", "key", "uuid", "guid", "ulid", "value", "x", "xx", "xxx", "some", "any", "n", "number")
)
_TYPOGRAPHY = str.maketrans(
    {
        "\u2013": "-",
        "\u2014": "-",
        "\u2018": "'",
        "\u2019": "'",
        "\u201c": "'",
        "\u201d": "'",
        "\u2026": "...",
        "\u00a0": " ",
        '"': "'",
    }
)
_REDIS_TYPES = {"sorted set": "zset", "value": "string", "counter": "string"}


class DocumentInference(NamedTuple):
    """The module, its keys, and the names of the document that it does not declare."""

    text: str
    keys: list[KeyDeclaration]
    left_out: list[str]
    """Why, in words, with the numbers of lines."""
    programs: tuple[Recognition, ...] = ()
    """None: a document does not say which programs run."""

    @property
    def coverage(self) -> list[str]:
        count = len(self.keys)
        lines = [f"{count} template{'' if count == 1 else 's'} from the document", *self.left_out]
        doubts = sum(len(key.doubts) for key in self.keys)
        if doubts:
            lines.append(f"{doubts:,} {'guess' if doubts == 1 else 'guesses'} to review: look for `# guess:`")
        return lines


class _Found(NamedTuple):
    text: str
    redis_type: str
    names: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    options: tuple[str, ...] = ()


def infer_document(source: bytes, *, space: str = "inferred") -> DocumentInference:
    """Write the declaration of the keys of a Markdown document. Raise UsageError if it names none."""
    require_space_name(space)
    found, more = documented_keys(blocks_of(source))
    left_out = [f"{more:,} names of keys were not looked at: the document has too many"] if more else []
    origins: dict[str, DocumentedKey] = {}
    declared = []
    for key in found:
        made = _declared(key.notation)
        if made is None:
            left_out.append(
                f"the name in line {key.number} is not declared: it is not a template, or has two readings"
            )
        elif made.template.source not in origins:
            origins[made.template.source] = key
            declared.append(made)
    kept = with_precedence(declared)
    for lost in {each.template.source for each in declared} - {each.template.source for each in kept}:
        number = origins[lost].number
        left_out.append(f"the name in line {number} is not declared: other templates have all of its names")
    if not kept:
        raise UsageError(
            "the document names no keys. Write them as code, such as `user:{id}:posts`, "
            "with a word on their kind."
        )
    structs = Structs({*RESERVED, space}, Words(everything=True))
    shared = _shared_words(kept)
    odd = _without_separator([origins[each.template.source] for each in kept])
    keys = [
        _declaration(each, origins[each.template.source], structs, shared, odd) for each in key_order(kept)
    ]
    text = module_text(space, keys, structs, origin=ORIGIN, total=0, rest=())
    return DocumentInference(text, keys, sorted(left_out))


def _declared(notation: Notation) -> Declared | None:
    """Return the template of a notation if no name has two readings."""
    for narrow in (False, True):
        source, variables, words = _written(notation, narrow=narrow)
        try:
            template = Template(source, {name: each.alphabet for name, each in variables.items()})
            if template.two_readings() is None:
                return Declared(template, variables, words)
        except (KeywrightError, ValueError):
            continue
    return None


def _written(notation: Notation, *, narrow: bool) -> tuple[str, dict[str, Variable], list[str]]:
    source, words = "", [""]
    variables: dict[str, Variable] = {}
    tagged = any(piece.text == "{" for piece in notation.pieces if piece.kind == "mark")
    for number, piece in enumerate(notation.pieces):
        if piece.kind == "mark":
            source += piece.text
        elif piece.kind == "text":
            source += escaped(piece.text.encode(), tagged=False)
            words += re.findall(r"[A-Za-z][A-Za-z0-9_-]*", piece.text)
        else:
            behind = notation.pieces[number + 1 :]
            following = next((each.text[0] for each in behind if each.kind == "text"), "")
            variable = _variable(piece.text, following, tagged=tagged, narrow=narrow)
            wanted = _wanted_name(piece.text)
            name = variable_name(wanted or words[-1], variable, variables)
            variables[name] = variable
            source += f"<{name}>"
            words.append("")
    return source, variables, [word for word in words if word]


def _wanted_name(text: str) -> str:
    """Return the name that the document gives a placeholder, without `id`; empty if it says nothing."""
    if not re.fullmatch(r"[A-Za-z][\w .-]*", text):
        return ""
    words = attribute_of(text).rstrip("_").split("_")
    words = [
        word for word in words if word not in ("int", "integer", "string", "str", "u64", "i64", "slug")
    ] or words
    if len(words) > 1 and words[-1] in ("id", "uuid", "key"):
        words.pop()
    if len(words) > 1 and words[0] in ("some", "the", "a", "any"):
        words.pop(0)
    return "" if "_".join(words) in _SURELY_GENERIC else "_".join(words)


def _variable(text: str, following: str, *, tagged: bool, narrow: bool) -> Variable:
    name = text.lower()
    words = {*re.findall(r"[a-z]+[0-9]*", name), *attribute_of(text).split("_")}
    for matches, alphabet, hint, names, word in (
        (bool(words & {"uuid", "guid"}), Uuid(), "UUID", (), "uuid"),
        ("ulid" in words, Ulid(), "Annotated[str, Ulid()]", ("Ulid",), "ulid"),
        ("sha256" in words, Hex(64), "Annotated[str, Hex(64)]", ("Hex",), "digest"),
        ("sha1" in words, Hex(40), "Annotated[str, Hex(40)]", ("Hex",), "digest"),
        ("md5" in words, Hex(32), "Annotated[str, Hex(32)]", ("Hex",), "digest"),
        ("email" in words, Email(), "Annotated[str, Email()]", ("Email",), "email"),
        (name in ("date", "day", "yyyy-mm-dd"), Day(), "date", (), "day"),
        (
            bool(words & {"number", "int", "integer", "timestamp", "count", "index", "page", "u64", "i64"}),
            Signed64(),
            "int",
            (),
            "number",
        ),
    ):
        if matches:
            return Variable(alphabet, hint, names, 1, word)
    free = bool(
        words
        & {"path", "url", "uri", "query", "text", "title", "term", "filename", "file", "namespace", "emoji"}
    )
    if narrow or free:
        but = "".join(
            dict.fromkeys((following or ":") + (":" if not narrow else "") + ("{}" if tagged else ""))
        )
        if but.isascii() and but.isprintable() and not set(but) & set('"\\'):
            return Variable(Segment(but), f'Annotated[str, Segment("{but}")]', ("Segment",), 5, "name")
    return Variable(Plain(), "Id", ("Id",), 3, "id_")


def _shared_words(declared: Sequence[Declared]) -> int:
    """Return how many words begin all templates, so that classes need not be named after them."""
    if len(declared) < 3:
        return 0
    shared = 0
    for column in zip(*(each.words[:-1] for each in declared), strict=False):
        if len(set(column)) > 1:
            break
        shared += 1
    return shared


def _without_separator(keys: Sequence[DocumentedKey]) -> set[int]:
    """Return the lines of names with a variable that touches a word, where others have separators."""
    touching = {
        key.number
        for key in keys
        for before, piece in zip(key.notation.pieces, key.notation.pieces[1:], strict=False)
        if piece.kind == "variable" and before.kind == "text" and before.text[-1].isalnum()
    }
    with_variables = sum(bool(key.notation.variables) for key in keys)
    return touching if len(touching) * 5 < with_variables else set()


def _declaration(
    declared: Declared, key: DocumentedKey, structs: Structs, shared: int, odd: set[int]
) -> KeyDeclaration:
    label = " ".join(declared.words[shared:]) or " ".join(declared.words) or " ".join(declared.variables)
    found = _kind(key, structs, label)
    doubts = [*key.doubts, *found.doubts]
    if not key.defined:
        doubts.append("the document names it in a sentence, and does not describe it")
    if key.number in odd:
        doubts.append("the name: there is no separator before the variable, as other names have")
    untyped = [f"<{name}>" for name, variable in declared.variables.items() if variable.hint == "Id"]
    if untyped:
        doubts.append(f"the alphabet of {', '.join(untyped)}: the document does not say")
    times = f"{key.expiry} . {key.short} . {key.description}"
    seconds = expiry_in(times)
    base = found.text.partition("[")[0]
    return KeyDeclaration(
        declared,
        structs.class_name(label),
        found.text,
        _REDIS_TYPES.get(found.redis_type, found.redis_type),
        tuple(dict.fromkeys((base, *found.names))),
        SeenExpiry(seconds, "", since=since_in(times) if seconds else ""),
        (),
        tuple(doubts),
        found.options,
        evidence=f"Line {key.number} of the document",
        about=_docstring(key),
    )


def _kind(key: DocumentedKey, structs: Structs, label: str) -> _Found:
    """Return the kind that the nearest words name: beside the name, in its description, in the headings."""
    kinds = kinds_in(key.short, short=True) or kinds_in(key.description, short=False)
    texts = f"{key.short} . {key.description}"
    if not kinds and key.members:
        kinds = [Kind("hash", "", 0)]
    for text in (key.lead.rsplit(". ", 1)[-1], *reversed(key.headings)):
        kinds = kinds or kinds_in(text, short=False)
    if not kinds:
        doubt = "the kind: the document does not say"
        return _Found("Value[bytes]", "string", (), (doubt,))
    name = kinds[0].name
    rest = kinds[0].rest if kinds_in(key.short, short=True) else key.description
    member, names = _scalar(re.split(r"scored|score", rest)[0][:60])
    match name:
        case "sorted set":
            return _Found(f"SortedSet[{member}, {score_in(texts)}]", name, names)
        case "set":
            return _Found(f"Set[{member}]", name, names)
        case "hash":
            return _hash(key, structs, label, texts)
        case "stream":
            if key.members:
                return _Found(f"Stream[{_struct(key, structs, label)}]", name)
            struct = structs.declare(f"{label} entry", [], "Entries have other members.")
            return _Found(f"Stream[{struct}]", name, (), ("the members of entries",), ("open=True",))
        case "counter":
            return _Found("Counter", name)
        case "hyperloglog":
            return _Found(f"HyperLogLog[{member}]", name, names)
        case "bitmap":
            return _Found("Bitmap", name)
        case "geo":
            return _Found(f"Geo[{member}]", name, names)
        case "list":
            hint, names = _document(key, structs, label, texts) or (member, names)
            return _Found(f"List[{hint}]", name, names)
    hint, names = _document(key, structs, label, texts) or _scalar(texts)
    return _Found(f"Value[{hint}]", "string", names)


def _scalar(text: str) -> tuple[str, tuple[str, ...]]:
    return scalar_in(text) or ("str", ())


def _hash(key: DocumentedKey, structs: Structs, label: str, texts: str) -> _Found:
    if key.members:
        return _Found(f"Record[{_struct(key, structs, label)}]", "hash", _needs(key))
    if isinstance(key.example, dict) and not re.search(r"(?i)json|message ?pack|msgpack", texts):
        hint = structs.hint([key.example], label)
        if not hint.startswith("dict["):
            return _Found(f"Map[str, Annotated[{hint}, Json]]", "hash", ("Json",), ("the values are JSON",))
    document = _document(key, structs, label, texts)
    mapping = mapping_in(texts)
    if mapping is not None:
        (field, mine), (value, theirs) = _scalar(mapping[0]), document or _scalar(mapping[1])
        return _Found(f"Map[{field}, {value}]", "hash", (*mine, *theirs))
    hint, names = document or ("str", ())
    return _Found(f"Map[str, {hint}]", "hash", names, ("the fields: the document does not list them",))


def _document(
    key: DocumentedKey, structs: Structs, label: str, texts: str
) -> tuple[str, tuple[str, ...]] | None:
    """Return the type of values that are JSON or MessagePack; None for others."""
    packed = re.search(r"(?i)\bmessage ?pack\b|\bmsgpack\b", texts)
    if not packed and not re.search(r"(?i)\bjson\b", texts) and key.example is None and not key.members:
        return None
    codec = "MessagePack" if packed else "Json"
    if key.members:
        return f"Annotated[{_struct(key, structs, label)}, {codec}]", (codec, *_needs(key))
    inner = structs.hint([key.example], label) if isinstance(key.example, dict) else "Any"
    return f"Annotated[{inner}, {codec}]", (codec,)


def _needs(key: DocumentedKey) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for each in key.members for name in _scalar(each.type)[1]))


def _struct(key: DocumentedKey, structs: Structs, label: str) -> str:
    fields = [
        Field(
            each.name, _scalar(each.type)[0], each.optional, doc=_literal_text(each.text, LONGEST_MEMBER_DOC)
        )
        for each in key.members
    ]
    return structs.declare(f"{label} details", fields, "Members as the document lists them.")


def _docstring(key: DocumentedKey) -> str:
    text = key.description or key.short or (key.headings[-1] if key.headings else "")
    shown = _literal_text(text, LONGEST_DOC)
    lines = list(_wrapped(shown))
    if len(lines) < 2:
        return shown or "A key of the document."
    return "\n".join((lines[0], *(f"    {line}" for line in lines[1:]), "    "))


def _wrapped(text: str) -> Iterator[str]:
    """Yield lines of source. An escape has no space, so none is broken."""
    yield from textwrap.wrap(text, 100, break_long_words=False, break_on_hyphens=False)


def _literal_text(text: str, longest: int) -> str:
    """Return whole sentences as the inside of a string literal: ASCII, without quotes or bare backslashes."""
    text = " ".join(text.translate(_TYPOGRAPHY).split()).strip(" :-")
    if len(text) > longest:
        end = max(text.rfind(mark, 0, longest) for mark in (". ", "! ", "? "))
        text = text[: end + 1] if end > 20 else text[: longest - 3].rstrip() + "..."
    text = text[:1].upper() + text[1:]
    if text and text[-1] not in ".!?":
        text += "."
    return text.encode("unicode_escape").decode("ascii").replace('"', "'")
