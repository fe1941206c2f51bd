"""How documents write the names of keys: literal text, placeholders of many notations, hash tags."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from keywright.tools.segments import looks_of

__all__ = ["Notation", "Piece", "notation_of"]

LONGEST = 200
MOST_PIECES = 40
MOST_PLACEHOLDERS = 8

_SEPARATORS = ":/|."
_TOKEN = re.compile(
    r"\$\{(?P<dollar>[^{}]*)\}|\#\{(?P<ruby>[^{}]*)\}|\{\{(?P<double>[^{}]*)\}\}|%\{(?P<percent>[^{}]*)\}"
    r"|%\((?P<named>\w+)\)[sdi]|%(?P<printf>[sdiuvx])(?![A-Za-z0-9])|<(?P<angle>[^<>]*)>"
    r"|\$(?P<shell>[A-Za-z_]\w*)|(?P<star>\*+|\u2026|\.\.\.)"
    r"|(?P<opening>[{\[])|(?P<closing>[}\]])|(?P<text>[^$#{}%<*\u2026\[\].]+|.)",
    re.DOTALL,
)
_LITERAL = re.compile(r"[A-Za-z0-9_:/|.\-#@~+&!^\x80-\U0010ffff]*")
_NAME = re.compile(r"[A-Za-z][\w .|/-]{0,60}")
_TYPED = re.compile(r"(?P<name>\w+):(?P<type>int|integer|str|string|uuid|date|slug|path|number|u64|i64)")
_UPPER = re.compile(r"[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*")
_UPPER_ID = re.compile(r"(?:[A-Z0-9]+_)*(?:ID|UUID|GUID|NAME|CODE|HASH|TOKEN|SLUG|DATE|EMAIL|KEY|NUMBER)")
_BARE_ID = re.compile(r"id|uid|uuid|guid|ulid|[A-Za-z]+[_-]id|[a-z]+Id|[Xx]{2,}|nnn+")
_FILE = re.compile(r"(?i)\.(?:md|py|json|ya?ml|toml|lua|js|ts|go|rs|txt|html?|sh|conf|ini|rb|java|php|sql)\Z")
_HOST = re.compile(r"(?i)(?:[a-z0-9-]+\.)+(?:com|org|net|io|dev|local)(?:[:/].*)?|localhost[:/].*")


class Piece(NamedTuple):
    """Literal text, the text of a placeholder, or a mark: a brace of the hash tag, an optional segment."""

    kind: str
    """`text`, `variable` or `mark`."""
    text: str


class Notation(NamedTuple):
    """A name as a document writes it."""

    pieces: tuple[Piece, ...]
    doubt: str = ""

    @property
    def shape(self) -> str:
        """The template with nameless variables: equal for two notations of one template."""
        return "".join("<>" if each.kind == "variable" else each.text for each in self.pieces)

    @property
    def variables(self) -> list[str]:
        return [each.text for each in self.pieces if each.kind == "variable"]

    @property
    def literal(self) -> str:
        return "".join(each.text for each in self.pieces if each.kind == "text")

    @property
    def is_prefix(self) -> bool:
        """Whether it ends with a separator, as the beginning of names does."""
        last = self.pieces[-1]
        return last.kind == "text" and last.text[-1] in ":/|."

    @property
    def is_certain(self) -> bool:
        """Whether it is the name of a key wherever it stands: words, a placeholder and a separator."""
        if not self.variables or self.is_prefix or self.doubt:
            return False
        return (
            any(char in ":/|" for char in self.literal)
            or self.literal.count(".") + self.literal.count("-") + self.literal.count("_") > 0
        )

    @property
    def is_word(self) -> bool:
        return not self.variables and not set(self.literal) & set(_SEPARATORS)


def notation_of(text: str) -> Notation | None:
    """Return the pieces of a name of keys; None if the text is something else."""
    text = text.strip().strip("\"'`")
    if not 0 < len(text) <= LONGEST or "://" in text or text[0] in "/-.=(,;" or _FILE.search(text):
        return None
    if _HOST.fullmatch(text) or text.startswith(("www.", "~/")):
        return None
    pieces = _parsed(text)
    if pieces is None:
        return None
    joined = _joined(pieces)
    literal = "".join(each.text for each in joined if each.kind == "text")
    if not _LITERAL.fullmatch(literal) or not re.search(r"[^\W\d_]", literal):
        return None
    placeholders = sum(each.kind == "variable" for each in joined)
    if len(joined) > MOST_PIECES or placeholders > MOST_PLACEHOLDERS or _touching(joined):
        return None
    if placeholders:
        bare = _joined(list(_bare(joined, lower=False)))
        return _with_words(bare)
    bare = _joined(list(_bare(joined, lower=False)))
    if bare != joined:
        return _with_words(bare)
    bare = _joined(list(_bare(joined, lower=True)))
    if bare == joined:
        return _with_words(joined)
    return _with_words(bare, "which parts vary: the document shows an example or plain words")


def _with_words(pieces: list[Piece], doubt: str = "") -> Notation | None:
    literal = "".join(each.text for each in pieces if each.kind == "text")
    known = re.search(r"[^\W\d_]", literal) is not None and not _touching(pieces)
    return Notation(tuple(pieces), doubt) if known else None


def _parsed(text: str, depth: int = 0) -> list[Piece] | None:
    pieces: list[Piece] = []
    position = 0
    while position < len(text):
        found = _TOKEN.match(text, position)
        if found is None or len(pieces) > MOST_PIECES * 4:
            return None
        position = found.end()
        kind = found.lastgroup
        if kind == "closing":
            return None
        if kind == "opening":
            end = _closing(text, found.start())
            if end is None:
                return None
            inside = _enclosed(found[0], text[found.end() : end], text, depth)
            if inside is None:
                return None
            pieces += inside
            position = end + 1
        elif kind == "text":
            pieces.append(Piece("text", found[0]))
        else:
            pieces.append(Piece("variable", "" if kind in ("star", "printf") else found[kind or 0].strip()))
            if kind == "printf" and found[0] in ("%d", "%i", "%u"):
                pieces[-1] = Piece("variable", "number")
    return pieces


def _closing(text: str, start: int) -> int | None:
    depth = 0
    for position in range(start, len(text)):
        if text[position] in "{[":
            depth += 1
        elif text[position] in "}]":
            depth -= 1
            if not depth:
                return position
    return None


def _enclosed(mark: str, inside: str, whole: str, depth: int) -> list[Piece] | None:
    """Return the pieces of text in brackets: a placeholder, the hash tag, or an optional segment."""
    if depth > 2:
        return None
    typed = _TYPED.fullmatch(inside)
    if typed is not None:
        return [Piece("variable", f"{typed['name']} {typed['type']}")]
    others = _TOKEN.sub(lambda each: each[0] if each.lastgroup == "text" else "\0", whole)
    mixed = "<" in whole or "${" in whole or "%" in whole
    plain = _NAME.fullmatch(inside) is not None or not inside
    inner = _parsed(inside, depth + 1) if inside else []
    if inner is None:
        return [Piece("variable", "")] if plain else None
    holds = any(each.kind == "variable" for each in inner)
    if mark == "[":
        if plain and not holds:
            return [Piece("variable", inside)]
        if holds or set(inside) & set(_SEPARATORS):
            return [Piece("mark", "["), *inner, Piece("mark", "]")]
        return None
    if holds or (plain and mixed and inside and "\0" in others) or (":" in inside and not plain):
        return [Piece("mark", "{"), *inner, Piece("mark", "}")]
    return [Piece("variable", inside)] if plain else None


def _bare(pieces: list[Piece], *, lower: bool) -> Iterator[Piece]:
    """Yield pieces, with placeholders for segments that are UPPER_CASE, or with `lower` look like ids."""
    literal = "".join(each.text for each in pieces if each.kind == "text")
    shouting = not re.search(r"[a-z]", literal)
    first = True
    for piece in pieces:
        if piece.kind != "text":
            yield piece
            first = False
            continue
        for part in re.split(r"([:/|.]+)", piece.text):
            separator = not part or part[0] in _SEPARATORS
            if separator or (first and not _UPPER_ID.fullmatch(part)):
                varies = False
            elif lower:
                varies = _BARE_ID.fullmatch(part) is not None or not isinstance(
                    looks_of(part.encode())[0], bytes
                )
            elif shouting:
                varies = _UPPER_ID.fullmatch(part) is not None
            else:
                varies = _UPPER.fullmatch(part) is not None and len(part) > 1
            if part and not separator:
                first = False
            if part:
                yield Piece("variable", part if not part.isdigit() else "") if varies else Piece("text", part)


def _joined(pieces: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        if joined and piece.kind == "text" == joined[-1].kind:
            joined[-1] = Piece("text", joined[-1].text + piece.text)
        else:
            joined.append(piece)
    return joined


def _touching(pieces: list[Piece]) -> bool:
    return any(one.kind == other.kind == "variable" for one, other in pairwise(pieces))
